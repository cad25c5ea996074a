//! `connector.lines`: each line of a plain text document becomes a record.
//!
//! The smallest connector that keeps the whole contract, to start another one from (`docs/connectors.md` walks through
//! it). This file has the rules, as functions that any test can call; `component.rs` is the face towards `wit/` and has
//! none.

#[cfg(target_arch = "wasm32")]
mod component;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The kind of source that it serves.
pub const KIND: &str = "lines";

/// Items of a page.
pub const MAX_ITEMS: usize = 100;

/// Lines that are read: with 16 bytes for each the checkpoint stays below its 128 KiB.
pub const MAX_LINES: usize = 5_000;

/// Bytes of a line that become text: the host bounds a part too.
pub const MAX_LINE_BYTES: usize = 64 * 1_024;

/// JSON Schema of an instance's config. The host shows it, and checks a config before it ever gets here.
pub const CONFIG_SCHEMA: &str = r#"{
  "type": "object",
  "properties": {"url": {"type": "string", "minLength": 1, "maxLength": 2048}},
  "required": ["url"],
  "additionalProperties": false
}"#;

/// Config of an instance.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address of the document.
    pub url: String,
}

/// What is remembered from page to page and from run to run: all that there is of state.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Entity tag of the document that was read to its end, sent back as `If-None-Match`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The lines that the host has, by the short form of their keys, sorted so that the same state is the same bytes.
    pub seen: BTreeSet<String>,
}

/// A failure: its code and the sentence for people. What makes it which class is the face's to say.
pub type Invalid = (&'static str, &'static str);

/// A line that the host does not have.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its identity: the whole hash of its text.
    pub key: String,
    /// The text.
    pub text: String,
}

/// One page.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// New lines, in document order.
    pub lines: Vec<Line>,
    /// What the next call gets.
    pub checkpoint: Checkpoint,
    /// Whether another page follows.
    pub more: bool,
    /// Keys of all lines of the document.
    pub window: Vec<String>,
    /// Lines behind the bound.
    pub left_out: usize,
}

/// Reads the config. No word of it goes into the message: it may be a secret in the wrong place.
///
/// # Errors
/// Where it is none.
pub fn config(text: &str) -> Result<Config, Invalid> {
    serde_json::from_str(text).map_err(|_| ("invalid_config", "The config is not an object with the member url alone"))
}

/// Reads the checkpoint; none means the first run.
///
/// # Errors
/// Where it is none of ours. To go on with an empty one would send everything again.
pub fn checkpoint(text: Option<&str>) -> Result<Checkpoint, Invalid> {
    match text {
        None => Ok(Checkpoint::default()),
        Some(text) => serde_json::from_str(text)
            .map_err(|_| ("invalid_checkpoint", "The checkpoint was not made by this connector")),
    }
}

/// One page of a document: the first lines that the checkpoint does not know.
#[must_use]
pub fn page(body: &[u8], etag: Option<String>, before: &Checkpoint) -> Page {
    // Bytes that are not UTF-8 are replaced: a document that is odd is still a document.
    let text = String::from_utf8_lossy(body);
    let lines = || text.lines().map(|l| l.trim().replace('\0', " ")).filter(|l| !l.is_empty());
    let (mut new, mut window, mut all) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut more = false;
    for line in lines().take(MAX_LINES) {
        let key = key(&line);
        let short = short(&key);
        // A line that stands there twice is one record.
        if !all.insert(short.clone()) {
            continue;
        }
        window.push(key.clone());
        if before.seen.contains(&short) {
            continue;
        }
        if new.len() < MAX_ITEMS {
            new.push(Line { key, text: cut(&line).to_owned() });
        } else {
            more = true;
            all.remove(&short);
            // It stays in the window all the same: it is on the page of the source.
        }
    }
    let seen = all.iter().filter(|s| before.seen.contains(*s)).cloned().chain(new.iter().map(|l| short(&l.key)));
    let seen = seen.collect();
    // Only a document that was read to its end may be asked for by its tag: half of one would never be sent again.
    let etag = if more { before.etag.clone() } else { etag };
    let left_out = lines().count().saturating_sub(MAX_LINES);
    Page { lines: new, checkpoint: Checkpoint { etag, seen }, more, window, left_out }
}

/// Text for HTML and XML: nothing of it is markup, and XML 1.0 knows no control characters.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
        out
    })
}

/// Text for Markdown: every character that could mean something is escaped.
#[must_use]
pub fn markdown(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
        out
    })
}

/// The identity of a line.
fn key(line: &str) -> String {
    Sha256::digest(line.as_bytes()).iter().fold(String::from("sha256:"), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

/// Eight bytes of a key tell 5,000 lines apart.
fn short(key: &str) -> String {
    key.chars().skip("sha256:".len()).take(16).collect()
}

fn cut(line: &str) -> &str {
    line.get(..line.floor_char_boundary(MAX_LINE_BYTES)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;

    fn texts(page: &Page) -> Vec<&str> {
        page.lines.iter().map(|l| l.text.as_str()).collect()
    }

    #[test]
    fn new_lines_are_sent_once_and_the_rest_is_the_window() {
        let first = page(b"one\n\n two \r\none\n", Some("\"1\"".to_owned()), &Checkpoint::default());
        assert_eq!((texts(&first), first.more, first.window.len()), (vec!["one", "two"], false, 2));
        let second = page(b"three\ntwo\n", Some("\"2\"".to_owned()), &first.checkpoint);
        assert_eq!((texts(&second), second.window.len()), (vec!["three"], 2));
        // What left the document is forgotten, so that the checkpoint does not grow for ever.
        assert_eq!((second.checkpoint.seen.len(), second.checkpoint.etag.as_deref()), (2, Some("\"2\"")));
    }

    #[test]
    fn a_long_document_comes_in_pages_and_is_asked_for_whole_until_its_end() {
        let body: String = (0..250).map(|n| format!("line {n}\n")).collect();
        let mut checkpoint = Checkpoint::default();
        let mut sent = 0;
        for (expected, more) in [(100, true), (100, true), (50, false)] {
            let page = page(body.as_bytes(), Some("\"1\"".to_owned()), &checkpoint);
            assert_eq!((page.lines.len(), page.more, page.window.len()), (expected, more, 250));
            assert_eq!(page.checkpoint.etag.is_some(), !more);
            assert_ne!(page.checkpoint, checkpoint);
            sent += page.lines.len();
            checkpoint = page.checkpoint;
        }
        assert_eq!((sent, checkpoint.seen.len()), (250, 250));
    }

    #[test]
    fn what_is_too_much_is_left_out_and_counted() {
        let body: String = (0..MAX_LINES + 7).map(|n| format!("{n}\n")).collect();
        assert_eq!(page(body.as_bytes(), None, &Checkpoint::default()).left_out, 7);
        let long = page("\u{e9}".repeat(MAX_LINE_BYTES).as_bytes(), None, &Checkpoint::default());
        assert!(long.lines.first().unwrap().text.len() <= MAX_LINE_BYTES);
    }

    #[test]
    fn what_could_be_markup_is_escaped() {
        assert_eq!(escaped("a<b> & \u{1}c"), "a&lt;b&gt; &amp; c");
        assert_eq!(markdown("1. *a* <b>"), "1\\. \\*a\\* \\<b\\>");
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        assert_eq!(config("{\"url\": \"https://example.org/a\"}").unwrap().url, "https://example.org/a");
        for bad in ["{", "{}", "{\"url\": 1}", "{\"url\": \"a\", \"b\": 1}"] {
            assert_eq!(config(bad).unwrap_err().0, "invalid_config");
        }
        assert_eq!(checkpoint(Some("no")).unwrap_err().0, "invalid_checkpoint");
        assert_eq!(checkpoint(None), Ok(Checkpoint::default()));
    }
}
