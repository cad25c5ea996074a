//! The plain text of a fragment: for search and for people.
//!
//! Owns which elements break lines, which are dropped with their content, and how white space collapses. One pass
//! over the tokens, a bounded stack of open elements, linear time. Never fails.

use std::borrow::Cow;

use super::entities;
use super::tokens::{Token, Tokens};
use super::tree::{is_dropped, is_void};
use crate::model::Markup;

/// Open elements that are remembered; in deeper nesting a drop ends at the next known end tag.
const MAX_OPEN: usize = 256;

/// What an element does to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Dropped with its content: nothing in it is text that a person reads.
    Dropped,
    /// Starts and ends a line.
    Block,
    /// Starts and ends a line in a cell too: whoever puts a heading or a list there uses the table to place things.
    Layout,
    /// Starts and ends a line and keeps those inside.
    Pre,
    /// A line break.
    Break,
    /// A cell of a table.
    Cell,
    /// A row of a table.
    Row,
    /// Leaves the text alone.
    Inline,
}

/// The class of an element by its name in lower case.
fn class(name: &str) -> Class {
    match name {
        _ if is_dropped(name) => Class::Dropped,
        "br" => Class::Break,
        "td" | "th" => Class::Cell,
        "tr" => Class::Row,
        "pre" => Class::Pre,
        "blockquote" | "dd" | "dl" | "dt" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "li" | "ol" | "table" | "ul" => {
            Class::Layout
        }
        "address" | "article" | "aside" | "body" | "caption" | "center" | "details" | "dialog" | "dir" | "div"
        | "fieldset" | "figcaption" | "figure" | "footer" | "header" | "hgroup" | "hr" | "html" | "legend" | "main"
        | "menu" | "nav" | "optgroup" | "option" | "p" | "search" | "section" | "summary" | "tbody" | "tfoot"
        | "thead" => Class::Block,
        _ => Class::Inline,
    }
}

/// A name in lower case; nearly all are written so.
fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|b| b.is_ascii_uppercase()) { name.to_ascii_lowercase().into() } else { name.into() }
}

/// What a text was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plain {
    /// The text.
    pub text: String,
    /// The source had a tag, a comment or a doctype; references alone are no markup.
    pub has_markup: bool,
}

/// The text of a fragment, lines joined by line feeds.
#[must_use]
pub fn plain(source: &str, markup: Markup) -> Plain {
    read(source, markup, false)
}

/// The same; with `keep_unclosed` a tag that the input ends in is text, since a title is more likely to end in a sign than
/// in half a tag.
fn read(source: &str, markup: Markup, keep_unclosed: bool) -> Plain {
    let mut sink = Sink::default();
    if markup == Markup::Text {
        sink.pre = 1;
        sink.text(source);
        return Plain { text: sink.finish(), has_markup: false };
    }
    if memchr::memchr2(b'<', b'&', source.as_bytes()).is_none() {
        sink.text(source);
        return Plain { text: sink.finish(), has_markup: false };
    }
    let xhtml = markup == Markup::Xhtml;
    let mut walker = Walker { sink, open: Vec::new(), dropped_at: None };
    let mut has_markup = false;
    for token in Tokens::new(source, xhtml) {
        match token {
            Token::Text(text) => {
                if walker.dropped_at.is_none() {
                    walker.sink.text(&entities::decode(text));
                }
                continue;
            }
            // Raw text is only found in dropped elements, but for those that are shown as they are.
            Token::Raw(text) => walker.raw(text),
            Token::Start { name, self_closing, .. } => walker.start(name, xhtml && self_closing),
            Token::End(name) => walker.end(name),
            Token::Unclosed(text) if keep_unclosed => {
                if walker.dropped_at.is_none() {
                    walker.sink.text(&entities::decode(text));
                }
                continue;
            }
            Token::Comment | Token::Unclosed(_) => {}
        }
        has_markup = true;
    }
    Plain { text: walker.sink.finish(), has_markup }
}

/// The text of a fragment as one line: titles and names.
#[must_use]
pub fn one_line(source: &str, markup: Markup) -> String {
    let text = read(source, markup, true).text;
    if text.contains(['\n', '\t']) || text.contains("  ") {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        text
    }
}

/// The white space that waits to be written before the next character; the strongest wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Gap {
    #[default]
    None,
    Space,
    Tab,
    Line,
}

/// Writes text with its white space collapsed.
#[derive(Default)]
struct Sink {
    out: String,
    gap: Gap,
    pre: usize,
    cells: usize,
}

impl Sink {
    fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// A line break, or a space inside a table cell: a row stays one line.
    fn line(&mut self) {
        self.gap(if self.cells > 0 { Gap::Space } else { Gap::Line });
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (end, gap) = if self.pre == 0 { next_break(rest) } else { next_gap(rest) };
            let (word, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
            if !word.is_empty() {
                self.word(word);
            }
            if let Some(c) = gap {
                self.space(c);
                rest = tail.get(c.len_utf8()..).unwrap_or("");
            } else {
                rest = tail;
            }
        }
    }

    fn word(&mut self, word: &str) {
        if !self.out.is_empty() {
            match self.gap {
                Gap::None => {}
                Gap::Space => self.out.push(' '),
                Gap::Tab => self.out.push('\t'),
                Gap::Line => {
                    let kept = self.out.trim_end_matches([' ', '\t']).len();
                    self.out.truncate(kept);
                    self.out.push('\n');
                }
            }
        }
        self.gap = Gap::None;
        self.out.push_str(word);
    }

    fn space(&mut self, c: char) {
        if self.pre == 0 {
            self.gap(Gap::Space);
        } else if c == '\n' || c == '\r' {
            self.gap(Gap::Line);
        } else if (c == ' ' || c == '\t') && !self.out.is_empty() {
            // Indentation is the meaning of preformatted text.
            if self.gap == Gap::Line && !self.out.ends_with('\n') {
                self.out.push('\n');
                self.gap = Gap::None;
            }
            self.out.push(c);
        } else {
            self.gap(Gap::Space);
        }
    }

    fn finish(mut self) -> String {
        let kept = self.out.trim_end().len();
        self.out.truncate(kept);
        self.out
    }
}

/// Unicode white space; NUL and the replacement character, which stand for nothing that can be read, count as such.
fn is_gap(c: char) -> bool {
    c.is_whitespace() || c == '\0' || c == '\u{FFFD}'
}

/// Where the next gap is, and which; the end of the text where there is none. Looks at bytes, and at characters only
/// where a byte may start one that counts: U+0085, U+00A0, and those of U+1680, U+2000 to U+205F, U+3000, U+FFFD.
fn next_gap(text: &str) -> (usize, Option<char>) {
    for (at, b) in text.bytes().enumerate() {
        let candidate = match b {
            0x21..=0x7F => false,
            0..=0x20 => true,
            _ => matches!(b, 0xC2 | 0xE1 | 0xE2 | 0xE3 | 0xEF),
        };
        if candidate && let Some(c) = text.get(at..).and_then(|t| t.chars().next()).filter(|c| is_gap(*c)) {
            return (at, Some(c));
        }
    }
    (text.len(), None)
}

/// Bytes that are looked at together: as many as a SIMD register holds, so that the compiler uses one.
const LANES: usize = 16;

/// Whether all bytes but the last are ASCII letters or signs, or one space before such a byte.
fn is_prose(lanes: &[u8; LANES + 1]) -> bool {
    lanes.iter().zip(lanes.iter().skip(1)).fold(true, |prose, (&b, &next)| {
        prose & (b.wrapping_sub(b' ') < 0x60) & ((b != b' ') | (next.wrapping_sub(0x21) < 0x5F))
    })
}

/// Where the next gap is that is not one space between two ASCII letters or signs, which stays as it is.
fn next_break(text: &str) -> (usize, Option<char>) {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(&b) = bytes.get(from) {
        if from > 0 && bytes.get(from..).and_then(|tail| tail.first_chunk()).is_some_and(is_prose) {
            from += LANES;
        } else if matches!(b, 0x21..=0x7F)
            || b == b' ' && from > 0 && bytes.get(from + 1).is_some_and(|next| matches!(next, 0x21..=0x7F))
        {
            from += 1;
        } else {
            // What is no ASCII letter is looked at in full, and may turn out to be one more letter.
            let Some(c) = text.get(from..).and_then(|t| t.chars().next()) else { break };
            if is_gap(c) {
                return (from, Some(c));
            }
            from += c.len_utf8();
        }
    }
    (text.len(), None)
}

/// Follows the tags: which elements are open, and whether their content is dropped.
struct Walker<'a> {
    sink: Sink,
    open: Vec<Cow<'a, str>>,
    dropped_at: Option<usize>,
}

impl<'a> Walker<'a> {
    fn raw(&mut self, text: &str) {
        if self.dropped_at.is_none() {
            self.sink.text(text);
        }
    }

    fn start(&mut self, name: &'a str, closed: bool) {
        let name = lower(name);
        let class = class(&name);
        if name == "body" {
            // A head that was never closed ends here (13.2.6.4.4).
            self.close("head");
        }
        if self.dropped_at.is_none() {
            self.breaks(class, true);
        }
        if closed || is_void(&name) || self.open.len() >= MAX_OPEN {
            return;
        }
        if self.dropped_at.is_none() && class == Class::Dropped {
            self.dropped_at = Some(self.open.len());
        }
        self.open.push(name);
        if self.dropped_at.is_none() {
            self.count(class, 1);
        }
    }

    fn end(&mut self, name: &str) {
        let name = lower(name);
        let class = class(&name);
        if class == Class::Break {
            self.sink.line();
            return;
        }
        self.close(&name);
        if self.dropped_at.is_none() {
            self.breaks(class, false);
        }
    }

    /// Closes the innermost open element of that name with all that is open inside it.
    fn close(&mut self, name: &str) {
        let Some(at) = self.open.iter().rposition(|n| n == name) else { return };
        while self.open.len() > at {
            let Some(closed) = self.open.pop() else { break };
            match self.dropped_at {
                Some(dropped) if dropped == self.open.len() => self.dropped_at = None,
                Some(_) => {}
                None => self.count(class(&closed), -1),
            }
        }
    }

    fn count(&mut self, class: Class, by: isize) {
        match class {
            Class::Pre => self.sink.pre = self.sink.pre.saturating_add_signed(by),
            Class::Cell => self.sink.cells = self.sink.cells.saturating_add_signed(by),
            _ => {}
        }
    }

    fn breaks(&mut self, class: Class, start: bool) {
        match class {
            Class::Cell if start => {
                // A cell that was never closed ends where the next one starts.
                self.close("td");
                self.close("th");
                self.sink.gap(Gap::Tab);
            }
            Class::Row => {
                self.close("td");
                self.close("th");
                self.sink.gap(Gap::Line);
            }
            Class::Layout => self.sink.gap(Gap::Line),
            Class::Break | Class::Block | Class::Pre => self.sink.line(),
            Class::Cell | Class::Dropped | Class::Inline => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_text() {
        let table = [
            // Blocks break lines, empty lines vanish, source line breaks are white space.
            ("<p>one\ntwo</p>\n\n<p>three</p>", "one two\nthree"),
            ("a<br>b<br/><br>c", "a\nb\nc"),
            ("<ul><li>a<li>b</ul>c", "a\nb\nc"),
            ("<h1>Head</h1>text<div>more</div>end", "Head\ntext\nmore\nend"),
            // Inline markup leaves no gap of its own.
            ("a<b>b</b>c <i> d</i>", "abc d"),
            // Cells by a tab, rows by a line, whatever stands in the cells.
            ("<table><tr><th>A</th><th>B</th></tr><tr><td><p>1</p></td><td>2<br>3</td></tr></table>", "A\tB\n1\t2 3"),
            ("<table><tr><td>1<td>2<tr><td>3<td>4</table>x", "1\t2\n3\t4\nx"),
            ("<table><tr><td><h1>a</h1><p>b</p><ul><li>c<li>d</ul></td></tr></table>", "a\nb\nc\nd"),
            // Preformatted text keeps its lines and its indentation.
            ("<pre>fn a() {\n    b();\n}</pre>", "fn a() {\n    b();\n}"),
            // Dropped with content, nested or not, closed or not.
            ("a<script>alert('<p>')</script>b", "ab"),
            ("a<style>p{}</style><svg><title>t</title><text>x</text></svg>b", "ab"),
            ("a<object><object>x</object>y</object>b", "ab"),
            ("<div>a<object>x</div>b", "a\nb"),
            ("a<script>never closed <p>b</p>", "a"),
            ("<html><head><title>t</title><body>b", "b"),
            ("a<noscript><img src=x></noscript>b<iframe>c</iframe>d", "abd"),
            // References.
            ("caf&eacute; &amp; &lt;b&gt;&nbsp; x", "caf\u{e9} & <b> x"),
            ("plain & simple < text", "plain & simple < text"),
            ("", ""),
            (" \u{a0}\n ", ""),
        ];
        for (html, expected) in table {
            assert_eq!(plain(html, Markup::Html).text, expected, "{html}");
        }
    }

    #[test]
    fn markup_is_a_tag_a_comment_or_a_doctype() {
        for (source, expected) in
            [("a &amp; b", false), ("a < b", false), ("a<br>", true), ("a<!-- -->", true), ("<!DOCTYPE html>a", true)]
        {
            assert_eq!(plain(source, Markup::Html).has_markup, expected, "{source}");
        }
    }

    #[test]
    fn plain_text_is_not_read_as_markup() {
        let text = plain("</cluster> & <b>\n  two", Markup::Text);
        assert_eq!(text, Plain { text: "</cluster> & <b>\n  two".to_owned(), has_markup: false });
    }

    #[test]
    fn xhtml_closes_any_element_by_a_slash() {
        assert_eq!(plain("a<script/>b<div/>c", Markup::Xhtml).text, "ab\nc");
    }

    #[test]
    fn one_line_joins_lines() {
        assert_eq!(one_line("<p>a</p>\n<p>b&nbsp;c</p>", Markup::Html), "a b c");
        assert_eq!(one_line("Salt &amp; oil <new", Markup::Html), "Salt & oil <new");
        assert_eq!(plain("Salt &amp; oil <new", Markup::Html).text, "Salt & oil");
    }
}
