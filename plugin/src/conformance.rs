//! What is noted of a document once it is read: against its transport, its clock and its own items.
//!
//! Owns the notes that need more than the document's markup. Decides nothing; a note costs no item.

use std::collections::{HashMap, HashSet};

use crate::model::{Dialect, Feed};
use crate::notes::{Code, Notes};
use crate::page::Counts;

/// Seconds that a publisher's clock may run ahead before its dates count as lying in the future.
const CLOCK_SKEW: i64 = 300;

/// Notes what the Content-Type, the clock and the identifiers of the items say.
pub fn note(feed: &Feed, content_type: Option<&str>, now: i64, notes: &Notes) {
    if let Some(served) = content_type.map(media_type).filter(|t| family(t).is_some_and(|f| f != parsed(feed))) {
        let detail = format!("served {served}, parsed {}", feed.meta.dialect.name());
        notes.add(Code::ContentTypeMismatch, None, &detail);
    }
    let limit = now.saturating_add(CLOCK_SKEW);
    let in_future = |date: Option<i64>| date.is_some_and(|d| d > limit);
    let future = feed.items.iter().filter(|i| in_future(i.published) || in_future(i.updated)).count();
    notes.add_many(Code::DateInFuture, future, None, "");
    let nameless = feed.items.iter().filter(|i| i.guid.trim().is_empty() && i.link.trim().is_empty()).count();
    notes.add_many(Code::EntriesWithoutIdentity, nameless, None, "");
    note_duplicates(feed, notes);
}

/// Items that share an identifier, or a link where they have none.
fn note_duplicates(feed: &Feed, notes: &Notes) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let mut count = 0;
    for item in &feed.items {
        let key = match (item.guid.trim(), item.link.trim()) {
            ("", "") => continue,
            ("", link) => ("link", link),
            (guid, _) => ("guid", guid),
        };
        count += usize::from(!seen.insert(key));
    }
    notes.add_many(Code::DuplicateIdentity, count, None, "");
}

/// Notes items that were left out.
pub fn note_counts(counts: Counts, notes: &Notes) {
    notes.add_many(Code::EmptyItemDropped, counts.empty, None, "");
    notes.add_many(Code::ItemsBeyondBound, counts.beyond_bound, None, "");
}

/// The media type without parameters, in lower case and of reasonable length.
fn media_type(content_type: &str) -> String {
    let name = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    name.chars().filter(char::is_ascii_graphic).take(64).collect()
}

/// The family of documents that a media type names; those that name none have no opinion.
fn family(media_type: &str) -> Option<&'static str> {
    let families: HashMap<&str, &str> = HashMap::from([
        ("application/rss+xml", "rss"),
        ("text/rss+xml", "rss"),
        ("application/rdf+xml", "rss"),
        ("application/atom+xml", "atom"),
        ("text/atom+xml", "atom"),
        ("application/feed+json", "json"),
        ("application/json", "json"),
        ("text/json", "json"),
        ("text/html", "html"),
    ]);
    families.get(media_type).copied()
}

fn parsed(feed: &Feed) -> &'static str {
    match feed.meta.dialect {
        Dialect::Atom => "atom",
        Dialect::Json => "json",
        Dialect::Rss09 | Dialect::Rss10 | Dialect::Rss20 => "rss",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Item;

    fn noted(feed: &Feed, content_type: Option<&str>) -> Vec<(&'static str, usize, String)> {
        let notes = Notes::default();
        note(feed, content_type, 1_000_000, &notes);
        notes.list().into_iter().map(|n| (n.code.name(), n.count, n.detail)).collect()
    }

    #[test]
    fn only_a_media_type_that_names_another_family_is_noted() {
        let feed = Feed::default();
        for (content_type, expected) in [
            (None, false),
            (Some("application/rss+xml; charset=utf-8"), false),
            (Some("text/xml"), false),
            (Some("application/octet-stream"), false),
            (Some("Application/Atom+XML"), true),
            (Some("text/html"), true),
            (Some("application/json"), true),
        ] {
            assert_eq!(!noted(&feed, content_type).is_empty(), expected, "{content_type:?}");
        }
        let detail = &noted(&feed, Some("application/atom+xml"))[0].2;
        assert_eq!(detail, "served application/atom+xml, parsed rss-2.0");
    }

    #[test]
    fn items_without_names_with_shared_ones_and_from_the_future_are_counted() {
        let item = |guid: &str, link: &str, published| Item {
            guid: guid.into(),
            link: link.into(),
            published,
            ..Item::default()
        };
        let feed = Feed {
            items: vec![
                item("a", "x", Some(1_000_000 + CLOCK_SKEW)),
                item("a", "y", Some(1_000_001 + CLOCK_SKEW)),
                item("", "x", None),
                item("", "x", None),
                item(" ", "", None),
            ],
            ..Feed::default()
        };
        let expected = [("date_in_future", 1), ("entries_without_identity", 1), ("duplicate_identity", 2)];
        let found: Vec<_> = noted(&feed, None).into_iter().map(|(code, count, _)| (code, count)).collect();
        assert_eq!(found, expected);
    }
}
