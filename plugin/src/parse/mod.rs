//! From a decoded document to the one reading of a feed.
//!
//! Owns which dialect a document is read as. feed-rs reads every XML document too: what it knows better than the
//! outline (media objects) is taken from it. The other fields come from the outline, since they enter hashes and
//! feed-rs changes them. Must not know records.

mod atom;
mod fields;
mod json;
mod media;
mod outline;
mod rss;

use url::Url;

use crate::model::Feed;

/// Items of one document that are considered, in document order (Quivr's bound; years of history fit elsewhere).
pub const MAX_ITEMS: usize = 1_000;

/// At which step a document turned out not to be a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// There is nothing in it.
    Empty,
    /// It is an HTML page.
    Html,
    /// It is XML or JSON but no feed.
    NotAFeed,
    /// It is not well-formed XML.
    Xml,
    /// It is not JSON.
    Json,
    /// It ends too early.
    Truncated,
    /// It nests too deep.
    Depth,
}

impl Stage {
    /// The name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Html => "html",
            Self::NotAFeed => "root",
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Truncated => "truncated",
            Self::Depth => "depth",
        }
    }
}

/// Why a document is not a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} (stage {}, byte {position})", self.sentence(), self.stage.name())]
pub struct ParseError {
    /// At which step.
    pub stage: Stage,
    /// Byte position in the decoded document.
    pub position: u64,
}

impl ParseError {
    fn at(stage: Stage, position: u64) -> Self {
        Self { stage, position }
    }

    /// What is wrong and what to do, without a word of the document.
    fn sentence(&self) -> &'static str {
        match self.stage {
            Stage::Empty => "The response has no content; ask the publisher whether the feed still exists",
            Stage::Html => {
                "The address gives an HTML page, not a feed; look in the page for a link with rel=\"alternate\""
            }
            Stage::NotAFeed => "The document is not an RSS, Atom or JSON feed; check the address",
            Stage::Xml => "The feed is not well-formed XML; tell the publisher",
            Stage::Json => "The feed is not valid JSON; tell the publisher",
            Stage::Truncated => "The feed ends too early, so no part of it is used; it is read again at the next poll",
            Stage::Depth => "The feed nests elements too deep to be read",
        }
    }
}

/// Reads a whole document.
///
/// `base` is the address that it came from.
///
/// # Errors
/// The step at which it turned out not to be a whole feed. Half a feed is never returned.
pub fn read(document: &str, base: Option<&Url>) -> Result<Feed, ParseError> {
    let start = document.trim_start();
    match start.chars().next() {
        None => Err(ParseError::at(Stage::Empty, 0)),
        Some('{' | '[') => json::read(start, base),
        Some('<') => {
            if is_html(start) {
                return Err(ParseError::at(Stage::Html, 0));
            }
            read_xml(start, base)
        }
        Some(_) => Err(ParseError::at(Stage::NotAFeed, 0)),
    }
}

fn read_xml(document: &str, base: Option<&Url>) -> Result<Feed, ParseError> {
    let outline = outline::read(document, base)?;
    let mut feed = match outline.root.name.to_ascii_lowercase().as_str() {
        "rss" | "rdf" | "channel" => rss::read(document, &outline),
        "feed" | "entry" => atom::read(document, &outline),
        "html" => return Err(ParseError::at(Stage::Html, 0)),
        _ => return Err(ParseError::at(Stage::NotAFeed, 0)),
    };
    if media::is_wanted(document) {
        media::complete(&mut feed, document, &outline);
    }
    Ok(feed)
}

/// Whether a document starts as an HTML page does, which an XML reader would only call malformed.
fn is_html(start: &str) -> bool {
    let mut rest = start;
    // Declarations and comments may stand before the doctype.
    for _ in 0..16 {
        rest = rest.trim_start();
        let skip = if rest.starts_with("<!--") {
            rest.find("-->").map(|i| i + 3)
        } else if rest.starts_with("<?") {
            rest.find("?>").map(|i| i + 2)
        } else {
            None
        };
        match skip.and_then(|s| rest.get(s..)) {
            Some(tail) => rest = tail,
            None => break,
        }
    }
    let head: String = rest.chars().take(15).flat_map(char::to_lowercase).collect();
    head.starts_with("<!doctype html")
        || head.starts_with("<html")
        || head.starts_with("<head")
        || head.starts_with("<body")
}
