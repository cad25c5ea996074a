//! What a dialect demands of a document and the document does not have.
//!
//! Owns the table of required elements, with the section that demands each. A missing one costs nothing but a note.

use super::outline::{Node, Ns, Outline};
use crate::model::{Dialect, Feed};
use crate::notes::{Code, Notes};

/// Required elements of a channel and of an item by the declared version.
fn required(declared: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match declared {
        // RSS 0.91 (Userland and Netscape) wants a language too.
        "rss-0.91" => (&["title", "link", "description", "language"], &["title", "link"]),
        "rss-0.90" => (&["title", "link", "description"], &["title", "link"]),
        // RSS 1.0, sections 5.3 and 5.5.
        "rss-1.0" | "rss-1.1" => (&["title", "link", "description"], &["title", "link"]),
        // RSS 2.0, "Required channel elements"; every element of an item is optional.
        d if d.starts_with("rss") => (&["title", "link", "description"], &[]),
        // Atom 0.3, sections 4 and 5.
        "atom-0.3" => (&["title", "link", "modified"], &["title", "link", "id", "issued", "modified"]),
        // RFC 4287, sections 4.1.1 and 4.1.2.
        d if d.starts_with("atom") => (&["id", "title", "updated"], &["id", "title", "updated"]),
        _ => (&[], &[]),
    }
}

/// Notes what is missing.
pub(super) fn check(outline: &Outline<'_>, feed: &Feed, notes: &Notes) {
    let root = &outline.root;
    let is_atom = feed.meta.dialect == Dialect::Atom;
    let (of_feed, of_item) = required(&feed.meta.declared);
    let is_entry = root.name.eq_ignore_ascii_case("entry");
    let (holder, feed_name, item_name) = if is_atom {
        (root, "feed", "entry")
    } else {
        (root.first(Ns::Rss, "channel").unwrap_or(root), "channel", "item")
    };
    if !is_entry {
        for name in of_feed.iter().filter(|name| !has(holder, name)) {
            notes.add(Code::MissingRequired, Some(holder.at), &format!("{feed_name}/{name}"));
        }
    }
    let single = is_entry.then_some(root);
    for item in outline.items.iter().chain(single) {
        for name in of_item.iter().filter(|name| !has(item, name)) {
            notes.add(Code::MissingRequired, Some(item.at), &format!("{item_name}/{name}"));
        }
        // RFC 4287, section 4.1.1: an author in the feed, or in every entry or its source.
        let has_author = |node: &Node<'_>| has(node, "author");
        let sourced = item.children.iter().any(|c| c.name.eq_ignore_ascii_case("source") && has_author(c));
        if feed.meta.declared == "atom-1.0" && !has_author(root) && !has_author(item) && !sourced {
            notes.add(Code::MissingRequired, Some(item.at), "entry/author");
        }
    }
}

fn has(node: &Node<'_>, name: &str) -> bool {
    node.children.iter().any(|c| {
        matches!(c.ns, Ns::Rss | Ns::Atom)
            && c.name.eq_ignore_ascii_case(name)
            && (!c.text.trim().is_empty()
                || c.element_count > 0
                || !c.children.is_empty()
                || c.attribute("href").is_some())
    })
}
