//! Media objects: what feed-rs reads better than the outline.
//!
//! Owns the call to feed-rs: what is hidden from it, and what is taken. It panics on some documents (a second
//! declaration that names an encoding, durations of too many digits), so what would make it panic is blanked in a
//! copy; where it refuses a document that the outline could read, the feed goes without media objects.

use super::outline::Outline;
use super::repair::{self, Kind};
use crate::model::{Enclosure, Feed};

/// Digits in a row beyond which feed-rs overflows while it reads a duration.
const MAX_DIGITS: usize = 9;

/// Whether the document has anything that this module would add.
pub(super) fn is_wanted(document: &str) -> bool {
    memchr::memmem::find(document.as_bytes(), b"search.yahoo.com/mrss").is_some()
}

/// Gives items without enclosures those of their Media RSS content (Media RSS 1.5.1, `media:content`).
pub(super) fn complete(feed: &mut Feed, document: &str, outline: &Outline<'_>) {
    let base = outline.root.base.as_ref().map(|b| b.as_str());
    let parser = feed_rs::parser::Builder::new()
        .base_uri(base)
        .sanitize_content(false)
        // Identity is made elsewhere; a generator of our own also keeps feed-rs from asking for randomness.
        .id_generator(|_, _, _| String::new())
        .timestamp_parser(|_| None)
        .build();
    // What stands behind the root element is no part of the feed.
    let feed_alone = document.get(..outline.end).unwrap_or(document);
    let Ok(read) = parser.parse(harmless(feed_alone).as_bytes()) else { return };
    // The two readers must agree on what the items are, else an enclosure could go to a stranger.
    if read.entries.len() != feed.items_in_document {
        return;
    }
    for (item, entry) in feed.items.iter_mut().zip(read.entries) {
        if !item.enclosures.is_empty() {
            continue;
        }
        for content in entry.media.into_iter().flat_map(|m| m.content) {
            let Some(url) = content.url else { continue };
            item.enclosures.push(Enclosure {
                url: url.into(),
                media_type: content.content_type.map(|t| t.to_string()).unwrap_or_default(),
                length: content.size.map(|s| s.to_string()).unwrap_or_default(),
            });
        }
    }
}

/// The document with blanks where feed-rs would decode again or overflow: declarations, numbers of many digits in texts
/// (it reads some as durations) and in the attributes that it reads as durations. No media object needs any of them.
fn harmless(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for (kind, range) in repair::pieces(document) {
        let piece = document.get(range).unwrap_or("");
        match kind {
            Kind::Start => start_tag(&mut out, piece),
            Kind::Other if piece.starts_with("<?") => blanks(&mut out, piece),
            Kind::Text | Kind::Other => text(&mut out, piece),
            Kind::End | Kind::Unfinished => out.push_str(piece),
        }
    }
    out
}

fn blanks(out: &mut String, piece: &str) {
    out.extend(std::iter::repeat_n(' ', piece.len()));
}

/// A text without long numbers; a reference to a digit may be part of one.
fn text(out: &mut String, piece: &str) {
    let mut run = 0;
    for c in piece.chars() {
        run = if c.is_ascii_digit() { run + 1 } else { 0 };
        if run > MAX_DIGITS || c == '#' || (!c.is_ascii() && c.is_numeric()) { blanks(out, " ") } else { out.push(c) }
    }
}

/// A start tag whose durations are blanked where they are none.
fn start_tag(out: &mut String, tag: &str) {
    let mut rest = tag;
    while let Some(equals) = rest.find('=') {
        let (before, after) = rest.split_at_checked(equals + 1).unwrap_or((rest, ""));
        out.push_str(before);
        let name = before.trim_end_matches('=').trim_end();
        let name = name.rsplit(|c: char| c.is_ascii_whitespace() || c == ':').next().unwrap_or("");
        let space = after.len() - after.trim_ascii_start().len();
        out.push_str(after.get(..space).unwrap_or(""));
        let value = after.get(space..).unwrap_or("");
        let end = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value.get(1..).and_then(|v| v.find(quote)).map(|at| at + 2),
            _ => None,
        };
        let (value, tail) = value.split_at_checked(end.unwrap_or(0)).unwrap_or(("", value));
        let is_duration = matches!(name, "start" | "end" | "time");
        if is_duration && (!value.is_ascii() || value.contains('&') || value.len() > MAX_DIGITS + 2) {
            out.push_str(value.get(..1).unwrap_or(""));
            blanks(out, value.get(1..value.len() - 1).unwrap_or(""));
            out.push_str(value.get(value.len() - 1..).unwrap_or(""));
        } else {
            out.push_str(value);
        }
        rest = tail;
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_impossible_durations_are_blanked() {
        let table = [
            ("<duration>99999999999999</duration>", "<duration>999999999     </duration>"),
            (
                "<x start=\"12345678901\" url=\"/12345678901.mp3\"/>",
                "<x start=\"           \" url=\"/12345678901.mp3\"/>",
            ),
            ("<x media:end = '1:02' fileSize='12345678901'/>", "<x media:end = '1:02' fileSize='12345678901'/>"),
            ("<duration>01:02:03</duration>", "<duration>01:02:03</duration>"),
            ("<duration>\u{661}:20</duration>", "<duration> :20</duration>"),
            ("<duration>&#49;&#49;</duration>", "<duration>& 49;& 49;</duration>"),
            ("<duration><![CDATA[12345678901]]></duration>", "<duration><![CDATA[123456789  ]]></duration>"),
            ("<?xml encoding='x'?><a b='=' time=''/>", "                    <a b='=' time=''/>"),
        ];
        for (input, expected) in table {
            assert_eq!(harmless(input), expected);
        }
    }
}
