//! Canonical JSON: the bytes that enter a revision and the form of a checkpoint.
//!
//! Owns the escaping of Go's `encoding/json`, which Quivr's plugin hashes: `<`, `>` and `&` as `\u003c`, `\u003e`,
//! `\u0026`, U+2028 and U+2029 escaped, other characters raw. Members are written in the order given.

use sha2::{Digest, Sha256};

/// Where JSON goes: into a text, or straight into a hash.
pub trait Sink {
    /// Takes the next piece.
    fn put(&mut self, text: &str);
}

impl Sink for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// A hash of what is written. Pieces are gathered first: escaping makes many small ones, and each update costs.
#[derive(Debug, Default)]
pub struct Hashing {
    hash: Sha256,
    gathered: Vec<u8>,
}

/// Bytes gathered before they are hashed.
const GATHERED: usize = 8 * 1_024;

impl Hashing {
    /// The hash of everything that was written.
    #[must_use]
    pub fn finalize(mut self) -> [u8; 32] {
        self.hash.update(&self.gathered);
        self.hash.finalize().into()
    }
}

impl Sink for Hashing {
    fn put(&mut self, text: &str) {
        self.gathered.extend_from_slice(text.as_bytes());
        if self.gathered.len() >= GATHERED {
            self.hash.update(&self.gathered);
            self.gathered.clear();
        }
    }
}

/// Writes one JSON object; empty members are left out by the caller's choice of method.
#[derive(Debug, Default)]
pub struct Object<S = String> {
    out: S,
    has_members: bool,
}

impl Object {
    /// Starts an object as a text.
    #[must_use]
    pub fn new() -> Self {
        Self::over(String::new())
    }
}

impl<S: Sink> Object<S> {
    /// Starts an object in a sink.
    #[must_use]
    pub fn over(mut out: S) -> Self {
        out.put("{");
        Self { out, has_members: false }
    }

    fn name(&mut self, name: &str) {
        if self.has_members {
            self.out.put(",");
        }
        self.has_members = true;
        string(&mut self.out, name);
        self.out.put(":");
    }

    /// A member whose value is JSON already.
    pub fn raw(&mut self, name: &str, json: &str) {
        self.name(name);
        self.out.put(json);
    }

    /// A string member, also when it is empty.
    pub fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        string(&mut self.out, value);
    }

    /// A string member unless it is empty.
    pub fn text_unless_empty(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.text(name, value);
        }
    }

    /// A list member unless it is empty; each element is written by `write`.
    pub fn list_unless_empty<T>(&mut self, name: &str, list: &[T], mut write: impl FnMut(&mut S, &T)) {
        if list.is_empty() {
            return;
        }
        self.name(name);
        self.out.put("[");
        for (n, element) in list.iter().enumerate() {
            if n > 0 {
                self.out.put(",");
            }
            write(&mut self.out, element);
        }
        self.out.put("]");
    }

    /// `true` unless it is false.
    pub fn flag_if_set(&mut self, name: &str, value: bool) {
        if value {
            self.raw(name, "true");
        }
    }

    /// The sink with the finished object.
    #[must_use]
    pub fn finish(mut self) -> S {
        self.out.put("}");
        self.out
    }
}

/// Appends a JSON string.
pub fn string(out: &mut impl Sink, value: &str) {
    out.put("\"");
    let bytes = value.as_bytes();
    let mut start = 0;
    for (at, &b) in bytes.iter().enumerate() {
        // E2 80 A8 and E2 80 A9 are U+2028 and U+2029; no other character needs a look at more than one byte.
        let line_separator =
            b == 0xE2 && bytes.get(at + 1) == Some(&0x80) && matches!(bytes.get(at + 2), Some(0xA8 | 0xA9));
        if !line_separator && !matches!(b, 0..=0x1F | b'"' | b'\\' | b'<' | b'>' | b'&') {
            continue;
        }
        out.put(value.get(start..at).unwrap_or(""));
        start = at + if line_separator { 3 } else { 1 };
        match b {
            b'"' => out.put("\\\""),
            b'\\' => out.put("\\\\"),
            b'\n' => out.put("\\n"),
            b'\r' => out.put("\\r"),
            b'\t' => out.put("\\t"),
            0x08 => out.put("\\b"),
            0x0C => out.put("\\f"),
            0xE2 => out.put(if bytes.get(at + 2) == Some(&0xA8) { "\\u2028" } else { "\\u2029" }),
            b'<' => out.put("\\u003c"),
            b'>' => out.put("\\u003e"),
            b'&' => out.put("\\u0026"),
            _ => out.put(&format!("\\u{b:04x}")),
        }
    }
    out.put(value.get(start..).unwrap_or(""));
    out.put("\"");
}

/// The number of bytes that [`string`] would append.
#[must_use]
pub fn string_length(value: &str) -> usize {
    let mut separators = 0;
    let extra: usize = value
        .bytes()
        .map(|b| match b {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 1,
            0..=0x1F | b'<' | b'>' | b'&' => 5,
            0xE2 => {
                separators += 1;
                0
            }
            _ => 0,
        })
        .sum();
    // Only a text that has that byte at all is looked at again, character by character.
    if separators > 0 {
        separators = value.matches(['\u{2028}', '\u{2029}']).count() * 3;
    }
    value.len() + extra + separators + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_go_does() {
        let table = [
            ("T & <b>U</b>", r#""T \u0026 \u003cb\u003eU\u003c/b\u003e""#),
            ("a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{7f}", "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\u{7f}\""),
            ("caf\u{e9} \u{2028}\u{2029}\u{1F600}", "\"caf\u{e9} \\u2028\\u2029\u{1F600}\""),
            ("", "\"\""),
        ];
        for (value, expected) in table {
            let mut out = String::new();
            string(&mut out, value);
            assert_eq!(out, expected);
            assert_eq!(string_length(value), expected.len());
        }
    }
}
