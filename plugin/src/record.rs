//! From one item of a feed to one record: parts, extensions, bounds.
//!
//! Owns what becomes of title, body and summary, the truncation order and the two extensions. Must not know
//! checkpoints or pages.

use crate::canonical::{self, Object};
use crate::contract::{self, Extension, Part};
use crate::html::text;
use crate::identity::{self, KeyBasis, MAX_METADATA_BYTES, Metadata, clip};
use crate::model::{FeedMeta, Item, Markup};
use crate::policy::Policy;

/// Bytes of the title that are kept.
pub const MAX_TITLE_BYTES: usize = 2_048;
/// Bytes of the body text that are kept.
pub const MAX_BODY_BYTES: usize = 384 * 1_024;
/// Bytes of the summary text that are kept.
pub const MAX_SUMMARY_BYTES: usize = 64 * 1_024;
/// Bytes of all text of an item, the original markup counted last.
pub const MAX_TEXT_BYTES: usize = 768 * 1_024;
/// Bytes of the extension `connector.rss`.
pub const MAX_EXTENSION_BYTES: usize = 48 * 1_024;

/// Namespace of the extension with an item's metadata.
pub const EXTENSION: &str = "connector.rss";
/// Namespace of the extension that tells where things came from.
pub const PROVENANCE: &str = "connector.rss.provenance";
/// Namespace of the extension with what is not core.
pub const MORE: &str = "connector.rss.more";
/// Schema version of all.
pub const SCHEMA_VERSION: &str = "1";

/// An item that counts: it has a title or a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The record.
    pub item: contract::Item,
    /// Short form of its key.
    pub short_key: String,
    /// Short form of its revision.
    pub short_revision: String,
    /// Date that orders items: published, else updated.
    pub date: Option<i64>,
    /// Place in the document, from 0.
    pub position: u32,
}

/// What the parts are made of.
#[derive(Default)]
struct Texts {
    title: String,
    body: String,
    summary: String,
    body_html: Option<String>,
    summary_html: Option<String>,
    body_origin: &'static str,
    truncated: bool,
}

/// The record of an item; `None` when it has neither title nor body text (a summary alone becomes the body).
#[must_use]
pub fn candidate(item: &Item, feed: &FeedExtension, position: u32, policy: Policy) -> Option<Candidate> {
    let texts = texts(item);
    if texts.title.is_empty() && texts.body.is_empty() {
        return None;
    }
    let metadata = Metadata::of(item);
    let revision = identity::revision(item, &metadata, texts.truncated, policy);
    let (record_key, basis) = identity::record_key(&metadata, item, policy);
    let mut extensions = vec![
        Extension {
            namespace: EXTENSION,
            schema_version: SCHEMA_VERSION,
            data: extension(metadata, feed, texts.truncated),
        },
        Extension { namespace: PROVENANCE, schema_version: SCHEMA_VERSION, data: provenance(item, basis, &texts) },
    ];
    if !item.more.is_empty() {
        extensions.push(Extension { namespace: MORE, schema_version: SCHEMA_VERSION, data: item.more.clone() });
    }
    Some(Candidate {
        short_key: identity::short_key(&record_key),
        short_revision: identity::short_revision(&revision),
        date: item.published.or(item.updated),
        position,
        item: contract::Item { record_key, revision, previous_key: None, parts: parts(texts), extensions },
    })
}

/// Cuts a text to its bound; tells whether it was longer.
fn bound(text: &mut String, bytes: usize) -> bool {
    let kept = clip(text, bytes).len();
    let cut = kept < text.len();
    text.truncate(kept);
    cut
}

/// Texts in the order of the bounds: title, body, summary, then the original markup in what budget is left.
fn texts(item: &Item) -> Texts {
    let content_blank = item.content.raw.trim().is_empty();
    let body_source = if content_blank { &item.summary } else { &item.content };
    let summary_source = (!content_blank).then_some(&item.summary);
    let body = text::plain(&body_source.raw, body_source.markup);
    let summary = summary_source.map(|s| text::plain(&s.raw, s.markup)).unwrap_or_default();
    let mut out = Texts {
        title: text::one_line(&item.title.raw, item.title.markup),
        // A summary that says what the body says is none.
        summary: if summary.text == body.text { String::new() } else { summary.text },
        body: body.text,
        body_origin: match (content_blank, item.summary.raw.trim().is_empty()) {
            (false, _) => "feed:content",
            (true, false) => "feed:summary",
            (true, true) => "none",
        },
        ..Texts::default()
    };
    out.truncated |= bound(&mut out.title, MAX_TITLE_BYTES);
    out.truncated |= bound(&mut out.body, MAX_BODY_BYTES);
    out.truncated |= bound(&mut out.summary, MAX_SUMMARY_BYTES);
    let mut budget = MAX_TEXT_BYTES - out.title.len() - out.body.len() - out.summary.len();
    let mut keep = |wanted: bool, source: &str, truncated: &mut bool| {
        if !wanted {
            return None;
        }
        if source.contains('\0') || source.len() > budget {
            *truncated = true;
            return None;
        }
        budget -= source.len();
        Some(source.to_owned())
    };
    out.body_html = keep(body.has_markup && !out.body.is_empty(), &body_source.raw, &mut out.truncated);
    if let Some(source) = summary_source {
        out.summary_html = keep(summary.has_markup && !out.summary.is_empty(), &source.raw, &mut out.truncated);
    }
    out
}

fn parts(texts: Texts) -> Vec<Part> {
    let part = |key, role, parent_key, text: String| (!text.is_empty()).then_some(Part { key, role, parent_key, text });
    [
        part("title", "title", None, texts.title),
        part("body", "body", None, texts.body),
        part("body_html", "source_html", Some("body"), texts.body_html.unwrap_or_default()),
        part("summary", "summary", None, texts.summary),
        part("summary_html", "source_html", Some("summary"), texts.summary_html.unwrap_or_default()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A text of the feed as one line, clipped like every metadata string.
#[must_use]
pub fn metadata_line(text: &crate::model::Text) -> String {
    let markup = if text.markup == Markup::Text { Markup::Text } else { Markup::Html };
    clip(&text::one_line(&text.raw, markup), MAX_METADATA_BYTES).to_owned()
}

/// The member `feed` of the extension: made once for a document, the same in each of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedExtension(String);

impl FeedExtension {
    /// What a document says of itself; what is volatile, such as its build date, is left out.
    #[must_use]
    pub fn of(feed: &FeedMeta) -> Self {
        let mut meta = Object::new();
        meta.text("format", feed.dialect.format());
        meta.text_unless_empty("version", clip(&feed.version, MAX_METADATA_BYTES));
        meta.text_unless_empty("title", &metadata_line(&feed.title));
        meta.text_unless_empty("link", clip(&feed.link, MAX_METADATA_BYTES));
        meta.text_unless_empty("language", clip(&feed.language, MAX_METADATA_BYTES));
        Self(meta.finish())
    }
}

/// Data of `connector.rss`: while it is too long, the longest of its lists is halved.
fn extension(mut metadata: Metadata, feed: &FeedExtension, mut truncated: bool) -> String {
    loop {
        let mut item = Object::new();
        item.text_unless_empty("guid", &metadata.guid);
        item.text_unless_empty("link", &metadata.link);
        item.list_unless_empty("links", &metadata.links, |out, l| canonical::string(out, l));
        identity::write_lists(&mut item, &metadata);
        item.flag_if_set("truncated", truncated);
        let mut data = Object::new();
        data.raw("item", &item.finish());
        data.raw("feed", &feed.0);
        let data = data.finish();
        if data.len() <= MAX_EXTENSION_BYTES || !halve_longest(&mut metadata) {
            return data;
        }
        truncated = true;
    }
}

/// Halves the longest list; of equal ones categories first, then enclosures, links, authors. False when all are empty.
fn halve_longest(metadata: &mut Metadata) -> bool {
    let lengths = [metadata.categories.len(), metadata.enclosures.len(), metadata.links.len(), metadata.authors.len()];
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if longest == 0 {
        return false;
    }
    let half = longest / 2;
    match lengths.iter().position(|l| *l == longest) {
        Some(0) => metadata.categories.truncate(half),
        Some(1) => metadata.enclosures.truncate(half),
        Some(2) => metadata.links.truncate(half),
        _ => metadata.authors.truncate(half),
    }
    true
}

/// Data of `connector.rss.provenance`; it never enters the revision.
fn provenance(item: &Item, basis: KeyBasis, texts: &Texts) -> String {
    let mut data = Object::new();
    data.text("key_basis", basis.name());
    data.text("body_origin", texts.body_origin);
    data.text("published_origin", if item.published.is_some() { "feed" } else { "none" });
    data.text_unless_empty("base_url", clip(&item.base_url, MAX_METADATA_BYTES));
    data.finish()
}

/// The bytes of an item as the JSON of Quivr's protocol: what the bound of a page counts.
#[must_use]
pub fn encoded_length(item: &contract::Item) -> usize {
    length(item, canonical::string_length)
}

/// A bound of [`encoded_length`] that looks at no text.
#[must_use]
pub fn encoded_length_at_most(item: &contract::Item) -> usize {
    length(item, |text| text.len() * canonical::MAX_ESCAPED + 2)
}

fn length(item: &contract::Item, string_length: impl Fn(&str) -> usize) -> usize {
    // Names, braces, quotes and commas of an item, of a part with its content, and of an extension.
    const ITEM: usize = 88;
    const PART: usize = 64;
    const EXTENSION: usize = 40;
    let parts: usize = item
        .parts
        .iter()
        .map(|p| PART + p.key.len() + p.role.len() + p.parent_key.map_or(0, |k| k.len() + 16) + string_length(&p.text))
        .sum();
    let extensions: usize = item.extensions.iter().map(|e| EXTENSION + e.namespace.len() + e.data.len()).sum();
    ITEM + string_length(&item.record_key) + item.revision.len() + parts + extensions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Text;

    fn html(raw: &str) -> Text {
        Text { raw: raw.to_owned(), markup: Markup::Html }
    }

    fn made(item: &Item) -> contract::Item {
        candidate(item, &FeedExtension::of(&FeedMeta::default()), 0, Policy::Guid).unwrap().item
    }

    fn part<'a>(item: &'a contract::Item, key: &str) -> Option<&'a str> {
        item.parts.iter().find(|p| p.key == key).map(|p| p.text.as_str())
    }

    fn truncated(item: &contract::Item) -> bool {
        item.extensions[0].data.contains("\"truncated\":true")
    }

    #[test]
    fn parts_come_in_order_and_only_when_they_have_text() {
        let item = made(&Item {
            title: html("T &amp; <b>U</b>"),
            content: html("<p>Body</p>"),
            summary: html("<i>Short</i>"),
            ..Item::default()
        });
        let shape: Vec<_> = item.parts.iter().map(|p| (p.key, p.role, p.parent_key, p.text.as_str())).collect();
        assert_eq!(
            shape,
            [
                ("title", "title", None, "T & U"),
                ("body", "body", None, "Body"),
                ("body_html", "source_html", Some("body"), "<p>Body</p>"),
                ("summary", "summary", None, "Short"),
                ("summary_html", "source_html", Some("summary"), "<i>Short</i>"),
            ]
        );
    }

    #[test]
    fn a_lone_description_is_the_body_and_an_equal_summary_is_none() {
        let lone = made(&Item { summary: html("Only this"), ..Item::default() });
        assert_eq!((part(&lone, "body"), part(&lone, "summary")), (Some("Only this"), None));
        let equal = made(&Item { content: html("<p>Same</p>"), summary: html("Same"), ..Item::default() });
        assert_eq!((part(&equal, "body"), part(&equal, "summary")), (Some("Same"), None));
    }

    #[test]
    fn an_item_with_neither_title_nor_body_is_none() {
        let item = Item { guid: "g".into(), link: "l".into(), content: html("<img src=x>"), ..Item::default() };
        assert_eq!(candidate(&item, &FeedExtension::of(&FeedMeta::default()), 0, Policy::Guid), None);
    }

    #[test]
    fn each_text_is_cut_at_its_bound_and_not_before() {
        for (past, expected) in [(0, false), (1, true)] {
            let title = made(&Item { title: html(&"t".repeat(MAX_TITLE_BYTES + past)), ..Item::default() });
            assert_eq!((part(&title, "title").map(str::len), truncated(&title)), (Some(MAX_TITLE_BYTES), expected));
            let body = made(&Item { content: html(&"b".repeat(MAX_BODY_BYTES + past)), ..Item::default() });
            assert_eq!((part(&body, "body").map(str::len), truncated(&body)), (Some(MAX_BODY_BYTES), expected));
            let summary = made(&Item {
                content: html("x"),
                summary: html(&"s".repeat(MAX_SUMMARY_BYTES + past)),
                ..Item::default()
            });
            assert_eq!(
                (part(&summary, "summary").map(str::len), truncated(&summary)),
                (Some(MAX_SUMMARY_BYTES), expected)
            );
        }
    }

    #[test]
    fn markup_is_kept_within_the_budget_of_the_whole_item() {
        // Title 1 byte and body 1 byte leave a budget of MAX_TEXT_BYTES - 2 for the markup.
        for (past, kept) in [(0, true), (1, false)] {
            let markup = format!("<i title=\"{}\">b</i>", "x".repeat(MAX_TEXT_BYTES - 2 - 17 + past));
            let item = made(&Item { title: html("t"), content: html(&markup), ..Item::default() });
            assert_eq!(part(&item, "body_html").is_some(), kept);
            assert_eq!(truncated(&item), !kept);
            assert_eq!(part(&item, "body"), Some("b"));
        }
    }

    #[test]
    fn an_extension_that_is_too_long_halves_its_longest_list_without_touching_the_revision() {
        let item = Item {
            title: html("t"),
            categories: (0..50).map(|n| format!("{n:02}{}", "c".repeat(2_000))).collect(),
            ..Item::default()
        };
        let made = made(&item);
        let data: serde_json::Value = serde_json::from_str(&made.extensions[0].data).unwrap();
        // 50 categories of 2,002 bytes are 100,250 bytes, 25 are 50,125, 12 are 24,060: the second is past the bound.
        assert_eq!(data["item"]["categories"].as_array().unwrap().len(), 12);
        assert_eq!(data["item"]["truncated"], true);
        assert_eq!(made.revision, identity::revision(&item, &Metadata::of(&item), false, Policy::Guid));
    }

    #[test]
    fn the_encoded_length_counts_what_go_would_write() {
        let item = made(&Item { title: html("a &lt; b"), ..Item::default() });
        assert!(
            encoded_length(&item) > item.extensions.iter().map(|e| e.data.len()).sum::<usize>() + "a \\u003c b".len()
        );
    }
}
