//! From the records of a document to one page: what changed, in which order, how much at once.
//!
//! Owns change detection against the checkpoint, submission order, the bounds of a page and what the checkpoint knows
//! afterwards. Must not know HTTP or XML.

use std::collections::HashMap;

use crate::checkpoint::Seen;
use crate::contract::{Item, WindowEntry};
use crate::identity;
use crate::model::Feed;
use crate::policy::Policy;
use crate::record::{self, Candidate};

/// Items of one page.
pub const MAX_ITEMS: usize = 250;

/// Bytes of one page, items encoded as JSON: past this no further item is added.
pub const MAX_BYTES: usize = 12 * 1_024 * 1_024;

/// What became of the items of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Items of the document.
    pub in_document: usize,
    /// Items beyond the bound of a document.
    pub beyond_bound: usize,
    /// Items with neither title nor text.
    pub empty: usize,
    /// Items whose key stood earlier in the document.
    pub duplicates: usize,
}

/// One page cut from the changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cut {
    /// New and changed items.
    pub items: Vec<Item>,
    /// What is known afterwards, oldest first.
    pub seen: Vec<Seen>,
    /// Changed items are left for another page.
    pub more: bool,
}

/// The records of a document in document order, each key once: the first in the document wins. `previous` tells the key
/// under which an item was known before the policy moved it.
#[must_use]
pub fn candidates(
    feed: &Feed,
    policy: Policy,
    mut previous: impl FnMut(&crate::model::Item, &str) -> Option<String>,
) -> (Vec<Candidate>, Counts) {
    let mut counts = Counts {
        in_document: feed.items_in_document,
        beyond_bound: feed.items_in_document - feed.items.len().min(feed.items_in_document),
        ..Counts::default()
    };
    let mut keys = std::collections::HashSet::new();
    let about = record::FeedExtension::of(&feed.meta);
    let mut kept = Vec::with_capacity(feed.items.len());
    for (position, item) in feed.items.iter().enumerate() {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let Some(mut candidate) = record::candidate(item, &about, position, policy) else {
            counts.empty += 1;
            continue;
        };
        if keys.insert(candidate.short_key.clone()) {
            candidate.item.previous_key = previous(item, &candidate.item.record_key);
            kept.push(candidate);
        } else {
            counts.duplicates += 1;
        }
    }
    (kept, counts)
}

/// What the document lists, in document order.
#[must_use]
pub fn window(candidates: &[Candidate]) -> Vec<WindowEntry> {
    candidates.iter().map(|c| WindowEntry { record_key: c.item.record_key.clone(), position: c.position }).collect()
}

/// Puts records into submission order: by date where every one has a date (ties in reverse document order), else in
/// reverse document order. Feeds put the newest first, so the oldest is sent first.
pub fn order(candidates: &mut [Candidate]) {
    candidates.reverse();
    if candidates.iter().all(|c| c.date.is_some()) {
        candidates.sort_by_key(|c| c.date);
    }
}

/// Cuts the page from records in submission order.
///
/// With `adopt`, `seen` comes from another reader: a known key counts as unchanged and takes our revision.
#[must_use]
pub fn cut(candidates: Vec<Candidate>, seen: Vec<Seen>, adopt: bool) -> Cut {
    let known: HashMap<String, String> = seen.iter().map(|s| (s.k.clone(), s.r.clone())).collect();
    let here: std::collections::HashSet<&str> = candidates.iter().map(|c| c.short_key.as_str()).collect();
    let mut page = Cut { seen: seen.into_iter().filter(|s| !here.contains(s.k.as_str())).collect(), ..Cut::default() };
    drop(here);
    // Measuring escapes takes a look at every byte, and most documents cannot come near the bound.
    let may_be_cut = candidates.iter().map(|c| record::encoded_length_at_most(&c.item)).sum::<usize>() > MAX_BYTES;
    let mut bytes = 0;
    for candidate in candidates {
        let (k, mut r) = (candidate.short_key, candidate.short_revision);
        match known.get(&k) {
            Some(known) if adopt || *known == r => {}
            before => {
                if page.more || page.items.len() >= MAX_ITEMS || (bytes > MAX_BYTES && !page.items.is_empty()) {
                    page.more = true;
                    // It waits for another page: what is known of it stays as it was.
                    match before {
                        Some(known) => r.clone_from(known),
                        None => continue,
                    }
                } else {
                    if may_be_cut {
                        bytes += record::encoded_length(&candidate.item);
                    }
                    if let Some(previous) = &candidate.item.previous_key {
                        // The record goes on under its new key; the old one is nobody's.
                        let gone = identity::short_key(previous);
                        page.seen.retain(|s| s.k != gone);
                    }
                    page.items.push(candidate.item);
                }
            }
        }
        page.seen.push(Seen { k, r });
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(n: u32, date: Option<i64>, text: &str) -> Candidate {
        Candidate {
            item: Item {
                record_key: format!("key-{n}"),
                revision: format!("rev-{n}"),
                previous_key: None,
                parts: vec![crate::contract::Part { key: "body", role: "body", parent_key: None, text: text.into() }],
                extensions: Vec::new(),
            },
            short_key: format!("k{n}"),
            short_revision: format!("r{n}"),
            date,
            position: n,
        }
    }

    fn keys(items: &[Item]) -> Vec<&str> {
        items.iter().map(|i| i.record_key.as_str()).collect()
    }

    fn seen(pairs: &[(&str, &str)]) -> Vec<Seen> {
        pairs.iter().map(|(k, r)| Seen { k: (*k).into(), r: (*r).into() }).collect()
    }

    #[test]
    fn the_oldest_is_sent_first() {
        let order_of = |dates: &[Option<i64>]| {
            let mut list: Vec<_> = dates.iter().zip(0..).map(|(d, n)| candidate(n, *d, "x")).collect();
            order(&mut list);
            list.iter().map(|c| c.position).collect::<Vec<_>>()
        };
        assert_eq!(order_of(&[Some(30), Some(10), Some(20)]), [1, 2, 0]);
        // Ties in reverse document order; one undated item makes the whole document go by its order.
        assert_eq!(order_of(&[Some(10), Some(10), Some(5)]), [2, 1, 0]);
        assert_eq!(order_of(&[Some(10), None, Some(30)]), [2, 1, 0]);
    }

    #[test]
    fn only_new_and_changed_items_are_sent_and_the_rest_is_remembered() {
        let list = vec![candidate(1, None, "x"), candidate(2, None, "x"), candidate(3, None, "x")];
        let page = cut(list, seen(&[("gone", "g"), ("k2", "r2"), ("k3", "old")]), false);
        assert_eq!(keys(&page.items), ["key-1", "key-3"]);
        assert_eq!(page.seen, seen(&[("gone", "g"), ("k1", "r1"), ("k2", "r2"), ("k3", "r3")]));
        assert!(!page.more);
    }

    #[test]
    fn another_readers_keys_are_trusted_and_take_our_revisions() {
        let list = vec![candidate(1, None, "x"), candidate(2, None, "x")];
        let page = cut(list, seen(&[("k2", "theirs")]), true);
        assert_eq!(keys(&page.items), ["key-1"]);
        assert_eq!(page.seen, seen(&[("k1", "r1"), ("k2", "r2")]));
    }

    #[test]
    fn a_page_ends_at_250_items() {
        for (count, items, more) in [(MAX_ITEMS, MAX_ITEMS, false), (MAX_ITEMS + 1, MAX_ITEMS, true)] {
            let list = (0..count).map(|n| candidate(u32::try_from(n).unwrap(), None, "x")).collect();
            let page = cut(list, Vec::new(), false);
            assert_eq!((page.items.len(), page.more), (items, more));
        }
    }

    #[test]
    fn a_page_ends_past_12_mib_and_what_waits_keeps_its_old_revision() {
        let big = "x".repeat(5 * 1_024 * 1_024);
        let list = (0..5).map(|n| candidate(n, None, &big)).collect();
        let page = cut(list, seen(&[("k4", "old")]), false);
        // Two items are 10 MiB, so a third is added; then 15 MiB are past the bound.
        assert_eq!(keys(&page.items), ["key-0", "key-1", "key-2"]);
        assert!(page.more);
        assert_eq!(page.seen, seen(&[("k0", "r0"), ("k1", "r1"), ("k2", "r2"), ("k4", "old")]));
    }
}
