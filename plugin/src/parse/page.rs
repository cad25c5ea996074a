//! An HTML page in a feed's place: which feeds it offers.
//!
//! Owns the reading of `<link rel="alternate">`. Nothing else of the page is looked at or told.

use url::Url;

use crate::html::attributes::Attributes;
use crate::html::tokens::{Token, Tokens};

/// Feeds of a page that are told.
const MAX_FEEDS: usize = 3;

/// Bytes of one address that is told.
const MAX_ADDRESS_BYTES: usize = 256;

/// Tags that are looked at: the links stand in the head.
const MAX_TAGS: usize = 2_000;

/// Media types of feeds.
const TYPES: [&str; 5] = [
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/x.atom+xml",
];

/// The addresses of the feeds that a page offers.
pub(super) fn feeds(page: &str, base: Option<&Url>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let starts = Tokens::new(page, false).take(MAX_TAGS).filter_map(|token| match token {
        Token::Start { name, attributes, .. } if name.eq_ignore_ascii_case("link") => Some(attributes),
        _ => None,
    });
    for attributes in starts {
        let (mut rel, mut media_type, mut href) = (String::new(), String::new(), String::new());
        for (name, value) in Attributes::new(attributes) {
            match name.to_ascii_lowercase().as_str() {
                "rel" => rel = value.to_ascii_lowercase(),
                "type" => media_type = value.trim().to_ascii_lowercase(),
                "href" => href = value.into_owned(),
                _ => {}
            }
        }
        let offers = rel.split_ascii_whitespace().any(|r| r == "alternate") && TYPES.contains(&media_type.as_str());
        let url = match base {
            Some(base) => base.join(href.trim()).ok(),
            None => Url::parse(href.trim()).ok(),
        };
        let Some(url) = url.filter(|u| offers && matches!(u.scheme(), "http" | "https")) else { continue };
        let address = String::from(url);
        if address.len() <= MAX_ADDRESS_BYTES && !out.contains(&address) && out.len() < MAX_FEEDS {
            out.push(address);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_offers_its_alternates_of_feed_types() {
        let page = "<!doctype html><head><link rel=stylesheet href=x.css><LINK REL='alternate' TYPE=\"application/rss+xml\" \
                    HREF=\"/feed?a=1&amp;b=2\"><link rel='home alternate' type='application/atom+xml' href=atom.xml>\
                    <link rel=alternate type=text/html href=/en><link rel=alternate type=application/rss+xml \
                    href='javascript:x'></head>";
        let base = Url::parse("https://a.example/blog/").ok();
        assert_eq!(feeds(page, base.as_ref()), ["https://a.example/feed?a=1&b=2", "https://a.example/blog/atom.xml"]);
        assert!(feeds("<p>no links</p>", base.as_ref()).is_empty());
    }
}
