//! Atom 1.0 (RFC 4287), and Atom 0.3 where it says the same.
//!
//! Owns which element of Atom is which field. Must not know RSS or records.

use super::fields::{Source, add_category, add_link, address, enclosure, language_tag};
use super::more;
use super::outline::{Node, Ns, Outline};
use crate::model::{Author, Dialect, Enclosure, Feed, FeedMeta, IdOrigin, Item, Text};
use crate::notes::Notes;

pub(super) fn read(document: &str, outline: &Outline<'_>, notes: &Notes) -> Feed {
    let root = &outline.root;
    // A document may be one entry (section 2): then it is its own feed.
    let single = root.name.eq_ignore_ascii_case("entry");
    let mut feed_authors = if single { Vec::new() } else { authors(root) };
    // Each entry that inherits them gets a copy.
    feed_authors.truncate(crate::identity::MAX_LIST);
    let entries: Vec<&Node<'_>> = if single { vec![root] } else { outline.items.iter().collect() };
    let outside = Source { document, notes, feed_link: "" };
    let meta = if single {
        FeedMeta { dialect: Dialect::Atom, version: version(outline), ..FeedMeta::default() }
    } else {
        meta(&outside, outline)
    };
    let meta = FeedMeta { declared: format!("atom-{}", meta.version), ..meta };
    let source = Source { feed_link: &meta.link, ..outside };
    Feed {
        pace: super::rss::pace(root),
        items: entries.iter().map(|e| entry(&source, e, &feed_authors)).collect(),
        meta,
        items_in_document: if single { 1 } else { outline.items_in_document },
    }
}

fn version(outline: &Outline<'_>) -> String {
    let old = outline.root_namespace.as_deref().is_some_and(|n| n.contains("purl.org/atom"))
        || outline.root.attribute("version").is_some_and(|v| v.trim() == "0.3");
    if old { "0.3" } else { "1.0" }.to_owned()
}

/// Children of Atom documents that forgot their namespace count as Atom.
fn all<'n, 'd>(node: &'n Node<'d>, name: &'static str) -> impl Iterator<Item = &'n Node<'d>> {
    node.children.iter().filter(move |c| matches!(c.ns, Ns::Atom | Ns::Rss) && c.name.eq_ignore_ascii_case(name))
}

fn text_of<'n>(node: &'n Node<'_>, name: &'static str) -> Option<&'n str> {
    all(node, name).map(|c| c.text.trim()).find(|t| !t.is_empty())
}

fn text(source: &Source<'_>, node: &Node<'_>, name: &'static str) -> Text {
    all(node, name).map(|n| source.atom_text(n)).find(|t| !t.raw.trim().is_empty()).unwrap_or_default()
}

fn meta(source: &Source<'_>, outline: &Outline<'_>) -> FeedMeta {
    let root = &outline.root;
    let icon = text_of(root, "icon").or_else(|| text_of(root, "logo"));
    let description = text(source, root, "subtitle");
    FeedMeta {
        dialect: Dialect::Atom,
        version: version(outline),
        title: text(source, root, "title"),
        link: first_link(root),
        description: if description.raw.is_empty() { text(source, root, "tagline") } else { description },
        language: root.attribute("xml:lang").map(language_tag).unwrap_or_default(),
        icon: icon.map(|i| address(i, root.base.as_deref())).unwrap_or_default(),
        declared: String::new(),
    }
}

fn rel<'n>(link: &'n Node<'_>) -> &'n str {
    // No rel means "alternate" (section 4.2.7.2); the registered names may be written as addresses.
    let written = link.attribute("rel").map_or("alternate", str::trim);
    let name = written.strip_prefix("http://www.iana.org/assignments/relation/").unwrap_or(written);
    if name.is_empty() { "alternate" } else { name }
}

fn href(link: &Node<'_>) -> Option<String> {
    link.attribute("href").map(|h| address(h, link.base.as_deref())).filter(|h| !h.is_empty())
}

fn first_link(node: &Node<'_>) -> String {
    all(node, "link").filter(|l| rel(l).eq_ignore_ascii_case("alternate")).find_map(href).unwrap_or_default()
}

fn entry(source: &Source<'_>, node: &Node<'_>, feed_authors: &[Author]) -> Item {
    let link = first_link(node);
    let mut links: Vec<String> = Vec::new();
    for l in all(node, "link").filter(|l| matches!(rel(l).to_ascii_lowercase().as_str(), "alternate" | "self")) {
        add_link(&mut links, &link, href(l).unwrap_or_default());
    }
    let enclosures: Vec<Enclosure> = all(node, "link")
        .filter(|l| rel(l).eq_ignore_ascii_case("enclosure"))
        .filter_map(|l| enclosure(l, "href"))
        .collect();
    let mut categories = Vec::new();
    for category in all(node, "category") {
        add_category(&mut categories, category.attribute("term").unwrap_or(&category.text));
    }
    let date_of = |names: &[&'static str]| names.iter().find_map(|n| all(node, n).find_map(|d| source.date(d)));
    let (content, mut summary) = (text(source, node, "content"), text(source, node, "summary"));
    if content.raw.trim().is_empty() && summary.raw.trim().is_empty() {
        summary = source.media_description(node).unwrap_or(summary);
    }
    Item {
        guid: text_of(node, "id").unwrap_or("").to_owned(),
        guid_origin: IdOrigin::AtomId,
        base_url: source.base_address(node, &link),
        more: more::item(node),
        link,
        links,
        title: text(source, node, "title"),
        content,
        summary,
        authors: entry_authors(node, feed_authors),
        published: date_of(&["published", "issued", "created"]),
        updated: date_of(&["updated", "modified"]),
        categories,
        enclosures,
    }
}

/// The entry's own authors, else those of its `source`, else the feed's (section 4.2.1).
fn entry_authors(node: &Node<'_>, feed_authors: &[Author]) -> Vec<Author> {
    let own = authors(node);
    if !own.is_empty() {
        return own;
    }
    let inherited = all(node, "source").next().map(authors).unwrap_or_default();
    if inherited.is_empty() { feed_authors.to_vec() } else { inherited }
}

/// Person constructs (section 3.2); a bare text, which is a mistake, is a name.
pub(super) fn authors(node: &Node<'_>) -> Vec<Author> {
    node.children
        .iter()
        .filter(|c| matches!(c.ns, Ns::Atom | Ns::Rss) && c.name.eq_ignore_ascii_case("author"))
        .map(|a| {
            if a.children.is_empty() {
                super::fields::person(&a.text)
            } else {
                Author {
                    name: text_of(a, "name").unwrap_or("").to_owned(),
                    email: text_of(a, "email").unwrap_or("").to_owned(),
                }
            }
        })
        .filter(|a| !a.name.is_empty() || !a.email.is_empty())
        .collect()
}
