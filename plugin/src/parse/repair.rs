//! The repair ladder: what makes a document well-formed that nearly is.
//!
//! Owns one function for each kind of fault. Each takes a text and gives back another only where it changed something;
//! none changes a well-formed document (a property test holds them to it). All are linear. Nothing here closes what a
//! document leaves open at its end: a document that was cut off stays cut off.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use memchr::{memchr, memmem};

use crate::html::is_xml_char;
use crate::notes::{Code, Notes};

/// How far into a text a document is looked for behind something else.
const MAX_JUNK_BYTES: usize = 64 * 1_024;

/// Bytes of one attribute value in which a `<` is taken as part of it.
const MAX_VALUE_BYTES: usize = 8 * 1_024;

/// Faults of one kind that are mended. A publisher who forgets to escape does so some thousand times; a document with
/// more was made to cost time, and stays as it is.
const MAX_REPAIRS: usize = 50_000;

/// Bytes of a reference; the longest name of HTML has 31 letters.
const MAX_REFERENCE_BYTES: usize = 64;

/// Elements that HTML never closes; unescaped markup in a feed has them without an end.
const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "meta", "param", "source", "track", "wbr", "basefont"];

/// How a document may begin behind junk.
const BEGINNINGS: [&[u8]; 7] = [b"<?xml", b"<rss", b"<rdf:RDF", b"<RDF", b"<feed", b"<atom:feed", b"<channel"];

/// The document without what stands before it, and how many bytes that is. White space before a declaration counts,
/// since XML forbids it; before a root element it is allowed.
pub(super) fn junk_before(text: &str) -> (&str, usize) {
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}' || c == '\0');
    if begins(start.as_bytes()) || start.starts_with(['{', '[']) || start.starts_with("<!") {
        let skipped = text.len() - start.len();
        let allowed = !start.starts_with("<?xml") && text.starts_with(char::is_whitespace);
        return (start, if allowed { 0 } else { skipped });
    }
    let head = start.as_bytes().get(..MAX_JUNK_BYTES.min(start.len())).unwrap_or(&[]);
    let found = memchr::memchr_iter(b'<', head).find(|at| begins(start.as_bytes().get(*at..).unwrap_or(&[])));
    match found.and_then(|at| start.get(at..)) {
        Some(document) => (document, text.len() - document.len()),
        None => (start, 0),
    }
}

fn begins(bytes: &[u8]) -> bool {
    BEGINNINGS.iter().any(|b| {
        bytes.get(..b.len()).is_some_and(|start| start.eq_ignore_ascii_case(b))
            && bytes.get(b.len()).is_none_or(|next| !next.is_ascii_alphanumeric() && *next != b'-')
    })
}

/// Takes out characters that XML forbids; a form feed and the like between words becomes a blank.
pub(super) fn control_characters<'t>(text: &'t str, notes: &Notes) -> Cow<'t, str> {
    // The forbidden ones begin with a byte below a blank, or with EF (U+FFFE and U+FFFF).
    let suspicious = text.bytes().position(|b| (b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r')) || b == 0xEF);
    let Some(from) = suspicious else { return Cow::Borrowed(text) };
    let mut first = None;
    let mut count = 0;
    let (clean, rest) = text.split_at_checked(from).unwrap_or((text, ""));
    let mut out = String::new();
    for (at, c) in rest.char_indices() {
        if is_xml_char(c) {
            if count > 0 {
                out.push(c);
            }
            continue;
        }
        if count == 0 {
            first = Some(from + at);
            out.reserve(text.len());
            out.push_str(clean);
            out.push_str(rest.get(..at).unwrap_or(""));
        }
        count += 1;
        if matches!(c, '\x0B' | '\x0C') {
            out.push(' ');
        }
    }
    if count == 0 {
        return Cow::Borrowed(text);
    }
    notes.add_many(Code::StrippedControlCharacters, count, first, "");
    Cow::Owned(out)
}

/// The kinds of pieces that a document consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Start,
    End,
    /// CDATA, comments, instructions and the document type: nothing in them is repaired.
    Other,
    /// It begins something that never ends.
    Unfinished,
}

/// Iterates over the pieces of a document, which together are the document.
struct Pieces<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Pieces<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Where the piece that begins here with `<` ends; `None` where the `<` is no markup.
    fn markup(rest: &str) -> Option<(Kind, usize)> {
        let bytes = rest.as_bytes();
        let until = |end: &[u8], from: usize| {
            let tail = bytes.get(from..).unwrap_or(&[]);
            match memmem::find(tail, end) {
                Some(at) => (Kind::Other, from + at + end.len()),
                None => (Kind::Unfinished, bytes.len()),
            }
        };
        if rest.starts_with("<!--") {
            return Some(until(b"-->", 4));
        }
        if rest.starts_with("<![CDATA[") {
            return Some(until(b"]]>", 9));
        }
        if rest.starts_with("<?") {
            return Some(until(b"?>", 2));
        }
        if rest.starts_with("<!") {
            return Some(doctype_end(bytes).map_or((Kind::Unfinished, bytes.len()), |end| (Kind::Other, end)));
        }
        let is_end = bytes.get(1) == Some(&b'/');
        let Some(name) = bytes.get(if is_end { 2 } else { 1 }) else {
            // The document stops inside a tag.
            return Some((Kind::Unfinished, bytes.len()));
        };
        if !(name.is_ascii_alphabetic() || matches!(name, b'_' | b':') || *name >= 0x80) {
            return None;
        }
        // A name that ends in anything but white space, "/" or ">" is no name (XML 1.0, sections 2.3 and 3.1).
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'-' | b'.') || *b >= 0x80;
        let behind = bytes.iter().skip(1 + usize::from(is_end)).find(|b| !is_name(b));
        if behind.is_some_and(|b| !(b.is_ascii_whitespace() || matches!(b, b'/' | b'>'))) {
            return None;
        }
        let kind = if is_end { Kind::End } else { Kind::Start };
        match tag_end(bytes) {
            TagEnd::At(end) => Some((kind, end)),
            TagEnd::NoTag => None,
            TagEnd::Never => Some((Kind::Unfinished, bytes.len())),
        }
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = (Kind, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|r| !r.is_empty())?;
        let from = self.at;
        let found = if rest.starts_with('<') { Self::markup(rest) } else { None };
        let (kind, length) = found.unwrap_or_else(|| {
            let start = usize::from(rest.starts_with('<'));
            let tail = rest.as_bytes().get(start..).unwrap_or(&[]);
            (Kind::Text, memchr(b'<', tail).map_or(rest.len(), |at| at + start))
        });
        self.at = from + length;
        Some((kind, from..self.at))
    }
}

/// The pieces of a document, in order.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = (Kind, Range<usize>)> {
    Pieces::new(text)
}

/// The end of a document type with its internal subset, quotes respected.
fn doctype_end(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    // Behind the subset nothing is quoted.
    let mut had_subset = false;
    let mut at = 2;
    while let Some(&b) = bytes.get(at) {
        match b {
            b'"' | b'\'' if depth > 0 || !had_subset => at += 1 + memchr(b, bytes.get(at + 1..)?)?,
            // An apostrophe in a comment quotes nothing.
            b'<' if depth > 0 && bytes.get(at..at + 4) == Some(b"<!--") => {
                at += 4 + memmem::find(bytes.get(at + 4..)?, b"-->")? + 2;
            }
            b'[' => {
                depth += 1;
                had_subset = true;
            }
            b']' => depth = depth.saturating_sub(1),
            b'>' if depth == 0 => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

enum TagEnd {
    At(usize),
    /// Another `<` comes first.
    NoTag,
    Never,
}

/// Where a tag ends: at the first `>` outside of quoted values. XML has no `<` inside a tag; one in a short quoted value
/// is meant, any other says that this was no tag.
fn tag_end(bytes: &[u8]) -> TagEnd {
    let mut at = 1;
    let mut after_equals = false;
    while let Some(&b) = bytes.get(at) {
        match b {
            b'>' => return TagEnd::At(at + 1),
            b'<' => return TagEnd::NoTag,
            b'"' | b'\'' if after_equals => {
                let value = bytes.get(at + 1..).unwrap_or(&[]);
                let Some(length) = memchr(b, value) else {
                    // A quote that never ends: the value ends with the tag.
                    return match memchr::memchr2(b'>', b'<', value) {
                        Some(end) if value.get(end) == Some(&b'>') => TagEnd::At(at + 1 + end + 1),
                        Some(_) => TagEnd::NoTag,
                        None => TagEnd::Never,
                    };
                };
                if length > MAX_VALUE_BYTES && memchr(b'<', value.get(..length).unwrap_or(&[])).is_some() {
                    return TagEnd::NoTag;
                }
                at += length + 1;
                after_equals = false;
            }
            b'=' => after_equals = true,
            b if b.is_ascii_whitespace() => {}
            _ => after_equals = false,
        }
        at += 1;
    }
    TagEnd::Never
}

/// Whether an `&` at the start of a text opens a reference (XML 1.0, section 4.1).
fn is_reference(text: &str) -> bool {
    // The first byte that no name or number has must be the semicolon.
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'#' | b'_' | b':' | b'-' | b'.') || *b >= 0x80;
    let length = text.as_bytes().iter().skip(1).take(MAX_REFERENCE_BYTES).take_while(|b| in_name(b)).count();
    if text.as_bytes().get(1 + length) != Some(&b';') {
        return false;
    }
    let body = text.get(1..=length).unwrap_or("");
    match body.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(hex) => !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()),
            None => !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()),
        },
        None => {
            body.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | ':'))
                && body.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.' | '\u{B7}'))
        }
    }
}

/// Writes a lone `&` in text as `&amp;`.
pub(super) fn ampersands<'t>(text: &'t str, notes: &Notes) -> Cow<'t, str> {
    let lone = Pieces::new(text).filter(|(kind, _)| *kind == Kind::Text).flat_map(|(_, range)| {
        let piece = text.get(range.clone()).unwrap_or("");
        memchr::memchr_iter(b'&', piece.as_bytes())
            .filter(move |at| !piece.get(*at..).is_some_and(is_reference))
            .map(move |at| range.start + at)
    });
    replace(text, lone.map(|at| (at..at + 1, Cow::Borrowed("&amp;"))), Code::EscapedAmpersands, notes)
}

/// Writes a `<` that opens no markup as `&lt;`.
pub(super) fn angle_brackets<'t>(text: &'t str, notes: &Notes) -> Cow<'t, str> {
    let lone = Pieces::new(text)
        .filter(|(kind, range)| *kind == Kind::Text && text.as_bytes().get(range.start) == Some(&b'<'))
        .map(|(_, range)| (range.start..range.start + 1, Cow::Borrowed("&lt;")));
    replace(text, lone, Code::EscapedAngleBrackets, notes)
}

/// Gives attributes the quotes, or the value, that they lack.
pub(super) fn attributes<'t>(text: &'t str, notes: &Notes) -> Cow<'t, str> {
    let mended = Pieces::new(text)
        .filter(|(kind, _)| *kind == Kind::Start)
        .filter_map(|(_, range)| mended_tag(text.get(range.clone())?).map(|tag| (range, Cow::Owned(tag))));
    replace(text, mended, Code::RepairedAttributes, notes)
}

/// A start tag with whole attributes; `None` where they are whole.
fn mended_tag(tag: &str) -> Option<String> {
    let inner = tag.strip_prefix('<')?.strip_suffix('>')?;
    let (inner, end) = inner.strip_suffix('/').map_or((inner, ">"), |inner| (inner, "/>"));
    let name_end = inner.find(|c: char| c.is_ascii_whitespace()).unwrap_or(inner.len());
    let (name, mut rest) = inner.split_at_checked(name_end)?;
    let mut out = format!("<{name}");
    let mut changed = false;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        let key_end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (key, tail) = rest.split_at_checked(key_end)?;
        // A piece that begins with "=" or a quote is no attribute.
        let is_key = key.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | ':'));
        let (value, tail) = match tail.trim_ascii_start().strip_prefix('=') {
            Some(value) => value_of(value.trim_ascii_start(), &mut changed),
            None => {
                changed = true;
                (key, tail)
            }
        };
        rest = tail;
        if !is_key || key.contains(['"', '\'', '<']) {
            changed = true;
            // Whatever this is, it must be consumed.
            if key.is_empty() && value.is_empty() {
                rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or("");
            }
            continue;
        }
        let quote = if value.contains('"') { '\'' } else { '"' };
        let value = value.replace('<', "&lt;");
        let value = if quote == '\'' { value.replace('\'', "&apos;") } else { value };
        out.push(' ');
        out.push_str(key);
        out.push('=');
        out.push(quote);
        out.push_str(&value);
        out.push(quote);
    }
    out.push_str(end);
    changed.then_some(out)
}

/// The value of an attribute and what follows it.
fn value_of<'t>(text: &'t str, changed: &mut bool) -> (&'t str, &'t str) {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let body = text.get(1..).unwrap_or("");
        if let Some((value, tail)) = body.split_once(quote) {
            // XML wants white space between attributes.
            *changed |= tail.starts_with(|c: char| !c.is_ascii_whitespace());
            return (value, tail);
        }
        *changed = true;
        return (body, "");
    }
    *changed = true;
    text.split_at_checked(text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len())).unwrap_or((text, ""))
}

/// The name of a tag.
fn tag_name(tag: &str) -> &str {
    let inner = tag.trim_start_matches(['<', '/']);
    let end = inner.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>')).unwrap_or(inner.len());
    inner.get(..end).unwrap_or("")
}

/// Adds the end tags that are missing before another one, and takes out those that close nothing. What is open at the
/// end of the document stays open.
pub(super) fn tags<'t>(text: &'t str, notes: &Notes) -> Cow<'t, str> {
    let mut open: Vec<(&str, Range<usize>)> = Vec::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut edits: Vec<(Range<usize>, Cow<'t, str>)> = Vec::new();
    for (kind, range) in Pieces::new(text) {
        let tag = text.get(range.clone()).unwrap_or("");
        let name = tag_name(tag);
        match kind {
            _ if edits.len() > MAX_REPAIRS => return Cow::Borrowed(text),
            Kind::Start if !tag.ends_with("/>") => {
                open.push((name, range));
                *counts.entry(name).or_default() += 1;
            }
            Kind::End if counts.get(name).is_none_or(|n| *n == 0) => edits.push((range, Cow::Borrowed(""))),
            Kind::End => {
                while let Some((closed, start)) = open.pop() {
                    if let Some(count) = counts.get_mut(closed) {
                        *count = count.saturating_sub(1);
                    }
                    if closed == name {
                        break;
                    }
                    edits.push(closing(text, closed, start, range.start));
                }
                // Behind the root there is nothing to balance.
                if open.is_empty() {
                    break;
                }
            }
            _ => {}
        }
    }
    edits.sort_by_key(|(range, _)| range.start);
    replace(text, edits.into_iter(), Code::BalancedTags, notes)
}

/// How an element is closed that nobody closed: one that is always empty at once, any other before the end tag at `at`.
fn closing<'t>(text: &str, name: &str, start: Range<usize>, at: usize) -> (Range<usize>, Cow<'t, str>) {
    let is_link = name.eq_ignore_ascii_case("link") && text.get(start.clone()).is_some_and(|t| t.contains("href"));
    if is_link || VOID.iter().any(|v| v.eq_ignore_ascii_case(name)) {
        return (start.end - 1..start.end - 1, Cow::Borrowed("/"));
    }
    (at..at, Cow::Owned(format!("</{name}>")))
}

/// Makes edits, which stand in order of their places, and notes them.
fn replace<'t>(
    text: &'t str,
    edits: impl Iterator<Item = (Range<usize>, Cow<'t, str>)>,
    code: Code,
    notes: &Notes,
) -> Cow<'t, str> {
    let mut out = String::new();
    let (mut from, mut count, mut first) = (0, 0_usize, None);
    for (range, new) in edits {
        if count == 0 {
            out.reserve(text.len() + text.len() / 8);
            first = Some(range.start);
        }
        count += 1;
        if count > MAX_REPAIRS {
            return Cow::Borrowed(text);
        }
        out.push_str(text.get(from..range.start).unwrap_or(""));
        out.push_str(&new);
        from = range.end.max(from);
    }
    if count == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(from..).unwrap_or(""));
    notes.add_many(code, count, first, "");
    Cow::Owned(out)
}

/// Ends the end tag of the root element where only its `>` is missing: everything before it is whole.
pub(super) fn last_bracket<'t>(text: &'t str, notes: &Notes) -> Cow<'t, str> {
    let trimmed = text.trim_end();
    let name =
        trimmed.rsplit_once("</").map(|(_, name)| name).filter(|n| !n.is_empty() && !n.contains(['<', '>', ' ']));
    let is_root = name.is_some_and(|name| {
        let root = Pieces::new(text).find(|(kind, _)| *kind == Kind::Start);
        root.and_then(|(_, range)| text.get(range)).is_some_and(|tag| tag_name(tag) == name)
    });
    let edit = is_root.then_some((trimmed.len()..trimmed.len(), Cow::Borrowed(">")));
    replace(text, edit.into_iter(), Code::BalancedTags, notes)
}

/// Every rung that makes markup well-formed, in order; `None` where there was nothing to do.
pub(super) fn markup(text: &str, notes: &Notes) -> Option<String> {
    let rungs: [fn(&str, &Notes) -> Option<String>; 5] = [
        |t, n| owned(last_bracket(t, n)),
        |t, n| owned(angle_brackets(t, n)),
        |t, n| owned(ampersands(t, n)),
        |t, n| owned(attributes(t, n)),
        |t, n| owned(tags(t, n)),
    ];
    let mut repaired: Option<String> = None;
    for rung in rungs {
        repaired = rung(repaired.as_deref().unwrap_or(text), notes).or(repaired);
    }
    repaired
}

fn owned(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rung_mends_its_kind() {
        let all = |text: &str| markup(text, &Notes::default()).unwrap_or_else(|| text.to_owned());
        for (broken, mended) in [
            ("<a>x & y &nbsp; &#8; &x y; &;</a>", "<a>x &amp; y &nbsp; &#8; &amp;x y; &amp;;</a>"),
            ("<a href=\"?x=1&y=2\">A&B</a>", "<a href=\"?x=1&y=2\">A&amp;B</a>"),
            ("<a><![CDATA[x & y < z]]></a>", "<a><![CDATA[x & y < z]]></a>"),
            ("<a>1 < 2 <3 <= 4</a>", "<a>1 &lt; 2 &lt;3 &lt;= 4</a>"),
            ("<a>x <y and z</a>", "<a>x &lt;y and z</a>"),
            ("<a title=\"x < y\" b=1>z</a>", "<a title=\"x &lt; y\" b=\"1\">z</a>"),
            ("<a href=http://x/?a=b checked>y</a>", "<a href=\"http://x/?a=b\" checked=\"checked\">y</a>"),
            ("<a b='x\"y'c=\"z\">y</a>", "<a b='x\"y' c=\"z\">y</a>"),
            ("<a b=\"x>y</a>", "<a b=\"x\">y</a>"),
            ("<a><b>x<br>y<i>z</b></a>", "<a><b>x<br/>y<i>z</i></b></a>"),
            ("<a>x</b>y</a>", "<a>xy</a>"),
            ("<a><link rel=x href=\"y\"><b>c</b></a>", "<a><link rel=\"x\" href=\"y\"/><b>c</b></a>"),
            ("<a><b>x</b></a\n", "<a><b>x</b></a>\n"),
            // What is open at the end stays open.
            ("<a><b>x</b", "<a><b>x</b"),
            ("<a><b>x</b>", "<a><b>x</b>"),
            ("<a><b>x</", "<a><b>x</"),
        ] {
            assert_eq!(all(broken), mended, "{broken}");
            // A second time changes nothing.
            assert_eq!(all(mended), mended, "{mended}");
        }
    }

    #[test]
    fn junk_before_a_document_is_found() {
        for (text, document, junk) in [
            ("<?xml version='1.0'?><rss/>", "<?xml version='1.0'?><rss/>", 0),
            ("\n <?xml version='1.0'?><rss/>", "<?xml version='1.0'?><rss/>", 2),
            ("\n <rss/>", "<rss/>", 0),
            ("<br />\n<b>Warning</b>: x in <b>y</b><br />\n<?xml?><rss/>", "<?xml?><rss/>", 43),
            ("Notice: x <feed>", "<feed>", 10),
            ("text <feedback>", "text <feedback>", 0),
            ("\u{FEFF}{\"version\":1}", "{\"version\":1}", 3),
            (" {\"x\":\"<rss\"}", "{\"x\":\"<rss\"}", 0),
        ] {
            assert_eq!(junk_before(text), (document, junk), "{text}");
        }
    }

    #[test]
    fn characters_that_xml_forbids_are_taken_out() {
        let notes = Notes::default();
        assert_eq!(control_characters("a\u{1}b\x0Cc\u{FFFF}d\t\u{FEFF}\u{FF41}", &notes), "ab cd\t\u{FEFF}\u{FF41}");
        assert_eq!(notes.list()[0].count, 3);
        assert_eq!(notes.list()[0].position, Some(1));
        assert!(matches!(control_characters("\u{FF41}bc", &Notes::default()), Cow::Borrowed(_)));
    }

    /// A well-formed element, at random: nested, with attributes, references, CDATA and comments.
    fn element() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            "[a-z \u{e9}\u{4e2d}&]{0,12}".prop_map(|t: String| t.replace('&', "&amp;")),
            Just("&lt;b&gt; &#65; &nbsp;".to_owned()),
            "[a-z<>&\" ]{0,12}".prop_map(|t: String| format!("<![CDATA[{t}]]>")),
            "[a-z<>&\" ]{0,8}".prop_map(|t: String| format!("<!--{t}-->")),
            Just("<br/>".to_owned()),
            Just("<?pi a < b & c?>".to_owned()),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            (
                "[a-z][a-z:_.-]{0,6}[a-z]",
                proptest::collection::vec(("[a-z]{1,5}", "[a-z'> /=]{0,9}"), 0..3),
                proptest::collection::vec(inner, 0..4),
            )
                .prop_map(|(name, attributes, children)| {
                    let attributes: String = attributes
                        .iter()
                        .enumerate()
                        .map(|(n, (key, value))| format!(" {key}{n} = \"{value}\""))
                        .collect();
                    format!("<{name}{attributes}\n>{}</{name} >", children.concat())
                })
        })
    }

    proptest::proptest! {
        // The same cases in every run.
        #![proptest_config(proptest::prelude::ProptestConfig {
            cases: 3_000,
            rng_seed: proptest::test_runner::RngSeed::Fixed(1),
            failure_persistence: None,
            ..proptest::prelude::ProptestConfig::default()
        })]

        #[test]
        fn a_well_formed_document_is_never_changed(body in element()) {
            let document =
                format!("<?xml version=\"1.0\"?><!DOCTYPE x [<!-- it's -->\n<!ENTITY a \"<b> & ]\">]><root>{body}</root>");
            let notes = Notes::default();
            proptest::prop_assert_eq!(markup(&document, &notes), None);
            proptest::prop_assert!(matches!(control_characters(&document, &notes), Cow::Borrowed(_)));
            proptest::prop_assert_eq!(junk_before(&document), (document.as_str(), 0));
            proptest::prop_assert_eq!(notes.json(), "[]");
        }

        #[test]
        fn what_is_mended_stays_as_it_is(text in "[a-c<>/&;=\"' !\\[\\]?-]{0,60}") {
            if let Some(mended) = markup(&text, &Notes::default()) {
                let again = markup(&mended, &Notes::default());
                proptest::prop_assert_eq!(again, None, "{}", mended);
            }
        }
    }
}
