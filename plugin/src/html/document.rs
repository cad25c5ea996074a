//! A fragment as a document: blocks and spans with a meaning, nothing of its looks.
//!
//! Owns which element is which block, what is unwrapped, and how white space collapses. Markdown and entry XML are both
//! written from this. Its nesting is that of the tree, which is bounded.

use std::rc::Rc;

use super::address::Addresses;
use super::is_xml_char;
use super::tree::{Id, Kind, Tree, is_block};

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Running text.
    Paragraph(Vec<Span>),
    /// A heading of level 1 to 6.
    Heading(u8, Vec<Span>),
    /// A list; an ordered one has the number of its first item.
    List(Option<u64>, Vec<Vec<Block>>),
    /// Somebody else's words.
    Quote(Vec<Block>),
    /// Code with its language, lines as they are.
    Code(String, String),
    /// An image: address, what it shows.
    Image(String, String),
    /// A break in the theme.
    Separator,
    /// Rows of cells; the first row may be a header.
    Table(bool, Vec<Vec<Vec<Span>>>),
}

/// How a span looks to its reader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Style {
    /// Where it leads.
    pub link: Option<Rc<str>>,
    /// Strong importance.
    pub strong: bool,
    /// Stress.
    pub emphasis: bool,
    /// Code.
    pub code: bool,
}

/// A piece of running text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// How it looks.
    pub style: Style,
    /// Its text; `None` is a line break.
    pub text: Option<String>,
}

/// Reads a tree.
#[must_use]
pub fn read(tree: &Tree<'_>, addresses: &Addresses) -> Vec<Block> {
    Reader { tree, addresses }.blocks(0)
}

struct Reader<'r, 'a> {
    tree: &'r Tree<'a>,
    addresses: &'r Addresses,
}

/// Blocks that are being filled, and the paragraph that is still open.
#[derive(Default)]
struct Flow {
    blocks: Vec<Block>,
    spans: Vec<Span>,
    /// White space waits until a character follows.
    space: bool,
    /// Only spans are wanted: headings and cells.
    inline_only: bool,
}

impl Flow {
    fn text(&mut self, text: &str, style: &Style) {
        for (n, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            self.space |= n > 0;
            if word.bytes().any(|b| b < b' ' || b == 0xEF) {
                self.word(&word.chars().filter(|c| is_xml_char(*c)).collect::<String>(), style);
            } else {
                self.word(word, style);
            }
        }
    }

    fn word(&mut self, word: &str, style: &Style) {
        if word.is_empty() {
            return;
        }
        // Nearly every word goes on in the style of the one before it.
        if let Some(Span { style: last, text: Some(written) }) = self.spans.last_mut()
            && last == style
        {
            if self.space {
                written.push(' ');
            }
            self.space = false;
            written.push_str(word);
            return;
        }
        let after_text = self.spans.last().is_some_and(|s| s.text.is_some());
        if self.space && after_text {
            // White space belongs to what both neighbours have in common, so no style begins or ends with it.
            let before = self.spans.last().map(|s| s.style.clone()).unwrap_or_default();
            self.push(" ", &common(&before, style));
        }
        self.space = false;
        self.push(word, style);
    }

    fn push(&mut self, text: &str, style: &Style) {
        match self.spans.last_mut() {
            Some(Span { style: last, text: Some(written) }) if last == style => written.push_str(text),
            _ => self.spans.push(Span { style: style.clone(), text: Some(text.to_owned()) }),
        }
    }

    fn line_break(&mut self) {
        if self.inline_only {
            self.space = true;
        } else if !self.spans.is_empty() {
            self.space = false;
            self.spans.push(Span { style: Style::default(), text: None });
        }
    }

    /// Ends the paragraph.
    fn flush(&mut self) {
        self.space = self.inline_only;
        if self.inline_only {
            return;
        }
        let spans = trimmed(std::mem::take(&mut self.spans));
        let says_nothing = |s: &Span| s.text.as_ref().is_none_or(|t| t.trim().is_empty());
        if !spans.iter().all(says_nothing) {
            self.blocks.push(Block::Paragraph(spans));
        }
    }
}

/// Spans without breaks at their end.
fn trimmed(mut spans: Vec<Span>) -> Vec<Span> {
    while spans.last().is_some_and(|s| s.text.is_none()) {
        spans.pop();
    }
    spans
}

fn common(a: &Style, b: &Style) -> Style {
    Style {
        link: a.link.clone().filter(|l| b.link.as_ref() == Some(l)),
        strong: a.strong && b.strong,
        emphasis: a.emphasis && b.emphasis,
        code: a.code && b.code,
    }
}

impl Reader<'_, '_> {
    fn blocks(&self, id: Id) -> Vec<Block> {
        let mut flow = Flow::default();
        self.children(id, &mut flow, &Style::default());
        flow.flush();
        flow.blocks
    }

    fn spans(&self, id: Id) -> Vec<Span> {
        let mut flow = Flow { inline_only: true, ..Flow::default() };
        self.children(id, &mut flow, &Style::default());
        flow.spans
    }

    fn children(&self, id: Id, flow: &mut Flow, style: &Style) {
        for child in self.tree.children(id) {
            match self.tree.node(*child).map(|n| &n.kind) {
                Some(Kind::Text(text)) => flow.text(text, style),
                Some(Kind::Element(name, _)) => self.element(*child, name, flow, style),
                None => {}
            }
        }
    }

    fn element(&self, id: Id, name: &str, flow: &mut Flow, style: &Style) {
        match name {
            "br" => flow.line_break(),
            "wbr" => {}
            "em" | "i" | "cite" | "dfn" | "var" => self.children(id, flow, &Style { emphasis: true, ..style.clone() }),
            "strong" | "b" => self.children(id, flow, &Style { strong: true, ..style.clone() }),
            "code" | "tt" | "kbd" | "samp" => self.children(id, flow, &Style { code: true, ..style.clone() }),
            "a" => {
                let href = self.tree.attribute(id, "href").and_then(|h| self.addresses.link(&h));
                // A link inside of a link leads where the outer one does.
                let link = style.link.clone().or(href.map(Rc::from));
                self.children(id, flow, &Style { link, ..style.clone() });
            }
            "img" => self.image(id, flow, style),
            "iframe" => {}
            _ if flow.inline_only => {
                flow.space |= is_block(name);
                self.children(id, flow, style);
                flow.space |= is_block(name);
            }
            _ => self.block(id, name, flow, style),
        }
    }

    fn block(&self, id: Id, name: &str, flow: &mut Flow, style: &Style) {
        let block = match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.bytes().last().map_or(1, |b| b - b'0');
                let spans = self.spans(id);
                (!spans.is_empty()).then_some(Block::Heading(level, spans))
            }
            "ul" | "ol" | "menu" | "dir" => self.list(id, name == "ol"),
            "blockquote" => Some(self.blocks(id)).filter(|b| !b.is_empty()).map(Block::Quote),
            "pre" => self.code(id),
            "hr" => Some(Block::Separator),
            "table" if !self.is_layout(id) => self.table(id, flow),
            _ => {
                let breaks = is_block(name) || matches!(name, "caption" | "tbody" | "thead" | "tfoot");
                if breaks {
                    flow.flush();
                }
                self.children(id, flow, style);
                if breaks {
                    flow.flush();
                }
                return;
            }
        };
        flow.flush();
        flow.blocks.extend(block);
    }

    fn image(&self, id: Id, flow: &mut Flow, style: &Style) {
        if is_pixel(self.tree, self.addresses, id) {
            return;
        }
        let alt = self.tree.attribute(id, "alt").unwrap_or_default();
        let src = self.tree.attribute(id, "src").and_then(|s| self.addresses.image(&s));
        match src {
            Some(src) if !flow.inline_only && !is_sign(self.tree, id) => {
                flow.flush();
                let shown: String = alt.chars().filter(|c| is_xml_char(*c)).collect();
                flow.blocks.push(Block::Image(src, shown.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
            _ => flow.text(&alt, style),
        }
    }

    fn list(&self, id: Id, ordered: bool) -> Option<Block> {
        let mut items: Vec<Vec<Block>> = Vec::new();
        for child in self.tree.children(id) {
            if self.tree.name(*child) == "li" {
                items.push(self.blocks(*child));
                continue;
            }
            // What is no item goes on with the one before it, as browsers show it.
            let mut flow = Flow::default();
            match self.tree.node(*child).map(|n| &n.kind) {
                Some(Kind::Text(text)) => flow.text(text, &Style::default()),
                Some(Kind::Element(name, _)) => self.element(*child, name, &mut flow, &Style::default()),
                None => {}
            }
            flow.flush();
            match items.last_mut() {
                Some(last) => last.extend(flow.blocks),
                None if flow.blocks.is_empty() => {}
                None => items.push(flow.blocks),
            }
        }
        items.retain(|blocks| !blocks.is_empty());
        let start = self.tree.attribute(id, "start").and_then(|s| s.trim().parse::<u64>().ok()).unwrap_or(1);
        // Nine digits are the most that CommonMark reads.
        (!items.is_empty()).then(|| Block::List(ordered.then_some(start.min(999_999_999)), items))
    }

    fn code(&self, id: Id) -> Option<Block> {
        let inner = self.tree.children(id).iter().find(|c| self.tree.name(**c) == "code");
        let language = [Some(id), inner.copied()].into_iter().flatten().find_map(|id| {
            let class = self.tree.attribute(id, "class")?;
            let names = class.split_ascii_whitespace();
            let mut named = names.filter_map(|n| n.strip_prefix("language-").or_else(|| n.strip_prefix("lang-")));
            named.next().map(|n| {
                n.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '.')).take(32).collect()
            })
        });
        let text: String = self.tree.text(id).replace("\r\n", "\n").replace('\r', "\n");
        let text: String = text.chars().filter(|c| is_xml_char(*c)).collect();
        // A line feed at the start of `pre` is none (section 13.2.6.4.7).
        let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
        (!text.trim().is_empty()).then(|| Block::Code(language.unwrap_or_default(), text.to_owned()))
    }

    /// Whether a table only places things: some cell of it holds blocks, or it has one column.
    fn is_layout(&self, id: Id) -> bool {
        let rows = self.rows(id);
        let cells = || rows.iter().flatten();
        rows.iter().all(|row| row.len() <= 1) || cells().any(|cell| self.holds_blocks(*cell))
    }

    fn holds_blocks(&self, id: Id) -> bool {
        let mut paragraphs = 0;
        let mut waiting: Vec<Id> = self.tree.children(id).to_vec();
        while let Some(id) = waiting.pop() {
            match self.tree.name(id) {
                "p" | "div" => paragraphs += 1,
                "img" if !is_pixel(self.tree, self.addresses, id) => return true,
                name if is_block(name) => return true,
                _ => {}
            }
            waiting.extend(self.tree.children(id));
        }
        paragraphs > 1
    }

    /// The cells of each row, nested tables left out.
    fn rows(&self, table: Id) -> Vec<Vec<Id>> {
        let mut rows = Vec::new();
        let sections = self.tree.children(table).iter().flat_map(|child| match self.tree.name(*child) {
            "tbody" | "thead" | "tfoot" => self.tree.children(*child).to_vec(),
            _ => vec![*child],
        });
        for row in sections.filter(|id| self.tree.name(*id) == "tr") {
            let cells = self.tree.children(row).iter().copied();
            rows.push(cells.filter(|c| matches!(self.tree.name(*c), "td" | "th")).collect());
        }
        rows
    }

    fn table(&self, id: Id, flow: &mut Flow) -> Option<Block> {
        for caption in self.tree.children(id).iter().filter(|c| self.tree.name(**c) == "caption") {
            flow.flush();
            self.children(*caption, flow, &Style::default());
        }
        let rows = self.rows(id);
        let header = rows.first().is_some_and(|row| row.iter().all(|cell| self.tree.name(*cell) == "th"));
        let rows: Vec<Vec<Vec<Span>>> = rows
            .iter()
            .map(|row| row.iter().map(|cell| self.spans(*cell)).collect::<Vec<_>>())
            .filter(|row: &Vec<Vec<Span>>| row.iter().any(|cell| !cell.is_empty()))
            .collect();
        (!rows.is_empty()).then_some(Block::Table(header, rows))
    }
}

/// Whether an image stands for a character: both its sides are those of a line of text.
fn is_sign(tree: &Tree<'_>, id: Id) -> bool {
    const MAX_SIDE: u32 = 32;
    let side = |name: &str| {
        let value = tree.attribute(id, name).unwrap_or_default();
        value.trim().trim_end_matches("px").parse::<u32>().ok()
    };
    [side("width"), side("height")].iter().all(|side| side.is_some_and(|s| s <= MAX_SIDE))
}

/// Whether an image is there to be counted, not to be seen: one pixel, or of a known counter.
#[must_use]
pub fn is_pixel(tree: &Tree<'_>, addresses: &Addresses, id: Id) -> bool {
    const COUNTERS: [&str; 8] = [
        "feeds.feedburner.com/~r/",
        "feeds.feedburner.com/~ff/",
        "pixel.wp.com/",
        "stats.wordpress.com/",
        "feedsportal.com/",
        "google-analytics.com/",
        "doubleclick.net/",
        "medium.com/_/stat",
    ];
    let tiny = |name: &str| {
        let value = tree.attribute(id, name).unwrap_or_default();
        matches!(value.trim().trim_end_matches("px"), "0" | "1")
    };
    // The address as it is opened, so that another spelling is no way around.
    let src = tree.attribute(id, "src").and_then(|s| addresses.image(&s)).unwrap_or_default();
    (tiny("width") && tiny("height")) || COUNTERS.iter().any(|counter| src.contains(counter))
}
