//! Attributes of a tag (WHATWG HTML, sections 13.2.5.32 to 13.2.5.38).
//!
//! Owns where a name and a value end, and the decoding of values, in which a reference without a semicolon counts only
//! where no letter, digit or `=` follows it. Linear; never fails.

use std::borrow::Cow;

use super::entities;

/// Attributes of one tag that are read.
const MAX_ATTRIBUTES: usize = 256;

/// Iterates over the attributes of a tag: names as written, values decoded.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    rest: &'a str,
    left: usize,
}

impl<'a> Attributes<'a> {
    /// Over what stands between the name of a tag and its end.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, left: MAX_ATTRIBUTES }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        let is_space = |c: char| c.is_ascii_whitespace();
        self.rest = self.rest.trim_start_matches(|c| is_space(c) || c == '/');
        if self.rest.is_empty() || self.left == 0 {
            return None;
        }
        self.left -= 1;
        // A name may begin with "="; it ends at the next one.
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        let tail = self.rest.get(first..).unwrap_or("");
        let end = tail.find(|c| is_space(c) || matches!(c, '/' | '=')).map_or(self.rest.len(), |at| at + first);
        let (name, tail) = self.rest.split_at_checked(end)?;
        let Some(value) = tail.trim_start_matches(is_space).strip_prefix('=') else {
            self.rest = tail;
            return Some((name, Cow::Borrowed("")));
        };
        let value = value.trim_start_matches(is_space);
        let (written, tail) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let body = value.get(1..).unwrap_or("");
                body.split_once(quote).unwrap_or((body, ""))
            }
            _ => value.split_at_checked(value.find(is_space).unwrap_or(value.len())).unwrap_or((value, "")),
        };
        self.rest = tail;
        Some((name, entities::decode_attribute(written)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_in_every_written_form() {
        let read = |text| Attributes::new(text).map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>();
        assert_eq!(read(" a=1 b = '2 3' c=\"4\"d e/f=g/"), ["a=1", "b=2 3", "c=4", "d=", "e=", "f=g/"]);
        assert_eq!(read("href=\"?a=1&copy=2&amp;b=3&lt\""), ["href=?a=1&copy=2&b=3<"]);
        assert_eq!(read(" =x =\"y"), ["=x=y"]);
        assert!(read("  ").is_empty());
    }
}
