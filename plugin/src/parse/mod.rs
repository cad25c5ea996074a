//! From a decoded document to the one reading of a feed.
//!
//! Owns which dialect a document is read as. feed-rs reads every XML document too: what it knows better than the
//! outline (media objects) is taken from it. The other fields come from the outline, since they enter hashes and
//! feed-rs changes them. Must not know records.

mod atom;
mod dtd;
mod fields;
mod json;
mod media;
mod more;
mod outline;
mod page;
mod repair;
mod required;
mod rss;

use url::Url;

use crate::model::Feed;
use crate::notes::{Code, Notes};

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
    /// It has more elements than a feed can need.
    Elements,
    /// Its own entities bring more than a feed can need.
    Dtd,
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
            Self::Elements => "elements",
            Self::Dtd => "dtd",
        }
    }
}

/// Why a document is not a feed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{} (stage {}, byte {position})", self.sentence(), self.offered(), self.stage.name())]
pub struct ParseError {
    /// At which step.
    pub stage: Stage,
    /// Byte position in the decoded document.
    pub position: u64,
    /// Addresses of feeds that an HTML page offers.
    pub feeds: Vec<String>,
}

impl ParseError {
    fn at(stage: Stage, position: u64) -> Self {
        Self { stage, position, feeds: Vec::new() }
    }

    /// The feeds that a page offers, as part of the sentence.
    fn offered(&self) -> String {
        if self.feeds.is_empty() { String::new() } else { format!("; it offers {}", self.feeds.join(", ")) }
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
            Stage::Elements => "The document has more elements than a feed can need, so it is refused",
            Stage::Dtd => "The document declares entities that bring more text than a feed can need, so it is refused",
        }
    }
}

/// Reads a whole document.
///
/// `base` is the address that it came from; what was odd about the document goes into `notes`.
///
/// # Errors
/// The step at which it turned out not to be a whole feed. Half a feed is never returned.
pub fn read(document: &str, base: Option<&Url>, notes: &Notes) -> Result<Feed, ParseError> {
    let clean = repair::control_characters(document, notes);
    let (start, junk) = repair::junk_before(&clean);
    if start.is_empty() {
        return Err(ParseError::at(Stage::Empty, 0));
    }
    // The first character decides, never a search: a JSON Feed may quote any markup.
    if start.starts_with(['{', '[']) {
        return json::read(start, base, notes);
    }
    if is_html(start) {
        return Err(ParseError { feeds: page::feeds(start, base), ..ParseError::at(Stage::Html, 0) });
    }
    if !start.starts_with('<') {
        return Err(ParseError::at(Stage::NotAFeed, 0));
    }
    if junk > 0 {
        notes.add(Code::JunkBeforeDocument, Some(0), "");
    }
    read_xml(start, base, notes)
}

/// What the repair ladder makes of a text; `None` where it changes nothing.
#[must_use]
pub fn repaired(text: &str, notes: &Notes) -> Option<String> {
    repair::markup(text, notes)
}

/// Reads an XML document: as it stands where it is well-formed, else through the repair ladder, once.
fn read_xml(document: &str, base: Option<&Url>, notes: &Notes) -> Result<Feed, ParseError> {
    let first = Notes::default();
    let repaired;
    let (document, outline) = match outline::read(document, base, &first, false) {
        Ok(outline) => {
            notes.take(&first);
            (document, outline)
        }
        Err(error) if matches!(error.stage, Stage::Dtd | Stage::Depth | Stage::Elements) => return Err(error),
        Err(error) => match repair::markup(document, notes) {
            Some(text) => {
                repaired = text;
                (repaired.as_str(), outline::read(&repaired, base, notes, true)?)
            }
            None => return Err(error),
        },
    };
    let mut feed = match outline.root.name.to_ascii_lowercase().as_str() {
        "rss" | "rdf" | "channel" => rss::read(document, &outline, notes),
        "feed" | "entry" => atom::read(document, &outline, notes),
        "html" => return Err(ParseError { feeds: page::feeds(document, base), ..ParseError::at(Stage::Html, 0) }),
        _ => return Err(ParseError::at(Stage::NotAFeed, 0)),
    };
    required::check(&outline, &feed, notes);
    if media::is_wanted(document) {
        media::complete(&mut feed, document, &outline);
    }
    Ok(feed)
}

/// Whether a document starts as an HTML page does, which an XML reader would only call malformed.
fn is_html(start: &str) -> bool {
    let mut rest = start;
    let mut says_html = false;
    // Declarations and comments may stand before the doctype.
    for _ in 0..16 {
        rest = rest.trim_start();
        let skip = if rest.starts_with("<!--") {
            rest.find("-->").map(|i| i + 3)
        } else if rest.starts_with("<?") {
            rest.find("?>").map(|i| i + 2)
        } else if rest.get(..9).is_some_and(|d| d.eq_ignore_ascii_case("<!doctype")) {
            // Some feeds carry a page's document type; the root element decides.
            says_html |= rest.get(9..32).is_some_and(|d| d.trim_start().to_ascii_lowercase().starts_with("html"));
            rest.find('>').map(|i| i + 1)
        } else {
            None
        };
        match skip.and_then(|s| rest.get(s..)) {
            Some(tail) => rest = tail,
            None => break,
        }
    }
    let head: String = rest.chars().take(15).flat_map(char::to_lowercase).collect();
    let is_feed = ["<rss", "<rdf", "<feed", "<channel", "<atom:"].iter().any(|root| head.starts_with(root));
    ["<html", "<head", "<body"].iter().any(|root| head.starts_with(root)) || (says_html && !is_feed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_elements_are_read_and_one_more_is_refused() {
        // The root, the channel and the item are three of them.
        for (count, stage) in [(999_997, None), (999_998, Some(Stage::Elements))] {
            let document = format!(
                "<rss><channel><item><description>{}</description></item></channel></rss>",
                "<b/>".repeat(count - 1)
            );
            let read = read(&document, None, &Notes::default());
            assert_eq!(read.err().map(|e| e.stage), stage, "{count}");
        }
    }
}
