//! The text that a content key is made of: Quivr's rule, kept as it is for ever.
//!
//! Owns nothing that may be improved: an item without guid and link is known by the hash of this text, so another rule
//! would give every such item a new key. The text that people read is made by `text`.

use super::entities;
use super::tokens::{Token, Tokens};
use crate::model::{Markup, Text};

/// Dropped with their content; an unclosed one drops the rest.
const DROPPED: [&str; 8] = ["script", "style", "iframe", "noscript", "template", "object", "svg", "head"];

/// Start and end tags of these are line feeds.
const LINES: [&str; 22] = [
    "br",
    "p",
    "div",
    "li",
    "ul",
    "ol",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "tr",
    "table",
    "blockquote",
    "pre",
    "section",
    "article",
    "hr",
    "figure",
    "figcaption",
    "dd",
];

/// The lines of a text, joined by line feeds.
#[must_use]
pub fn text(source: &Text) -> String {
    let mut raw = String::with_capacity(source.raw.len());
    if source.markup == Markup::Text {
        raw.push_str(&source.raw);
    } else {
        let mut dropped = 0_usize;
        for token in Tokens::new(&source.raw, false) {
            let name = match token {
                Token::Text(text) => {
                    if dropped == 0 {
                        raw.push_str(&entities::decode(text));
                    }
                    continue;
                }
                Token::Raw(text) => {
                    if dropped == 0 {
                        raw.push_str(text);
                    }
                    continue;
                }
                Token::Comment | Token::Unclosed(_) => continue,
                Token::Start { name, .. } => {
                    dropped += usize::from(is(&DROPPED, name));
                    name
                }
                Token::End(name) => {
                    dropped = dropped.saturating_sub(usize::from(is(&DROPPED, name)));
                    name
                }
            };
            if is(&LINES, name) || name.eq_ignore_ascii_case("dt") {
                raw.push('\n');
            }
        }
    }
    let blank = |c: char| c.is_whitespace() || c == '\0' || c == '\u{FFFD}';
    raw.split(['\n', '\r'])
        .map(|line| line.split(blank).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// The text as one line.
#[must_use]
pub fn one_line(source: &Text) -> String {
    text(source).replace('\n', " ")
}

fn is(list: &[&str], name: &str) -> bool {
    list.iter().any(|n| n.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_quivrs() {
        for (raw, expected) in [
            ("<p>one\ntwo</p><p>three</p>", "one\ntwo\nthree"),
            ("<td>a</td><td>b</td>", "ab"),
            ("<form>kept <textarea>too</textarea></form>", "kept too"),
            ("a<script>x</script>b<style>y", "ab"),
            ("caf&eacute;&nbsp; x", "caf\u{e9} x"),
            ("", ""),
        ] {
            let source = Text { raw: raw.to_owned(), markup: Markup::Html };
            assert_eq!(text(&source), expected, "{raw}");
        }
        let plain = Text { raw: "a <b>\n c".to_owned(), markup: Markup::Text };
        assert_eq!((text(&plain), one_line(&plain)), ("a <b>\nc".to_owned(), "a <b> c".to_owned()));
    }
}
