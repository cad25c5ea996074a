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

/// How many bytes more than itself each byte takes when it is escaped. One look-up for each byte of a feed is what most
/// of them cost, so they are looked up and not compared. E2 may start U+2028 or U+2029, which takes a closer look.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it: an index out of range is an error")]
const EXTRA: [u8; 256] = {
    let mut extra = [0; 256];
    let mut b = 0;
    while b < 0x20 {
        extra[b] = 5;
        b += 1;
    }
    let short = [b'"', b'\\', b'\n', b'\r', b'\t', 0x08, 0x0C];
    let mut n = 0;
    while n < short.len() {
        extra[short[n] as usize] = 1;
        n += 1;
    }
    extra[b'<' as usize] = 5;
    extra[b'>' as usize] = 5;
    extra[b'&' as usize] = 5;
    extra[LINE_SEPARATOR as usize] = 3;
    extra
};

/// Bytes that one byte takes at most when it is escaped.
pub const MAX_ESCAPED: usize = 6;

/// The first byte of U+2028 (E2 80 A8) and U+2029 (E2 80 A9).
const LINE_SEPARATOR: u8 = 0xE2;

fn extra(b: u8) -> u8 {
    EXTRA.get(usize::from(b)).copied().unwrap_or(0)
}

/// What Go writes for the control characters.
#[rustfmt::skip]
const CONTROLS: [&str; 0x20] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007",
    "\\b", "\\t", "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f",
    "\\u0010", "\\u0011", "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017",
    "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
];

/// The escape of the character at `at`, whose first byte is `b`, and how many bytes it stands for.
fn escape(value: &str, at: usize, b: u8) -> Option<(&'static str, usize)> {
    let escape = match b {
        b'<' => "\\u003c",
        b'>' => "\\u003e",
        b'&' => "\\u0026",
        b'"' => "\\\"",
        b'\\' => "\\\\",
        LINE_SEPARATOR => match value.get(at..at + 3) {
            Some("\u{2028}") => return Some(("\\u2028", 3)),
            Some("\u{2029}") => return Some(("\\u2029", 3)),
            _ => return None,
        },
        _ => CONTROLS.get(usize::from(b))?,
    };
    Some((escape, 1))
}

/// Appends a JSON string.
pub fn string(out: &mut impl Sink, value: &str) {
    out.put("\"");
    let mut from = 0;
    for (at, &b) in value.as_bytes().iter().enumerate() {
        if extra(b) != 0
            && let Some((escape, length)) = escape(value, at, b)
        {
            out.put(value.get(from..at).unwrap_or(""));
            out.put(escape);
            from = at + length;
        }
    }
    out.put(value.get(from..).unwrap_or(""));
    out.put("\"");
}

/// The number of bytes that [`string`] would append.
#[must_use]
pub fn string_length(value: &str) -> usize {
    let mut more = 0;
    let mut separators = 0;
    for b in value.bytes() {
        more += usize::from(extra(b));
        separators += usize::from(b == LINE_SEPARATOR);
    }
    if separators > 0 {
        // Most characters that start with that byte are others, which take no escape.
        more -= separators * 3;
        more += value.matches(['\u{2028}', '\u{2029}']).count() * 3;
    }
    value.len() + more + 2
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
            ("\u{2014}\u{2019}\u{20ac}", "\"\u{2014}\u{2019}\u{20ac}\""),
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
