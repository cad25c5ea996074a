//! Addresses inside markup: which survive, and as what.
//!
//! Owns the schemes that may stand in a rendering. Everything else dies, however it is written: the URL parser takes out
//! white space and control characters as browsers do, so what is judged is what a browser would open.

use std::cell::RefCell;
use std::collections::HashMap;

use url::Url;

/// Bytes of an address that is kept.
const MAX_BYTES: usize = 8 * 1_024;

/// Addresses that are remembered: each form asks for the same ones, an image even twice. A long article has a hundred.
const MAX_KNOWN: usize = 1_024;

/// Bytes of an address that is remembered.
const MAX_KNOWN_BYTES: usize = 512;

/// Resolves the addresses of one fragment.
#[derive(Debug, Clone)]
pub struct Addresses {
    base: Option<Url>,
    /// What written ones became.
    known: RefCell<HashMap<String, Option<Url>>>,
}

impl Addresses {
    /// From the address that relative ones start from.
    #[must_use]
    pub fn new(base: Option<&str>) -> Self {
        let base = base.and_then(|b| Url::parse(b).ok()).filter(|b| matches!(b.scheme(), "http" | "https"));
        Self { base, known: RefCell::default() }
    }

    fn resolve(&self, written: &str) -> Option<Url> {
        if written.len() > MAX_BYTES {
            return None;
        }
        let mut known = self.known.borrow_mut();
        if let Some(url) = known.get(written) {
            return url.clone();
        }
        let url = match &self.base {
            Some(base) => base.join(written).ok(),
            None => Url::parse(written).ok(),
        };
        let length = url.as_ref().map_or(0, |u| u.as_str().len()).max(written.len());
        if known.len() < MAX_KNOWN && length <= MAX_KNOWN_BYTES {
            known.insert(written.to_owned(), url.clone());
        }
        url
    }

    /// Where a link leads: `http`, `https` or `mailto`; anything else is none.
    #[must_use]
    pub fn link(&self, written: &str) -> Option<String> {
        let url = self.resolve(written.trim())?;
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.into())
    }

    /// Where an image lies: `http` or `https`; data in the address itself is none.
    #[must_use]
    pub fn image(&self, written: &str) -> Option<String> {
        let url = self.resolve(written.trim())?;
        (matches!(url.scheme(), "http" | "https") && !written.trim().is_empty()).then(|| url.into())
    }

    /// The video that an embedding address plays: the provider and its id.
    #[must_use]
    pub fn video(&self, written: &str) -> Option<(&'static str, String)> {
        let url = self.resolve(written.trim())?;
        let host = url.host_str()?.trim_start_matches("www.");
        let mut path = url.path_segments()?;
        let (provider, id) = match (url.scheme(), host, path.next()?) {
            ("http" | "https", "youtube.com" | "youtube-nocookie.com", "embed") => ("youtube", path.next()?),
            ("http" | "https", "player.vimeo.com", "video") => ("vimeo", path.next()?),
            _ => return None,
        };
        is_video_id(id).then(|| (provider, id.to_owned()))
    }
}

/// Whether a text can be the id of a video.
#[must_use]
pub fn is_video_id(id: &str) -> bool {
    (1..=32).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Where the page of a video is.
#[must_use]
pub fn video_page(provider: &str, id: &str) -> Option<String> {
    match provider {
        "youtube" => Some(format!("https://www.youtube.com/watch?v={id}")),
        "vimeo" => Some(format!("https://vimeo.com/{id}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_schemes_of_the_web_and_of_mail_survive() {
        let addresses = Addresses::new(Some("https://a.example/dir/post"));
        for (written, expected) in [
            ("x", Some("https://a.example/dir/x")),
            ("//b.example/y", Some("https://b.example/y")),
            (" HTTPS://b.example ", Some("https://b.example/")),
            ("mailto:x@a.example", Some("mailto:x@a.example")),
            ("#top", Some("https://a.example/dir/post#top")),
            ("javascript:alert(1)", None),
            ("java\tscript:alert(1)", None),
            ("\u{1}javascript:alert(1)", None),
            ("JaVaScRiPt:alert(1)", None),
            ("vbscript:x", None),
            ("data:text/html,x", None),
            ("file:///etc/passwd", None),
            ("http://", None),
        ] {
            assert_eq!(addresses.link(written).as_deref(), expected, "{written:?}");
        }
        assert_eq!(addresses.image("data:image/png;base64,AAAA"), None);
        assert_eq!(addresses.image("mailto:x@a.example"), None);
        assert_eq!(Addresses::new(None).link("x"), None);
        assert_eq!(Addresses::new(Some("javascript:x")).link("x"), None);
    }

    #[test]
    fn videos_are_known_by_their_embedding_address() {
        let addresses = Addresses::new(None);
        for (written, expected) in [
            ("https://www.youtube.com/embed/AbC-1_2?rel=0", Some(("youtube", "AbC-1_2"))),
            ("https://www.youtube-nocookie.com/embed/AbC", Some(("youtube", "AbC"))),
            ("https://player.vimeo.com/video/123", Some(("vimeo", "123"))),
            ("https://youtube.com.evil.example/embed/AbC", None),
            ("https://www.youtube.com/watch?v=AbC", None),
            ("https://www.youtube.com/embed/\"onload=x", None),
            ("javascript://www.youtube.com/embed/AbC", None),
        ] {
            let expected = expected.map(|(provider, id)| (provider, id.to_owned()));
            assert_eq!(addresses.video(written), expected, "{written}");
        }
    }
}
