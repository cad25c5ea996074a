//! Redirects, decided without I/O: where the next hop goes and what it may take along.
//!
//! Owns the statuses that redirect, the most hops, loops, and the refusal of https to http. The judging of the new
//! address belongs to `url` and `address`; it happens afresh for each hop.

use url::Url;

use super::credential::may_follow;

/// Redirects that are followed.
pub const MAX_REDIRECTS: usize = 5;

/// What to do with a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It is the answer.
    Final,
    /// Go on to this address, as written in Location and made absolute.
    Follow(String),
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedirectRefusal {
    /// More than [`MAX_REDIRECTS`].
    #[error("more than {MAX_REDIRECTS} redirects")]
    TooMany,
    /// An address that was asked already.
    #[error("the redirects go in a circle")]
    Loop,
    /// https to http.
    #[error("a redirect from https to http")]
    Insecure,
    /// A Location that is no address.
    #[error("a redirect to something that is no address")]
    Location,
}

/// The redirects of one request so far.
#[derive(Debug, Clone)]
pub struct Chain {
    visited: Vec<Url>,
    keeps_credential: bool,
}

impl Chain {
    /// Starts at an address.
    #[must_use]
    pub fn new(start: Url) -> Self {
        Self { visited: vec![start], keeps_credential: true }
    }

    /// Whether the credential may still be sent: once dropped it never comes back.
    #[must_use]
    pub fn keeps_credential(&self) -> bool {
        self.keeps_credential
    }

    /// Whether this is the first request of the chain.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.visited.len() == 1
    }

    /// Decides on a response of the last address. A redirect without Location is the answer (as Go has it).
    ///
    /// # Errors
    /// Why the redirect is not followed.
    pub fn next(&self, status: u16, location: Option<&str>) -> Result<Next, RedirectRefusal> {
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Ok(Next::Final);
        }
        let Some(location) = location.map(str::trim).filter(|l| !l.is_empty()) else { return Ok(Next::Final) };
        let Some(current) = self.visited.last() else { return Ok(Next::Final) };
        if self.visited.len() > MAX_REDIRECTS {
            return Err(RedirectRefusal::TooMany);
        }
        // An absolute Location goes on as it is written, so that the URL policy sees what the server wrote.
        match Url::parse(location) {
            Ok(_) => Ok(Next::Follow(location.to_owned())),
            Err(url::ParseError::RelativeUrlWithoutBase) => {
                if location.contains('\\') {
                    return Err(RedirectRefusal::Location);
                }
                current.join(location).map(|u| Next::Follow(u.into())).map_err(|_| RedirectRefusal::Location)
            }
            Err(_) => Err(RedirectRefusal::Location),
        }
    }

    /// Takes the next address, which passed the URL policy.
    ///
    /// # Errors
    /// A step from https to http, or one back to an address of the chain.
    pub fn follow(&mut self, next: &Url) -> Result<(), RedirectRefusal> {
        let insecure = self.visited.last().is_some_and(|c| c.scheme() == "https" && next.scheme() == "http");
        if insecure {
            return Err(RedirectRefusal::Insecure);
        }
        if self.visited.contains(next) {
            return Err(RedirectRefusal::Loop);
        }
        let follows = self.visited.first().is_some_and(|initial| may_follow(initial, next));
        self.keeps_credential &= follows;
        self.visited.push(next.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn only_redirects_with_a_location_are_followed() {
        let chain = Chain::new(url("https://a.site/dir/feed"));
        let follow = |to: &str| Ok(Next::Follow(to.to_owned()));
        for (status, location, expected) in [
            (200, Some("/x"), Ok(Next::Final)),
            (304, Some("/x"), Ok(Next::Final)),
            (300, Some("/x"), Ok(Next::Final)),
            (301, None, Ok(Next::Final)),
            (302, Some("  "), Ok(Next::Final)),
            (301, Some("/x"), follow("https://a.site/x")),
            (302, Some("y?z=1"), follow("https://a.site/dir/y?z=1")),
            (303, Some("//b.site/x"), follow("https://b.site/x")),
            (307, Some("https://b.site/x"), follow("https://b.site/x")),
            (308, Some("https:/b.site/x"), follow("https:/b.site/x")),
            (301, Some("/\\b.site/x"), Err(RedirectRefusal::Location)),
            (301, Some("https://[::1"), Err(RedirectRefusal::Location)),
        ] {
            assert_eq!(chain.next(status, location), expected, "{status} {location:?}");
        }
    }

    #[test]
    fn five_redirects_are_followed_and_the_sixth_is_not() {
        let mut chain = Chain::new(url("https://a.site/0"));
        for n in 1..=MAX_REDIRECTS {
            let to = format!("https://a.site/{n}");
            assert_eq!(chain.next(302, Some(&to)), Ok(Next::Follow(to.clone())));
            chain.follow(&url(&to)).unwrap();
        }
        assert_eq!(chain.next(302, Some("https://a.site/6")), Err(RedirectRefusal::TooMany));
        assert_eq!(chain.next(200, None), Ok(Next::Final));
    }

    #[test]
    fn circles_and_steps_to_http_are_refused() {
        let mut chain = Chain::new(url("https://a.site/0"));
        assert_eq!(chain.follow(&url("http://a.site/1")), Err(RedirectRefusal::Insecure));
        assert_eq!(chain.follow(&url("https://a.site/0")), Err(RedirectRefusal::Loop));
        let mut plain = Chain::new(url("http://a.site/0"));
        assert_eq!(plain.follow(&url("https://a.site/0")), Ok(()));
        assert_eq!(plain.follow(&url("http://a.site/1")), Err(RedirectRefusal::Insecure));
    }

    /// CVE-2024-45336: the rule looks at the initial address, and a dropped credential stays dropped.
    #[test]
    fn a_dropped_credential_never_comes_back() {
        let mut chain = Chain::new(url("https://a.site/0"));
        chain.follow(&url("https://sub.a.site/1")).unwrap();
        assert!(chain.keeps_credential());
        chain.follow(&url("https://b.site/1")).unwrap();
        assert!(!chain.keeps_credential());
        chain.follow(&url("https://b.site/2")).unwrap();
        assert!(!chain.keeps_credential());
        chain.follow(&url("https://a.site/3")).unwrap();
        assert!(!chain.keeps_credential());
    }
}
