//! Rendering of stored markup in four forms.
//!
//! Owns the choice of form and the bound of an output. A pure function of each fragment: the same one always gives the
//! same bytes. `text` is the very code that made the parts.

use std::cell::OnceCell;

use crate::html::address::Addresses;
use crate::html::document::{Block, Span, Style};
use crate::html::tree::Tree;
use crate::html::{document, entry, is_xml_char, markdown, safe, text};
use crate::identity::clip;
use crate::model::Markup;

/// Bytes of one rendered fragment: what an item may hold of text altogether.
pub const MAX_OUTPUT_BYTES: usize = crate::record::MAX_TEXT_BYTES;

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Plain text.
    Text,
    /// CommonMark with the tables of GFM.
    Markdown,
    /// The semantic vocabulary of the entry format.
    EntryXml,
    /// HTML for a page that shows it.
    SafeHtml,
}

/// A rendered fragment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendered {
    /// The result.
    pub output: String,
    /// It was cut at [`MAX_OUTPUT_BYTES`].
    pub truncated: bool,
    /// A bound of the tree was passed: a part of the structure is gone, its text is there.
    pub degraded: bool,
}

/// Renders a fragment in each of some forms, in their order, of one reading of its markup. `base` is the address that
/// relative ones start from; without it they die.
#[must_use]
pub fn render(source: &str, markup: Markup, base: Option<&str>, forms: &[Form]) -> Vec<Rendered> {
    let reading = Reading { source, markup, base, tree: OnceCell::new(), document: OnceCell::new() };
    forms.iter().map(|form| reading.write(*form)).collect()
}

/// A fragment, of which each form takes what it needs; what one has read serves the others.
struct Reading<'a> {
    source: &'a str,
    markup: Markup,
    base: Option<&'a str>,
    tree: OnceCell<(Tree<'a>, Addresses)>,
    document: OnceCell<Vec<Block>>,
}

impl<'a> Reading<'a> {
    fn tree(&self) -> &(Tree<'a>, Addresses) {
        self.tree.get_or_init(|| (Tree::of(self.source, self.markup), Addresses::new(self.base)))
    }

    fn document(&self) -> &[Block] {
        self.document.get_or_init(|| {
            let (tree, addresses) = self.tree();
            document::read(tree, addresses)
        })
    }

    fn write(&self, form: Form) -> Rendered {
        if self.markup == Markup::Text {
            return bounded(verbatim(self.source, form), false, self.source, form);
        }
        let output = match form {
            Form::Text => return bounded(text::plain(self.source, self.markup).text, false, self.source, form),
            Form::SafeHtml => {
                let (tree, addresses) = self.tree();
                safe::write(tree, addresses)
            }
            Form::Markdown => markdown::write(self.document()),
            Form::EntryXml => entry::write(self.document()),
        };
        let degraded = self.tree().0.degraded;
        if output.len() <= MAX_OUTPUT_BYTES {
            return Rendered { output, truncated: false, degraded };
        }
        bounded(output, degraded, &text::plain(self.source, self.markup).text, form)
    }
}

/// An output within its bound. One with structure cannot be cut anywhere: past the bound its text stands in its place.
fn bounded(mut output: String, degraded: bool, plain: &str, form: Form) -> Rendered {
    if output.len() <= MAX_OUTPUT_BYTES {
        return Rendered { output, truncated: false, degraded };
    }
    if form == Form::Text {
        output.truncate(clip(&output, MAX_OUTPUT_BYTES).len());
    } else {
        // Escaping makes at most six bytes of one, and a line a break element.
        output = verbatim(clip(plain, MAX_OUTPUT_BYTES / 12), form);
    }
    Rendered { output, truncated: true, degraded }
}

/// Plain text as it stands, escaped where the form needs it.
fn verbatim(source: &str, form: Form) -> String {
    match form {
        Form::Text => source.to_owned(),
        Form::Markdown => markdown::write(&lines(source)),
        Form::EntryXml => entry::write(&lines(source)),
        Form::SafeHtml => {
            let mut out = String::new();
            for (n, line) in source.trim_end_matches(['\n', '\r']).lines().enumerate() {
                out.push_str(if n == 0 { "<p>" } else { "<br>" });
                entry::escape(&mut out, line);
            }
            if !out.is_empty() {
                out.push_str("</p>");
            }
            // The same gate and the same spelling as markup has.
            safe::write(&Tree::of(&out, Markup::Html), &Addresses::new(None))
        }
    }
}

/// The lines of a text as one paragraph.
fn lines(source: &str) -> Vec<Block> {
    let mut spans = Vec::new();
    for (n, line) in source.trim_end_matches(['\n', '\r']).lines().enumerate() {
        if n > 0 {
            spans.push(Span { style: Style::default(), text: None });
        }
        let text: String = line.chars().filter(|c| is_xml_char(*c)).collect();
        if !text.is_empty() {
            spans.push(Span { style: Style::default(), text: Some(text) });
        }
    }
    if spans.iter().any(|s| s.text.is_some()) { vec![Block::Paragraph(spans)] } else { Vec::new() }
}
