//! JSON Feed 1.0 and 1.1 (jsonfeed.org).
//!
//! Owns which member of JSON Feed is which field, and what odd types of a member mean. The strings are taken from
//! the JSON itself: feed-rs trims some and refuses the whole document for one member of another type.

use serde_json::{Map, Value};
use url::Url;

use super::fields::{add_category, address, person};
use super::{MAX_ITEMS, ParseError, Stage};
use crate::date;
use crate::model::{Author, Dialect, Enclosure, Feed, FeedMeta, IdOrigin, Item, Markup, Pace, Text};

pub(super) fn read(document: &str, base: Option<&Url>) -> Result<Feed, ParseError> {
    let value: Value = serde_json::from_str(document).map_err(|e| {
        let stage = if e.is_eof() { Stage::Truncated } else { Stage::Json };
        ParseError::at(stage, byte_position(document, e.line(), e.column()))
    })?;
    let not_a_feed = ParseError::at(Stage::NotAFeed, 0);
    let Value::Object(root) = value else { return Err(not_a_feed) };
    let version = string(&root, "version");
    let Some(version) = version.trim().rsplit_once("jsonfeed.org/version/").map(|(_, v)| v.to_owned()) else {
        return Err(not_a_feed);
    };
    let dialect = if version == "1" || version == "1.0" { Dialect::Json10 } else { Dialect::Json11 };
    let Some(Value::Array(items)) = root.get("items") else { return Err(not_a_feed) };
    let feed_authors = authors(&root);
    let objects: Vec<&Map<String, Value>> = items.iter().filter_map(Value::as_object).collect();
    Ok(Feed {
        meta: FeedMeta {
            dialect,
            version,
            title: plain(&root, "title"),
            link: address(&string(&root, "home_page_url"), base),
            description: plain(&root, "description"),
            language: string(&root, "language"),
            icon: address(
                &Some(string(&root, "icon")).filter(|i| !i.is_empty()).unwrap_or_else(|| string(&root, "favicon")),
                base,
            ),
        },
        pace: Pace::default(),
        items_in_document: objects.len(),
        items: objects.into_iter().take(MAX_ITEMS).map(|o| item(o, &feed_authors, base)).collect(),
    })
}

/// Line and column of an error as a byte position; lines count from 1.
fn byte_position(document: &str, line: usize, column: usize) -> u64 {
    let before: usize = document.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column) as u64
}

/// A member as a string; a number is written out, anything else is absent.
fn string(object: &Map<String, Value>, name: &str) -> String {
    match object.get(name) {
        Some(Value::String(s)) => s.clone(),
        Some(Value::Number(n)) => n.to_string(),
        _ => String::new(),
    }
}

fn plain(object: &Map<String, Value>, name: &str) -> Text {
    Text { raw: string(object, name).trim().to_owned(), markup: Markup::Text }
}

fn item(object: &Map<String, Value>, feed_authors: &[Author], base: Option<&Url>) -> Item {
    let html = string(object, "content_html");
    let text = string(object, "content_text");
    let content = if html.trim().is_empty() {
        Text { raw: text.trim().to_owned(), markup: Markup::Text }
    } else {
        Text { raw: html.trim().to_owned(), markup: Markup::Html }
    };
    let link = address(&string(object, "url"), base);
    let external = address(&string(object, "external_url"), base);
    let (link, links) = match (link.is_empty(), external.is_empty()) {
        (true, _) => (external, Vec::new()),
        (false, false) if external != link => (link, vec![external]),
        (false, _) => (link, Vec::new()),
    };
    let own = authors(object);
    let mut categories = Vec::new();
    for tag in object.get("tags").and_then(Value::as_array).into_iter().flatten() {
        add_category(&mut categories, tag.as_str().unwrap_or(""));
    }
    Item {
        guid: string(object, "id").trim().to_owned(),
        guid_origin: IdOrigin::JsonId,
        link,
        links,
        title: plain(object, "title"),
        content,
        summary: plain(object, "summary"),
        authors: if own.is_empty() { feed_authors.to_vec() } else { own },
        published: date::parse(&string(object, "date_published")),
        updated: date::parse(&string(object, "date_modified")),
        categories,
        enclosures: object
            .get("attachments")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|a| attachment(a.as_object()?, base))
            .collect(),
        base_url: base.map(ToString::to_string).unwrap_or_default(),
    }
}

fn attachment(object: &Map<String, Value>, base: Option<&Url>) -> Option<Enclosure> {
    let url = address(&string(object, "url"), base);
    let length = object.get("size_in_bytes").and_then(Value::as_u64).map(|n| n.to_string()).unwrap_or_default();
    (!url.is_empty()).then(|| Enclosure { url, media_type: string(object, "mime_type"), length })
}

/// `authors` of 1.1, else `author` of 1.0; a bare string is a name.
fn authors(object: &Map<String, Value>) -> Vec<Author> {
    let one = |value: &Value| match value {
        Value::String(s) => person(s),
        Value::Object(o) => Author { name: string(o, "name").trim().to_owned(), email: String::new() },
        _ => Author::default(),
    };
    let listed = match object.get("authors") {
        Some(Value::Array(list)) => list.iter().map(one).collect(),
        Some(other) => vec![one(other)],
        None => Vec::new(),
    };
    let named = |list: Vec<Author>| -> Vec<Author> {
        list.into_iter().filter(|a| !a.name.is_empty() || !a.email.is_empty()).collect()
    };
    let listed = named(listed);
    if listed.is_empty() { named(object.get("author").map(one).into_iter().collect()) } else { listed }
}
