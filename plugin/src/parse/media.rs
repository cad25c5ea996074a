//! Media objects: what feed-rs reads better than the outline.
//!
//! Owns the call to feed-rs: what is hidden from it, and what is taken. It panics on some documents (a second
//! declaration that names an encoding, durations of too many digits), so what would make it panic is blanked in a
//! copy; where it refuses a document that the outline could read, the feed goes without media objects.

use super::outline::Outline;
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
    for range in &outline.durations {
        let Some(value) = bytes.get_mut(range.clone()) else { continue };
        let too_long = value.split(|b| !b.is_ascii_digit()).any(|run| run.len() > MAX_DIGITS);
        // What a reference stands for is only known after decoding, and no duration needs one.
        if too_long || !value.is_ascii() || value.contains(&b'&') {
            value.fill(b' ');
        }
    }
    // Only whole values were replaced, by blanks, so this is UTF-8 still.
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document as feed-rs gets it.
    fn given(items: &str) -> String {
        let document = format!("<rss><channel><item>{items}</item></channel></rss>");
        let outline = super::super::outline::read(&document, None).unwrap();
        let harmless = harmless(&document, &outline);
        harmless
            .strip_prefix("<rss><channel><item>")
            .unwrap()
            .strip_suffix("</item></channel></rss>")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn only_impossible_durations_are_blanked() {
        let table = [
            ("<duration>99999999999999</duration>", "<duration>              </duration>"),
            (
                "<x start=\"12345678901\" url=\"/12345678901.mp3\"/>",
                "<x start=\"           \" url=\"/12345678901.mp3\"/>",
            ),
            ("<duration>01:02:03</duration>12345678901", "<duration>01:02:03</duration>12345678901"),
            ("<duration>\u{661}:20</duration>", "<duration>     </duration>"),
            ("<duration>&#49;&#49;</duration>", "<duration>          </duration>"),
            ("<duration><![CDATA[12345678901]]></duration>", "<duration>                       </duration>"),
            ("<duration>1<b>\u{e9}</b></duration>", "<duration>1<b>\u{e9}</b></duration>"),
            // Words that only look like the names of durations change nothing.
            (
                "<title>Weekend time</title><a>\u{e9} 12345678901</a>",
                "<title>Weekend time</title><a>\u{e9} 12345678901</a>",
            ),
        ];
        for (input, expected) in table {
            assert_eq!(given(input), expected);
        }
    }
}
