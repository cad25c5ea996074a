//! The semantic vocabulary of the entry format, as XML.
//!
//! Owns the names of its elements and the escaping: only the five entities of XML, no character that XML forbids. Always
//! one element `content`, so that every output is a document.

use super::document::{Block, Span, Style};

/// Writes a document.
#[must_use]
pub fn write(blocks: &[Block]) -> String {
    let mut out = String::from("<content>");
    write_blocks(&mut out, blocks);
    out.push_str("</content>");
    out
}

fn write_blocks(out: &mut String, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Paragraph(spans) => element(out, "paragraph", |out| write_spans(out, spans)),
            Block::Heading(level, spans) => {
                out.push_str(&format!("<heading level=\"{level}\">"));
                write_spans(out, spans);
                out.push_str("</heading>");
            }
            Block::List(start, items) => {
                out.push_str(if start.is_some() { "<list ordered=\"true\">" } else { "<list>" });
                for item in items {
                    element(out, "item", |out| match item.as_slice() {
                        // An item of one paragraph is its text.
                        [Block::Paragraph(spans)] => write_spans(out, spans),
                        blocks => write_blocks(out, blocks),
                    });
                }
                out.push_str("</list>");
            }
            Block::Quote(blocks) => element(out, "quote", |out| write_blocks(out, blocks)),
            Block::Code(language, text) => {
                out.push_str("<code");
                attribute(out, "language", language);
                out.push('>');
                escape(out, text);
                out.push_str("</code>");
            }
            Block::Image(src, alt) => {
                out.push_str("<image");
                attribute(out, "src", src);
                attribute(out, "alt", alt);
                out.push_str("/>");
            }
            Block::Separator => out.push_str("<separator/>"),
            Block::Table(_, rows) => element(out, "list", |out| {
                for row in rows {
                    element(out, "item", |out| {
                        for (n, cell) in row.iter().filter(|cell| !cell.is_empty()).enumerate() {
                            if n > 0 {
                                out.push_str(" | ");
                            }
                            write_spans(out, cell);
                        }
                    });
                }
            }),
        }
    }
}

fn element(out: &mut String, name: &str, inner: impl FnOnce(&mut String)) {
    tag(out, "<", name);
    inner(out);
    tag(out, "</", name);
}

fn tag(out: &mut String, open: &str, name: &str) {
    out.push_str(open);
    out.push_str(name);
    out.push('>');
}

fn attribute(out: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        escape(out, value);
        out.push('"');
    }
}

/// The elements of a style, outermost first.
fn elements(style: &Style) -> Vec<(&'static str, Option<&str>)> {
    let mut list = Vec::new();
    if let Some(link) = &style.link {
        list.push(("link", Some(&**link)));
    }
    list.extend(style.strong.then_some(("strong", None)));
    list.extend(style.emphasis.then_some(("emphasis", None)));
    list.extend(style.code.then_some(("code", None)));
    list
}

fn write_spans(out: &mut String, spans: &[Span]) {
    let mut open: Vec<(&'static str, Option<&str>)> = Vec::new();
    for span in spans {
        let wanted = elements(&span.style);
        let same = open.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        while open.len() > same {
            if let Some((name, _)) = open.pop() {
                tag(out, "</", name);
            }
        }
        for (name, href) in wanted.into_iter().skip(same) {
            out.push('<');
            out.push_str(name);
            if let Some(href) = href {
                attribute(out, "href", href);
            }
            out.push('>');
            open.push((name, href));
        }
        match &span.text {
            Some(text) => escape(out, text),
            None => out.push_str("<break/>"),
        }
    }
    while let Some((name, _)) = open.pop() {
        tag(out, "</", name);
    }
}

/// Appends text with the five entities of XML.
pub(crate) fn escape(out: &mut String, text: &str) {
    let (mut from, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while let Some(plain) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| is_special(*b))) {
        at += plain;
        let (escape, length) = match bytes.get(at) {
            Some(b'<') => ("&lt;", 1),
            Some(b'>') => ("&gt;", 1),
            Some(b'&') => ("&amp;", 1),
            Some(b'"') => ("&quot;", 1),
            Some(b'\'') => ("&apos;", 1),
            // A reader makes a line feed of it (XML 1.0, section 2.11).
            Some(b'\r') => ("\n", 1),
            // What XML forbids: control characters, U+FFFE and U+FFFF.
            Some(0..=0x1F) => ("", 1),
            _ if matches!(text.get(at..at + 3), Some("\u{FFFE}" | "\u{FFFF}")) => ("", 3),
            _ => {
                at += 1;
                continue;
            }
        };
        out.push_str(text.get(from..at).unwrap_or(""));
        out.push_str(escape);
        at += length;
        from = at;
    }
    out.push_str(text.get(from..).unwrap_or(""));
}

/// Whether [`escape`] has to look at a byte.
fn is_special(b: u8) -> bool {
    match b {
        b'\t' | b'\n' => false,
        b'<' | b'>' | b'&' | b'"' | b'\'' | 0..=0x1F | 0xEF => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_what_xml_forbids_goes() {
        let mut out = String::new();
        escape(&mut out, "<a b=\"c\">'&\r\n\t\u{1}\u{FFFE}\u{FFFD}\u{e9}\u{1F600}\u{7f}");
        assert_eq!(out, "&lt;a b=&quot;c&quot;&gt;&apos;&amp;\n\n\t\u{FFFD}\u{e9}\u{1F600}\u{7f}");
    }
}
