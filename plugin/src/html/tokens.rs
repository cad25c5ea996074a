//! Tokens of HTML (WHATWG HTML, section 13.2.5), over a string, without allocation.
//!
//! Owns where a tag, a comment or a raw text ends. Linear in the input. Attribute values are not decoded here.

use memchr::{memchr, memmem};

/// A token; slices point into the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// Text with its character references.
    Text(&'a str),
    /// The content of a raw text element (`script`, `style` …), which has no markup and no references.
    Raw(&'a str),
    /// A start tag: name as written, the text of its attributes, and whether it ends with `/>`.
    Start {
        /// Name as written.
        name: &'a str,
        /// What stands between the name and the end of the tag.
        attributes: &'a str,
        /// `/>`.
        self_closing: bool,
    },
    /// An end tag with its name as written.
    End(&'a str),
    /// A comment, doctype, processing instruction or CDATA section outside of foreign content.
    Comment,
    /// A tag that the input ends in; a browser shows nothing of it.
    Unclosed(&'a str),
}

/// Elements whose content is text up to their end tag (13.2.5.1 and the rules for parsing tokens).
const RAW_TEXT: &[&str] = &["script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp", "noscript"];

/// Iterates over the tokens of a fragment.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    rest: &'a str,
    raw_until: Option<&'a str>,
    xhtml: bool,
}

impl<'a> Tokens<'a> {
    /// The tokens of `html`. In XHTML a `/>` closes any element, so no raw text follows it.
    #[must_use]
    pub fn new(html: &'a str, xhtml: bool) -> Self {
        Self { rest: html, raw_until: None, xhtml }
    }

    /// What was not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (head, tail) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = tail;
        head
    }

    /// The raw text up to the end tag of `name`, or the rest where there is none.
    fn raw(&mut self, name: &str) -> Option<Token<'a>> {
        let mut from = 0;
        let end = loop {
            let Some(at) = memmem::find(self.rest.as_bytes().get(from..).unwrap_or(&[]), b"</") else {
                break self.rest.len();
            };
            let start = from + at;
            let after = self.rest.get(start + 2..).unwrap_or("");
            if after.get(..name.len()).is_some_and(|n| n.eq_ignore_ascii_case(name))
                && after.as_bytes().get(name.len()).is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>'))
            {
                break start;
            }
            from = start + 2;
        };
        (end > 0).then(|| Token::Raw(self.take(end)))
    }

    /// The markup at the start of the rest, which begins with `<`; `None` where it is text.
    fn markup(&mut self) -> Option<Token<'a>> {
        let bytes = self.rest.as_bytes();
        match bytes.get(1)? {
            b'!' => {
                let length = if self.rest.starts_with("<!--") {
                    comment_end(self.rest)
                } else {
                    memchr(b'>', bytes).map_or(bytes.len(), |i| i + 1)
                };
                self.take(length);
                Some(Token::Comment)
            }
            b'?' => {
                let length = memchr(b'>', bytes).map_or(bytes.len(), |i| i + 1);
                self.take(length);
                Some(Token::Comment)
            }
            b'/' => {
                if !bytes.get(2)?.is_ascii_alphabetic() {
                    let length = memchr(b'>', bytes).map_or(bytes.len(), |i| i + 1);
                    self.take(length);
                    return Some(Token::Comment);
                }
                let (name_end, end, _) = tag_end(bytes, 2);
                let name = self.rest.get(2..name_end).unwrap_or("");
                self.take(end);
                Some(Token::End(name))
            }
            b if b.is_ascii_alphabetic() => {
                let (name_end, end, self_closing) = tag_end(bytes, 1);
                let closed = bytes.get(end.saturating_sub(1)) == Some(&b'>') && end > name_end;
                let name = self.rest.get(1..name_end).unwrap_or("");
                let inner_end = end.saturating_sub(1 + usize::from(self_closing)).max(name_end);
                let attributes = self.rest.get(name_end..inner_end).unwrap_or("");
                let whole = self.take(end);
                if !closed {
                    // The input ends inside the tag (eof-in-tag).
                    return Some(Token::Unclosed(whole));
                }
                // Nearly all names start with another letter than these.
                let may_be_raw = matches!(
                    name.as_bytes().first(),
                    Some(b's' | b't' | b'i' | b'n' | b'x' | b'S' | b'T' | b'I' | b'N' | b'X')
                );
                let raw = may_be_raw && RAW_TEXT.iter().any(|r| r.eq_ignore_ascii_case(name));
                if raw && !(self.xhtml && self_closing) {
                    self.raw_until = Some(name);
                }
                Some(Token::Start { name, attributes, self_closing })
            }
            _ => None,
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.raw_until.take()
            && let Some(raw) = self.raw(name)
        {
            return Some(raw);
        }
        if self.rest.is_empty() {
            return None;
        }
        if self.rest.starts_with('<')
            && let Some(token) = self.markup()
        {
            return Some(token);
        }
        // Text runs to the next "<"; one that starts no markup belongs to it.
        let start = usize::from(self.rest.starts_with('<'));
        let tail = self.rest.as_bytes().get(start..).unwrap_or(&[]);
        let length = memchr(b'<', tail).map_or(self.rest.len(), |i| i + start);
        Some(Token::Text(self.take(length)))
    }
}

/// Where a comment ends: `-->` or `--!>`, at once after `<!-->` and `<!--->`, else the end of the input.
fn comment_end(text: &str) -> usize {
    if text.starts_with("<!-->") {
        return 5;
    }
    if text.starts_with("<!--->") {
        return 6;
    }
    let mut from = 4;
    while let Some(at) = memmem::find(text.as_bytes().get(from..).unwrap_or(&[]), b"--") {
        let end = from + at + 2;
        let after = text.get(end..).unwrap_or("");
        if after.starts_with('>') {
            return end + 1;
        }
        if after.starts_with("!>") {
            return end + 2;
        }
        from = end - 1;
    }
    text.len()
}

/// Scans a tag whose name starts at `at`: where the name ends, where the tag ends, whether by `/>`.
fn tag_end(bytes: &[u8], at: usize) -> (usize, usize, bool) {
    let is_break = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b'>');
    let rest = bytes.get(at..).unwrap_or(&[]);
    let name_end = at + rest.iter().position(is_break).unwrap_or(rest.len());
    let mut i = name_end;
    let mut after_equals = false;
    while let Some(&b) = bytes.get(i) {
        match b {
            b'>' => {
                let slash =
                    i > name_end && bytes.get(i - 1) == Some(&b'/') || i == name_end && bytes.get(i - 1) == Some(&b'/');
                return (name_end, i + 1, slash);
            }
            b'"' | b'\'' if after_equals => {
                let Some(close) = bytes.get(i + 1..).and_then(|t| memchr(b, t)) else {
                    return (name_end, bytes.len(), false);
                };
                i += close + 2;
                after_equals = false;
            }
            b'=' => {
                after_equals = true;
                i += 1;
            }
            b if b.is_ascii_whitespace() => i += 1,
            _ if after_equals => {
                // An unquoted value runs to white space or ">"; a "/" belongs to it.
                let value = bytes.get(i..).unwrap_or(&[]);
                i += value.iter().position(|b| b.is_ascii_whitespace() || *b == b'>').unwrap_or(value.len());
                after_equals = false;
                if bytes.get(i) == Some(&b'>') {
                    return (name_end, i + 1, false);
                }
            }
            _ => i += 1,
        }
    }
    (name_end, bytes.len(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(html: &str) -> Vec<String> {
        Tokens::new(html, false)
            .map(|t| match t {
                Token::Text(s) => format!("t:{s}"),
                Token::Raw(s) => format!("r:{s}"),
                Token::Start { name, self_closing, .. } => format!("s:{name}{}", if self_closing { "/" } else { "" }),
                Token::End(n) => format!("e:{n}"),
                Token::Comment => "c".to_owned(),
                Token::Unclosed(s) => format!("u:{s}"),
            })
            .collect()
    }

    #[test]
    fn tokens_follow_the_standard() {
        let table: &[(&str, &[&str])] = &[
            ("a<b>c</b>", &["t:a", "s:b", "t:c", "e:b"]),
            ("1 < 2 <3", &["t:1 ", "t:< 2 ", "t:<3"]),
            ("<br/><br />", &["s:br/", "s:br/"]),
            ("<a href=x/>y</a>", &["s:a", "t:y", "e:a"]),
            ("<a title=\"a>b\" x='>'>y", &["s:a", "t:y"]),
            ("<!-- a > b -->x<!DOCTYPE html>y<?pi?>z", &["c", "t:x", "c", "t:y", "c", "t:z"]),
            ("<!-->x<!--->y<!--a--!>z", &["c", "t:x", "c", "t:y", "c", "t:z"]),
            ("<script>a</b>c</script >d", &["s:script", "r:a</b>c", "e:script", "t:d"]),
            ("<SCRIPT></script>d", &["s:SCRIPT", "e:script", "t:d"]),
            ("<script>never ends", &["s:script", "r:never ends"]),
            ("</ x>a</>b", &["c", "t:a", "c", "t:b"]),
            ("x<a href='never", &["t:x", "u:<a href='never"]),
            ("<", &["t:<"]),
            ("</", &["t:</"]),
        ];
        for (html, expected) in table {
            assert_eq!(names(html), *expected, "{html}");
        }
    }
}
