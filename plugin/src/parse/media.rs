//! Media objects: what feed-rs reads better than the outline.
//!
//! Owns the call to feed-rs: what is hidden from it, and what is taken. It panics on some documents (a second
//! declaration that names an encoding, durations of too many digits), so what would make it panic is blanked in a
//! copy; where it refuses a document that the outline could read, the feed goes without media objects.

use super::outline::Outline;
use crate::model::{Enclosure, Feed};

/// Digits in a row beyond which feed-rs overflows while it reads a duration.
const MAX_DIGITS: usize = 9;

/// Names of elements and attributes whose values feed-rs reads as durations (`itunes:duration`, `media:text start`
/// and `end`, `media:thumbnail time`).
const DURATIONS: [&str; 4] = ["duration", "start", "end", "time"];

/// Whether the document has anything that this module would add.
pub(super) fn is_wanted(document: &str) -> bool {
    memchr::memmem::find(document.as_bytes(), b"search.yahoo.com/mrss").is_some()
}

/// Gives items without enclosures those of their Media RSS content (Media RSS 1.5.1, `media:content`).
pub(super) fn complete(feed: &mut Feed, document: &str, outline: &Outline<'_>) {
    let base = outline.root.base.as_ref().map(url::Url::as_str);
    let parser = feed_rs::parser::Builder::new()
        .base_uri(base)
        .sanitize_content(false)
        // Identity is made elsewhere; a generator of our own also keeps feed-rs from asking for randomness.
        .id_generator(|_, _, _| String::new())
        .timestamp_parser(|_| None)
        .build();
    let Ok(read) = parser.parse(harmless(document, outline).as_bytes()) else { return };
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

/// The document with blanks where feed-rs would decode again or overflow.
fn harmless(document: &str, outline: &Outline<'_>) -> String {
    let mut bytes = document.as_bytes().to_vec();
    for range in &outline.declarations {
        if let Some(slice) = bytes.get_mut(range.clone()) {
            slice.fill(b' ');
        }
    }
    for name in DURATIONS {
        blank_durations(&mut bytes, name.as_bytes());
    }
    // Only whole values were replaced, by blanks, so this is UTF-8 still.
    String::from_utf8(bytes).unwrap_or_default()
}

/// Blanks the values of elements and attributes of that name which are no duration that feed-rs can read.
fn blank_durations(bytes: &mut [u8], name: &[u8]) {
    let mut from = 0;
    while let Some(at) = bytes.get(from..).and_then(|rest| memchr::memmem::find(rest, name)) {
        from += at + name.len();
        let Some(value) = value_range(bytes, from) else { continue };
        // Going on behind the value keeps the whole scan linear.
        from = value.end;
        let Some(slice) = bytes.get_mut(value) else { continue };
        let too_long = slice.split(|b| !b.is_ascii_digit()).any(|run| run.len() > MAX_DIGITS);
        if too_long || !slice.is_ascii() {
            slice.fill(b' ');
        }
    }
}

/// The value that follows a name ending at `at`: an attribute in quotes, or the text of an element.
fn value_range(bytes: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let rest = bytes.get(at..)?;
    let lead = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    if rest.get(lead) == Some(&b'=') {
        let quote_at = lead + 1 + rest.get(lead + 1..)?.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let quote = *rest.get(quote_at).filter(|q| matches!(q, b'"' | b'\''))?;
        let length = memchr::memchr(quote, rest.get(quote_at + 1..)?)?;
        return Some(at + quote_at + 1..at + quote_at + 1 + length);
    }
    let open = memchr::memchr(b'>', rest)?;
    let length = memchr::memmem::find(rest.get(open + 1..)?, b"</")?;
    Some(at + open + 1..at + open + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_impossible_durations_are_blanked() {
        let table = [
            ("<d:duration>99999999999999</d:duration>", "<d:duration>              </d:duration>"),
            (
                "<x start=\"12345678901\" url=\"/12345678901.mp3\"/>",
                "<x start=\"           \" url=\"/12345678901.mp3\"/>",
            ),
            ("<d:duration>01:02:03</d:duration>12345678901", "<d:duration>01:02:03</d:duration>12345678901"),
            ("<d:duration>\u{661}:20</d:duration>", "<d:duration>     </d:duration>"),
        ];
        for (input, expected) in table {
            let mut bytes = input.as_bytes().to_vec();
            for name in DURATIONS {
                blank_durations(&mut bytes, name.as_bytes());
            }
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }
}
