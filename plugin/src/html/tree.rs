//! A fragment as a tree, under bounds.
//!
//! Owns what of the standard's tree construction a fragment of a feed needs: void elements, end tags that are implied,
//! elements that go with their content. Linear; never fails: past a bound the rest is text, and the tree says so.
//! Nodes lie in one list and point at each other by their place, so that no depth costs stack.

use std::borrow::Cow;

use super::attributes::Attributes;
use super::entities;
use super::tokens::{Token, Tokens};
use crate::model::Markup;

/// Nodes of one fragment: a long article has some ten thousand.
pub const MAX_NODES: usize = 200_000;

/// Open elements; deeper ones are taken off and their content goes to the deepest that is open.
pub const MAX_DEPTH: usize = 64;

/// The place of a node.
pub type Id = usize;

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind<'a> {
    /// An element: its name in lower case, its attributes as they are written.
    Element(Cow<'a, str>, &'a str),
    /// Text, references decoded.
    Text(Cow<'a, str>),
}

/// A node with its place in the tree.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// What it is.
    pub kind: Kind<'a>,
    /// Its children in order.
    pub children: Vec<Id>,
}

/// A tree.
#[derive(Debug, Clone)]
pub struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    /// A bound was passed: the rest is text, or nesting was taken off.
    pub degraded: bool,
}

/// Elements that never have content (WHATWG HTML, section 13.1.2).
#[must_use]
pub fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Elements that go with their content.
#[must_use]
pub fn is_dropped(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "iframe"
            | "noscript"
            | "template"
            | "object"
            | "embed"
            | "svg"
            | "form"
            | "head"
            | "textarea"
            | "title"
    )
}

/// Elements that a paragraph cannot hold: their start ends it (section 13.2.6.4.7).
#[must_use]
pub fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "center"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dl"
            | "dd"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hgroup"
            | "hr"
            | "li"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "summary"
            | "table"
            | "tr"
            | "td"
            | "th"
            | "ul"
    )
}

/// What the start of an element ends, up to which ancestor.
fn implied(name: &str) -> Option<(&'static [&'static str], &'static [&'static str])> {
    Some(match name {
        "li" => (&["li"], &["ul", "ol", "menu", "dir"]),
        "dt" | "dd" => (&["dt", "dd"], &["dl"]),
        "option" => (&["option"], &["select"]),
        _ => return None,
    })
}

fn is_table_part(name: &str) -> bool {
    matches!(name, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "caption")
}

/// Elements that an end tag inside them does not close from within: cells, items, quotes.
fn is_barrier(name: &str) -> bool {
    matches!(name, "td" | "th" | "table" | "caption")
}

impl<'a> Tree<'a> {
    /// The tree of a fragment.
    #[must_use]
    pub fn of(source: &'a str, markup: Markup) -> Self {
        let root = Node { kind: Kind::Element(Cow::Borrowed(""), ""), children: Vec::new() };
        let mut builder = Builder {
            tree: Self { nodes: vec![root], degraded: false },
            open: vec![0],
            dropped: None,
            xhtml: markup == Markup::Xhtml,
        };
        if markup == Markup::Text {
            builder.text(Cow::Borrowed(source));
            return builder.tree;
        }
        let mut tokens = Tokens::new(source, markup == Markup::Xhtml);
        while builder.tree.nodes.len() < MAX_NODES {
            let Some(token) = tokens.next() else { return builder.tree };
            builder.token(&token);
        }
        builder.tree.degraded = true;
        // The rest is text: its tags are read away, as the plain text of it reads.
        let rest = super::text::plain(tokens.rest(), markup).text;
        builder.text(Cow::Owned(rest));
        builder.tree
    }

    /// A node; the root is at 0.
    #[must_use]
    pub fn node(&self, id: Id) -> Option<&Node<'a>> {
        self.nodes.get(id)
    }

    /// The children of a node.
    #[must_use]
    pub fn children(&self, id: Id) -> &[Id] {
        self.nodes.get(id).map_or(&[], |n| n.children.as_slice())
    }

    /// The name of an element; empty for text and for the root.
    #[must_use]
    pub fn name(&self, id: Id) -> &str {
        match self.nodes.get(id).map(|n| &n.kind) {
            Some(Kind::Element(name, _)) => name,
            _ => "",
        }
    }

    /// An attribute of an element, decoded; the first of its name counts.
    #[must_use]
    pub fn attribute(&self, id: Id, name: &str) -> Option<Cow<'a, str>> {
        match self.nodes.get(id).map(|n| &n.kind) {
            Some(Kind::Element(_, attributes)) => {
                Attributes::new(attributes).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// All text below a node, as it stands.
    #[must_use]
    pub fn text(&self, id: Id) -> String {
        let mut out = String::new();
        let mut waiting = vec![id];
        while let Some(id) = waiting.pop() {
            match self.nodes.get(id).map(|n| &n.kind) {
                Some(Kind::Text(text)) => out.push_str(text),
                Some(Kind::Element(name, _)) if name == "br" => out.push('\n'),
                _ => {}
            }
            waiting.extend(self.children(id).iter().rev());
        }
        out
    }
}

struct Builder<'a> {
    tree: Tree<'a>,
    open: Vec<Id>,
    /// The name of the element that goes with its content, and how often it is open.
    dropped: Option<(Cow<'a, str>, usize)>,
    xhtml: bool,
}

impl<'a> Builder<'a> {
    fn token(&mut self, token: &Token<'a>) {
        match *token {
            Token::Text(text) if self.dropped.is_none() => self.text(entities::decode(text)),
            Token::Raw(text) if self.dropped.is_none() => self.text(Cow::Borrowed(text)),
            Token::Start { name, attributes, self_closing } => {
                self.start(lower(name), attributes, self.xhtml && self_closing);
            }
            Token::End(name) => self.end(&lower(name)),
            Token::Text(_) | Token::Raw(_) | Token::Comment | Token::Unclosed(_) => {}
        }
    }

    fn text(&mut self, text: Cow<'a, str>) {
        let is_lost = self.between_cells() && text.trim_ascii().is_empty();
        if !text.is_empty() && !is_lost {
            self.add(Kind::Text(text));
        }
    }

    fn add(&mut self, kind: Kind<'a>) -> Id {
        let id = self.tree.nodes.len();
        let is_part = matches!(&kind, Kind::Element(name, _) if is_table_part(name));
        self.tree.nodes.push(Node { kind, children: Vec::new() });
        // What stands between the cells of a table goes before it (foster parenting, section 13.2.6.1).
        let table = self.table().filter(|_| self.between_cells() && !is_part);
        let parent = match table {
            Some(at) => self.open.get(at.saturating_sub(1)),
            None => self.open.last(),
        };
        let before = table.and_then(|at| self.open.get(at)).copied();
        if let Some(parent) = parent.and_then(|parent| self.tree.nodes.get_mut(*parent)) {
            match before.and_then(|table| parent.children.iter().rposition(|c| *c == table)) {
                Some(place) => parent.children.insert(place, id),
                None => parent.children.push(id),
            }
        }
        id
    }

    /// Where the innermost open table stands among the open elements.
    fn table(&self) -> Option<usize> {
        self.open.iter().rposition(|id| self.tree.name(*id) == "table")
    }

    /// Whether the innermost open element is a table or a part of one that holds no text.
    fn between_cells(&self) -> bool {
        let name = self.open.last().map_or("", |id| self.tree.name(*id));
        matches!(name, "table" | "tbody" | "thead" | "tfoot" | "tr")
    }

    /// Opens a part of a table: it closes what is open inside of the part that it belongs to (sections 13.2.6.4.9 to
    /// 13.2.6.4.15). Outside of a table it is none.
    fn table_part(&mut self, name: Cow<'a, str>, attributes: &'a str) {
        let Some(table) = self.table() else { return };
        let is_section = |name: &str| matches!(name, "tbody" | "thead" | "tfoot");
        let inside = self.open.get(table + 1..).unwrap_or(&[]);
        let section = inside.iter().position(|id| is_section(self.tree.name(*id))).map(|at| table + 1 + at);
        let row = inside.iter().position(|id| self.tree.name(*id) == "tr").map(|at| table + 1 + at);
        let (holder, needs_row) = match &*name {
            "td" | "th" => (row.or(section).unwrap_or(table), row.is_none()),
            "tr" => (section.unwrap_or(table), false),
            _ => (table, false),
        };
        self.open.truncate(holder + 1);
        if needs_row {
            let row = self.add(Kind::Element(Cow::Borrowed("tr"), ""));
            self.open.push(row);
        }
        let id = self.add(Kind::Element(name, attributes));
        self.open.push(id);
    }

    fn start(&mut self, name: Cow<'a, str>, attributes: &'a str, closed: bool) {
        if let Some((dropped, depth)) = &mut self.dropped {
            *depth += usize::from(*dropped == name && !closed);
            return;
        }
        if is_dropped(&name) {
            // Embedded video is the one thing of these that a form may keep; it is an element without content.
            if name == "iframe" {
                self.add(Kind::Element(name.clone(), attributes));
            }
            if !closed && !is_void(&name) {
                self.dropped = Some((name, 1));
            }
            return;
        }
        match &*name {
            "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "caption" => return self.table_part(name, attributes),
            "col" | "colgroup" => return,
            // A table between the cells of another ends that one.
            "table" if self.between_cells() => {
                let at = self.table().unwrap_or(self.open.len());
                self.open.truncate(at);
            }
            _ => {}
        }
        if let Some((ends, until)) = implied(&name) {
            self.close_any(ends, until);
        }
        if is_block(&name) {
            self.close_any(&["p"], &["td", "th", "table", "caption", "button"]);
        }
        if is_heading(&name) && self.open.last().is_some_and(|id| is_heading(self.tree.name(*id))) {
            self.open.pop();
        }
        let empty = is_void(&name) || closed;
        if self.open.len() > MAX_DEPTH && !empty {
            self.tree.degraded = true;
            return;
        }
        let id = self.add(Kind::Element(name, attributes));
        if !empty {
            self.open.push(id);
        }
    }

    /// Closes the outermost of some elements that stands inside of the nearest of some others.
    fn close_any(&mut self, ends: &[&str], until: &[&str]) {
        let mut close_at = None;
        for (at, id) in self.open.iter().enumerate().skip(1).rev() {
            let name = self.tree.name(*id);
            if until.contains(&name) {
                break;
            }
            if ends.contains(&name) {
                close_at = Some(at);
            }
        }
        if let Some(at) = close_at {
            self.open.truncate(at);
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((dropped, depth)) = &mut self.dropped {
            if *dropped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.dropped = None;
                }
            }
            return;
        }
        if name == "br" {
            // `</br>` is a break, as browsers have it.
            self.add(Kind::Element(Cow::Borrowed("br"), ""));
            return;
        }
        for (at, id) in self.open.iter().enumerate().skip(1).rev() {
            let open = self.tree.name(*id);
            if open == name || (is_heading(open) && is_heading(name)) {
                self.open.truncate(at);
                return;
            }
            // An end tag from inside of a cell does not reach out of it, unless it ends the table or the row.
            if is_barrier(open) && !matches!(name, "table" | "tr" | "tbody" | "thead" | "tfoot") {
                return;
            }
        }
    }
}

fn is_heading(name: &str) -> bool {
    matches!(name, "h1" | "h2" | "h3" | "h4" | "h5" | "h6")
}

/// A name in lower case, a prefix taken off (`h:p` of XHTML, `o:p` of word processors).
fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|b| b.is_ascii_uppercase()) { name.to_ascii_lowercase().into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tree: &Tree<'_>, id: Id) -> String {
        match &tree.node(id).unwrap().kind {
            Kind::Text(text) => text.to_string(),
            Kind::Element(name, _) => {
                let inner: String = tree.children(id).iter().map(|c| shown(tree, *c)).collect();
                if name.is_empty() { inner } else { format!("({name} {inner})") }
            }
        }
    }

    #[test]
    fn end_tags_are_implied_as_browsers_do() {
        for (html, expected) in [
            ("<p>a<p>b", "(p a)(p b)"),
            ("<ul><li>a<ul><li>b</ul><li>c</ul>", "(ul (li a(ul (li b)))(li c))"),
            ("<p>a<div>b</div>c", "(p a)(div b)c"),
            ("<b>a<i>b</b>c</i>d", "(b a(i b))cd"),
            ("<table><tr><td>a<td>b<tr><td>c</table>d", "(table (tr (td a)(td b))(tr (td c)))d"),
            ("<table><tr><td>a</p></b>c</td></tr></table>", "(table (tr (td ac)))"),
            ("a<td>b</td>c", "abc"),
            ("<table>a<td>b<table>c", "a(table (tr (td bc(table ))))"),
            ("<table>a<b>b<tr>c<td>d</table>", "a(b b)c(table (tr (td d)))"),
            ("<h1>a</h2>b", "(h1 a)b"),
            ("a</br>b<br/>c</i>", "a(br )b(br )c"),
            ("a<svg><g><svg>x</svg></g>y</svg>b<script>c</script>d", "abd"),
            ("<dl><dt>a<dd>b<dt>c</dl>", "(dl (dt a)(dd b)(dt c))"),
            ("<IMG src=x>a", "(img )a"),
        ] {
            assert_eq!(shown(&Tree::of(html, Markup::Html), 0), expected, "{html}");
        }
    }

    #[test]
    fn depth_and_number_are_bounded_and_told() {
        let deep = "<div>".repeat(100_000) + "x";
        let tree = Tree::of(&deep, Markup::Html);
        assert!(tree.degraded && tree.nodes.len() <= MAX_DEPTH + 2);
        assert_eq!(tree.text(0), "x");
        let many = "<br>".repeat(MAX_NODES + 10) + "end";
        let tree = Tree::of(&many, Markup::Html);
        assert!(tree.degraded && tree.text(0).ends_with("end"));
        assert!(!Tree::of("<p>a</p>", Markup::Html).degraded);
    }
}
