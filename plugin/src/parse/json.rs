//! JSON Feed 1.0 and 1.1 (jsonfeed.org).
//!
//! Owns which member of JSON Feed is which field, and what odd types of a member mean. The strings are taken from the
//! JSON itself: feed-rs trims some and refuses the whole document for one member of another type. Members that are not
//! read are passed over without being kept, and so are items beyond the bound.

use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use url::Url;

use super::fields::{add_category, address, base_address, noted_date, person, web_base};
use super::{MAX_ITEMS, ParseError, Stage};
use crate::canonical::Object;
use crate::identity::{MAX_CATEGORIES, MAX_LIST};
use crate::model::{Author, Dialect, Enclosure, Feed, FeedMeta, IdOrigin, Item, Markup, Pace, Text};
use crate::notes::{Code, Notes};

/// A string; a number is written out, anything else is empty.
#[derive(Debug, Default, Clone)]
struct Loose(String);

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
        Ok(Loose(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Loose, E> {
        Ok(Loose(text))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Loose, E> {
        Ok(Loose(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Loose, E> {
        Ok(Loose(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Loose, E> {
        Ok(Loose(number.to_string()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose, E> {
        Ok(Loose::default())
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::default())
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LooseVisitor)
    }
}

/// A list of at most `N` things that are `T`; what is none is passed over, and one alone counts as a list.
#[derive(Debug)]
struct Several<T, const N: usize> {
    list: Vec<T>,
    /// Objects there were, kept or not.
    objects: usize,
    /// It was a list.
    is_list: bool,
}

impl<T, const N: usize> Default for Several<T, N> {
    fn default() -> Self {
        Self { list: Vec::new(), objects: 0, is_list: false }
    }
}

struct SeveralVisitor<T, const N: usize>(std::marker::PhantomData<T>);

/// One element of a list: a `T`, or something else.
struct Element<T>(std::marker::PhantomData<T>);

impl<'de, T: FromObject<'de>> DeserializeSeed<'de> for Element<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        from.deserialize_any(self)
    }
}

/// What an object or a text of a list may become.
trait FromObject<'de>: Sized {
    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
    fn text(text: &str) -> Option<Self>;
}

impl<'de, T: FromObject<'de>> Visitor<'de> for Element<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
        T::object(map).map(Some)
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<T>, E> {
        Ok(T::text(text))
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Option<T>, E> {
        Ok(T::text(&number.to_string()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<T>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl<'de, T: FromObject<'de>, const N: usize> Visitor<'de> for SeveralVisitor<T, N> {
    type Value = Several<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Several<T, N>, A::Error> {
        let mut several = Several { is_list: true, ..Several::default() };
        while several.list.len() < N {
            match from.next_element_seed(Element(std::marker::PhantomData))? {
                Some(Some(element)) => several.list.push(element),
                Some(None) => {}
                None => {
                    several.objects = several.list.len();
                    return Ok(several);
                }
            }
        }
        several.objects = several.list.len();
        while from.next_element::<IgnoredAny>()?.is_some() {
            several.objects += 1;
        }
        Ok(several)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Several<T, N>, A::Error> {
        T::object(map).map(|one| Several { list: vec![one], objects: 1, is_list: false })
    }

    fn visit_str<E>(self, text: &str) -> Result<Several<T, N>, E> {
        Ok(Several { list: T::text(text).into_iter().collect(), objects: 1, is_list: false })
    }

    fn visit_unit<E>(self) -> Result<Several<T, N>, E> {
        Ok(Several::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Several<T, N>, E> {
        Ok(Several::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Several<T, N>, E> {
        Ok(Several::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Several<T, N>, E> {
        Ok(Several::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Several<T, N>, E> {
        Ok(Several::default())
    }
}

impl<'de, T: FromObject<'de>, const N: usize> Deserialize<'de> for Several<T, N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SeveralVisitor(std::marker::PhantomData))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawFeed {
    version: Loose,
    title: Loose,
    home_page_url: Loose,
    description: Loose,
    language: Loose,
    icon: Loose,
    favicon: Loose,
    author: Several<RawAuthor, MAX_LIST>,
    authors: Several<RawAuthor, MAX_LIST>,
    items: Several<RawItem, MAX_ITEMS>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawItem {
    id: Loose,
    url: Loose,
    external_url: Loose,
    title: Loose,
    content_html: Loose,
    content_text: Loose,
    summary: Loose,
    date_published: Loose,
    date_modified: Loose,
    author: Several<RawAuthor, MAX_LIST>,
    authors: Several<RawAuthor, MAX_LIST>,
    tags: Several<Tag, MAX_CATEGORIES>,
    attachments: Several<Attachment, MAX_LIST>,
    language: Loose,
    image: Loose,
    banner_image: Loose,
}

/// An author; a bare text is a name or a mail address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawAuthor {
    name: Loose,
    #[serde(skip)]
    written: String,
}

#[derive(Debug)]
struct Tag(String);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attachment {
    url: Loose,
    mime_type: Loose,
    size_in_bytes: Loose,
}

macro_rules! from_object {
    ($type:ty, $text:expr) => {
        impl<'de> FromObject<'de> for $type {
            fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
                Self::deserialize(MapAccessDeserializer::new(map))
            }

            fn text(text: &str) -> Option<Self> {
                $text(text)
            }
        }
    };
}

from_object!(RawItem, |_: &str| None);
from_object!(Attachment, |_: &str| None);
from_object!(RawAuthor, |text: &str| Some(RawAuthor { written: text.to_owned(), ..RawAuthor::default() }));

impl<'de> FromObject<'de> for Tag {
    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self(String::new()))
    }

    fn text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

pub(super) fn read(document: &str, base: Option<&Url>, notes: &Notes) -> Result<Feed, ParseError> {
    let not_a_feed = ParseError::at(Stage::NotAFeed, 0);
    if document.starts_with('[') {
        return Err(not_a_feed);
    }
    let root = object(document, notes)?;
    let version = root.version.0.trim().rsplit_once("jsonfeed.org/version/").map(|(_, v)| v.to_owned());
    // Either of the two marks makes it a feed; a document with neither is something else.
    if version.is_none() && !root.items.is_list {
        return Err(not_a_feed);
    }
    check_required(&root, version.is_some(), notes);
    let version = version.unwrap_or_default();
    let declared = if version.is_empty() { "json-feed".to_owned() } else { format!("json-feed-{version}") };
    let feed_authors = authors(root.authors, root.author);
    let icon = if root.icon.0.is_empty() { root.favicon } else { root.icon };
    let link = address(&root.home_page_url.0, base);
    Ok(Feed {
        meta: FeedMeta {
            dialect: Dialect::Json,
            version,
            declared,
            title: plain(root.title),
            link: link.clone(),
            description: plain(root.description),
            language: root.language.0,
            icon: address(&icon.0, base),
        },
        pace: Pace::default(),
        items_in_document: root.items.objects,
        items: root.items.list.into_iter().map(|i| item(i, &feed_authors, &link, base, notes)).collect(),
    })
}

/// The root object; line ends and tabs inside strings, which JSON wants escaped, are escaped where they are the fault.
fn object(document: &str, notes: &Notes) -> Result<RawFeed, ParseError> {
    // A document ends with its object; what follows is passed over.
    let read = |text: &str| {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<RawFeed>();
        let first = stream.next();
        first.map(|root| root.map(|root| (root, stream.byte_offset())))
    };
    let failed = |e: &serde_json::Error, text: &str| {
        let stage = if e.is_eof() { Stage::Truncated } else { Stage::Json };
        ParseError::at(stage, byte_position(text, e.line(), e.column()))
    };
    let escaped;
    let (text, result) = match read(document) {
        Some(Err(error)) => match escape_lines(document) {
            Some(text) => {
                escaped = text;
                (escaped.as_str(), read(&escaped))
            }
            None => return Err(failed(&error, document)),
        },
        other => (document, other),
    };
    match result {
        Some(Ok((root, end))) => {
            if text.get(end..).is_some_and(|rest| !rest.trim().is_empty()) {
                notes.add(Code::JunkAfterDocument, Some(end), "");
            }
            if text.len() != document.len() {
                notes.add(Code::StrippedControlCharacters, None, "line ends in strings");
            }
            Ok(root)
        }
        Some(Err(error)) => Err(failed(&error, text)),
        None => Err(ParseError::at(Stage::Truncated, 0)),
    }
}

/// The document with raw line ends and tabs in its strings escaped; `None` where there are none.
fn escape_lines(document: &str) -> Option<String> {
    let mut out = String::with_capacity(document.len() + 16);
    let (mut in_string, mut after_backslash, mut changed) = (false, false, false);
    for c in document.chars() {
        match c {
            '\n' | '\r' | '\t' if in_string => {
                changed = true;
                out.push_str(match c {
                    '\n' => "\\n",
                    '\r' => "\\r",
                    _ => "\\t",
                });
                after_backslash = false;
                continue;
            }
            '"' if !after_backslash => in_string = !in_string,
            _ => {}
        }
        after_backslash = c == '\\' && !after_backslash;
        out.push(c);
    }
    changed.then_some(out)
}

/// What JSON Feed 1.1 demands ("Top-level" and "Items").
fn check_required(root: &RawFeed, has_version: bool, notes: &Notes) {
    for (missing, path) in
        [(!has_version, "version"), (root.title.0.trim().is_empty(), "title"), (!root.items.is_list, "items")]
    {
        if missing {
            notes.add(Code::MissingRequired, None, path);
        }
    }
    for item in &root.items.list {
        if item.id.0.trim().is_empty() {
            notes.add(Code::MissingRequired, None, "items/id");
        }
        if item.content_html.0.trim().is_empty() && item.content_text.0.trim().is_empty() {
            notes.add(Code::MissingRequired, None, "items/content_html or content_text");
        }
    }
}

/// Line and column of an error as a byte position; lines count from 1.
fn byte_position(document: &str, line: usize, column: usize) -> u64 {
    let before: usize = document.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column) as u64
}

fn plain(text: Loose) -> Text {
    Text { raw: trimmed(text), markup: Markup::Text }
}

/// The text without white space at its ends, and without a copy where there is none.
fn trimmed(text: Loose) -> String {
    if text.0.trim().len() == text.0.len() { text.0 } else { text.0.trim().to_owned() }
}

fn item(raw: RawItem, feed_authors: &[Author], feed_link: &str, base: Option<&Url>, notes: &Notes) -> Item {
    let content = if raw.content_html.0.trim().is_empty() {
        plain(raw.content_text)
    } else {
        Text { raw: trimmed(raw.content_html), markup: Markup::Html }
    };
    let link = address(&raw.url.0, base);
    let external = address(&raw.external_url.0, base);
    let (link, links) = match (link.is_empty(), external.is_empty()) {
        (true, _) => (external, Vec::new()),
        (false, false) if external != link => (link, vec![external]),
        (false, _) => (link, Vec::new()),
    };
    let own = authors(raw.authors, raw.author);
    let mut categories = Vec::new();
    for tag in &raw.tags.list {
        add_category(&mut categories, &tag.0);
    }
    let base_url = web_base(&link).or_else(|| web_base(feed_link));
    Item {
        guid: trimmed(raw.id),
        guid_origin: IdOrigin::JsonId,
        link,
        links,
        title: plain(raw.title),
        content,
        summary: plain(raw.summary),
        authors: if own.is_empty() { feed_authors.to_vec() } else { own },
        published: noted_date(&raw.date_published.0, None, notes),
        updated: noted_date(&raw.date_modified.0, None, notes),
        more: more(&raw.language.0, &raw.image.0, &raw.banner_image.0, base),
        categories,
        enclosures: raw.attachments.list.into_iter().filter_map(|a| attachment(a, base)).collect(),
        base_url: base_address(base_url.as_ref().or(base)),
    }
}

/// The extension `connector.rss.more`: images as media, and the language.
fn more(language: &str, image: &str, banner: &str, base: Option<&Url>) -> String {
    let mut media: Vec<String> = Vec::new();
    for (kind, written) in [("image", image), ("banner", banner)] {
        let url = address(written, base);
        if !url.is_empty() {
            let mut json = Object::new();
            json.text("kind", kind);
            json.text("url", crate::identity::clip(&url, crate::identity::MAX_METADATA_BYTES));
            media.push(json.finish());
        }
    }
    let mut out = Object::new();
    out.list_unless_empty("media", &media, |out, m| out.push_str(m));
    out.text_unless_empty("language", crate::identity::clip(language.trim(), crate::identity::MAX_METADATA_BYTES));
    let out = out.finish();
    if out == "{}" { String::new() } else { out }
}

fn attachment(raw: Attachment, base: Option<&Url>) -> Option<Enclosure> {
    let url = address(&raw.url.0, base);
    let length = super::fields::length(Some(&raw.size_in_bytes.0));
    (!url.is_empty()).then_some(Enclosure { url, media_type: raw.mime_type.0, length })
}

/// `authors` of 1.1, else `author` of 1.0.
fn authors(listed: Several<RawAuthor, MAX_LIST>, single: Several<RawAuthor, MAX_LIST>) -> Vec<Author> {
    let named = |list: Several<RawAuthor, MAX_LIST>| -> Vec<Author> {
        list.list
            .into_iter()
            .map(|a| match a.written.is_empty() {
                true => Author { name: trimmed(a.name), email: String::new() },
                false => person(&a.written),
            })
            .filter(|a| !a.name.is_empty() || !a.email.is_empty())
            .collect()
    };
    let listed = named(listed);
    if listed.is_empty() { named(single) } else { listed }
}
