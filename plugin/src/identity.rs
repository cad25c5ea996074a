//! Identity: the one place for the record key and the one place for the revision.
//!
//! The rules are those of Quivr's plugin, so that either can take over from the other: the key is the guid, else the
//! link, else a hash of title and text; the revision is the SHA-256 of the canonical JSON of the item's own fields,
//! in a fixed order. What a feed says of itself never enters either, so a renamed feed mints nothing. What moves
//! inside an item does enter: a view counter in a guid makes a new key, a tracking parameter in an enclosure's
//! address makes a new revision.

use sha2::{Digest, Sha256};

use crate::canonical::{self, Hashing, Object, Sink};
use crate::date;
use crate::html::key_text;
use crate::model::{Author, Enclosure, IdOrigin, Item};
use crate::policy::Policy;

/// Longest record key in bytes; a longer one is replaced by its hash.
pub const MAX_KEY_BYTES: usize = 1_024;

/// Longest metadata string in bytes; a longer one is clipped before it enters anything.
pub const MAX_METADATA_BYTES: usize = 2_048;

/// Most links, authors and enclosures of an item.
pub const MAX_LIST: usize = 20;

/// Most categories of an item.
pub const MAX_CATEGORIES: usize = 50;

/// What a record key was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyBasis {
    /// RSS `guid`.
    Guid,
    /// Atom `id`.
    AtomId,
    /// JSON Feed `id`.
    JsonId,
    /// `rdf:about`.
    RdfAbout,
    /// The link.
    Link,
    /// Guid and link.
    GuidLink,
    /// Link and title.
    LinkTitle,
    /// Title and text.
    Content,
}

impl KeyBasis {
    /// The name in provenance.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Guid => "guid",
            Self::AtomId => "atom-id",
            Self::JsonId => "json-id",
            Self::RdfAbout => "rdf-about",
            Self::Link => "link",
            Self::GuidLink => "guid+link",
            Self::LinkTitle => "link+title",
            Self::Content => "content",
        }
    }
}

/// The metadata of an item, clipped and bounded: what enters the revision and the extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Identifier.
    pub guid: String,
    /// First link.
    pub link: String,
    /// Other links.
    pub links: Vec<String>,
    /// Authors with a name or a mail address.
    pub authors: Vec<Author>,
    /// RFC 3339 or empty.
    pub published: String,
    /// RFC 3339 or empty.
    pub updated: String,
    /// Categories.
    pub categories: Vec<String>,
    /// Enclosures.
    pub enclosures: Vec<Enclosure>,
}

/// Cuts a string to a number of bytes at a character boundary.
#[must_use]
pub fn clip(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

fn clipped(text: &str) -> String {
    clip(text, MAX_METADATA_BYTES).to_owned()
}

impl Metadata {
    /// The metadata of an item.
    #[must_use]
    pub fn of(item: &Item) -> Self {
        let link = clipped(item.link.trim());
        Self {
            guid: clipped(item.guid.trim()),
            links: item
                .links
                .iter()
                .map(|l| clipped(l.trim()))
                .filter(|l| !l.is_empty() && *l != link)
                .take(MAX_LIST)
                .collect(),
            link,
            authors: item
                .authors
                .iter()
                .map(|a| Author {
                    name: clipped(&crate::html::text::one_line(&a.name, crate::model::Markup::Html)),
                    email: clipped(&a.email),
                })
                .filter(|a| !a.name.is_empty() || !a.email.is_empty())
                .take(MAX_LIST)
                .collect(),
            published: item.published.map(date::rfc3339).unwrap_or_default(),
            updated: item.updated.map(date::rfc3339).unwrap_or_default(),
            categories: item
                .categories
                .iter()
                .map(|c| clipped(c.trim()))
                .filter(|c| !c.is_empty())
                .take(MAX_CATEGORIES)
                .collect(),
            enclosures: item
                .enclosures
                .iter()
                .filter(|e| !e.url.is_empty())
                .take(MAX_LIST)
                .map(|e| Enclosure {
                    url: clipped(&e.url),
                    media_type: clipped(&e.media_type),
                    length: clipped(&e.length),
                })
                .collect(),
        }
    }
}

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        for nibble in [b >> 4, b & 15] {
            out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        out
    })
}

/// `sha256:` and the hash in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

/// The record key under a policy, and what it was made from.
#[must_use]
pub fn record_key(metadata: &Metadata, item: &Item, policy: Policy) -> (String, KeyBasis) {
    let (guid, link) = (metadata.guid.as_str(), metadata.link.as_str());
    let (key, basis) = match policy {
        Policy::GuidLink if !guid.is_empty() && !link.is_empty() => (joined(guid, link), KeyBasis::GuidLink),
        Policy::Link if !link.is_empty() => (link.to_owned(), KeyBasis::Link),
        Policy::LinkTitle if guid.is_empty() && !link.is_empty() => {
            (joined(link, &key_text::one_line(&item.title)), KeyBasis::LinkTitle)
        }
        Policy::Content => (content_key(item), KeyBasis::Content),
        _ => by_rule(metadata, item),
    };
    if key.len() > MAX_KEY_BYTES || key.contains('\0') {
        return (sha256(key.as_bytes()), basis);
    }
    (key, basis)
}

/// The rule: guid, else link, else content.
fn by_rule(metadata: &Metadata, item: &Item) -> (String, KeyBasis) {
    if !metadata.guid.is_empty() {
        let basis = match item.guid_origin {
            IdOrigin::Guid => KeyBasis::Guid,
            IdOrigin::AtomId => KeyBasis::AtomId,
            IdOrigin::JsonId => KeyBasis::JsonId,
            IdOrigin::RdfAbout => KeyBasis::RdfAbout,
        };
        (metadata.guid.clone(), basis)
    } else if !metadata.link.is_empty() {
        (metadata.link.clone(), KeyBasis::Link)
    } else {
        (content_key(item), KeyBasis::Content)
    }
}

/// Two identifiers as one: the hash of their JSON array, which no pair of others has.
fn joined(first: &str, second: &str) -> String {
    let mut json = "[".to_owned();
    canonical::string(&mut json, first);
    json.push(',');
    canonical::string(&mut json, second);
    json.push(']');
    sha256(json.as_bytes())
}

/// The key of an item without guid and link: a hash of its title and text. The texts are made by a rule of their own
/// that never changes, so that a better rendering gives no item a new key.
fn content_key(item: &Item) -> String {
    let content_blank = item.content.raw.trim().is_empty();
    let body = if content_blank { &item.summary } else { &item.content };
    joined(&key_text::one_line(&item.title), &key_text::text(body))
}

/// The short form of a key in the checkpoint: the first 8 bytes of its SHA-256 in hexadecimal.
#[must_use]
pub fn short_key(key: &str) -> String {
    Sha256::digest(key.as_bytes()).get(..8).map(hex).unwrap_or_default()
}

/// The short form of a revision in the checkpoint: its first 16 hexadecimal digits.
#[must_use]
pub fn short_revision(revision: &str) -> String {
    clip(revision.strip_prefix("sha256:").unwrap_or(revision), 16).to_owned()
}

/// The revision: a hash of the item's own fields. Raw title, content and summary enter unbounded, with their markup;
/// they are hashed as they are escaped, so that no copy of them is made.
#[must_use]
pub fn revision(item: &Item, metadata: &Metadata, truncated: bool, policy: Policy) -> String {
    let mut json = Object::over(Hashing::default());
    // An identifier that the policy does not trust moves by itself; with it every poll would be a revision.
    json.text_unless_empty("guid", if policy.trusts_guid() { &metadata.guid } else { "" });
    json.text_unless_empty("link", if policy.trusts_link() { &metadata.link } else { "" });
    json.list_unless_empty("links", &metadata.links, |out, l| canonical::string(out, l));
    json.text_unless_empty("title", &item.title.raw);
    json.text_unless_empty("content", &item.content.raw);
    json.text_unless_empty("summary", &item.summary.raw);
    write_lists(&mut json, metadata);
    json.flag_if_set("truncated", truncated);
    format!("sha256:{}", hex(&json.finish().finalize()))
}

/// The members from `authors` to `enclosures`, which revision and extension share.
pub(crate) fn write_lists<S: Sink>(json: &mut Object<S>, metadata: &Metadata) {
    json.list_unless_empty("authors", &metadata.authors, |out, a| {
        let mut author = Object::new();
        author.text_unless_empty("name", &a.name);
        author.text_unless_empty("email", &a.email);
        out.put(&author.finish());
    });
    json.text_unless_empty("published", &metadata.published);
    json.text_unless_empty("updated", &metadata.updated);
    json.list_unless_empty("categories", &metadata.categories, |out, c| canonical::string(out, c));
    json.list_unless_empty("enclosures", &metadata.enclosures, |out, e| {
        let mut enclosure = Object::new();
        enclosure.text("url", &e.url);
        enclosure.text_unless_empty("type", &e.media_type);
        enclosure.text_unless_empty("length", &e.length);
        out.put(&enclosure.finish());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Markup, Text};

    fn raw(text: &str) -> Text {
        Text { raw: text.to_owned(), markup: Markup::Html }
    }

    /// The vector was computed by hand from the rule: SHA-256 over
    /// `{"guid":"a-1","link":"https://ex.test/1","title":"T \u0026 \u003cb\u003eU\u003c/b\u003e","summary":…}`.
    #[test]
    fn a_revision_is_the_hash_of_the_items_own_fields_in_order() {
        let item = Item {
            guid: "a-1".into(),
            link: "https://ex.test/1".into(),
            title: raw("T & <b>U</b>"),
            summary: raw("<p>caf\u{e9}</p>"),
            authors: vec![Author { name: "Ann".into(), email: String::new() }],
            published: date::parse("2027-01-02T03:04:05Z"),
            categories: vec!["x<y".into()],
            enclosures: vec![Enclosure {
                url: "https://ex.test/a.mp3".into(),
                media_type: "audio/mpeg".into(),
                length: String::new(),
            }],
            ..Item::default()
        };
        let metadata = Metadata::of(&item);
        assert_eq!(
            revision(&item, &metadata, false, Policy::Guid),
            "sha256:05ac7bb71f4b167675c9616668b214170a1fcec951bdb0e405756ba6f46b48ac"
        );
        assert_ne!(revision(&item, &metadata, true, Policy::Guid), revision(&item, &metadata, false, Policy::Guid));
        assert_eq!(record_key(&metadata, &item, Policy::Guid), ("a-1".to_owned(), KeyBasis::Guid));
        assert_eq!(short_key("a-1"), "2f8fe63a6224321d");
    }

    #[test]
    fn a_key_is_the_guid_else_the_link_else_a_hash_of_title_and_text() {
        let with = |guid: &str, link: &str| Metadata { guid: guid.into(), link: link.into(), ..Metadata::default() };
        let item = Item { title: raw("Only title"), content: raw("<p>Body text</p>"), ..Item::default() };
        let key = |m: &Metadata| record_key(m, &item, Policy::Guid);
        assert_eq!(key(&with("g", "l")), ("g".into(), KeyBasis::Guid));
        assert_eq!(key(&with("", "l")), ("l".into(), KeyBasis::Link));
        assert_eq!(
            key(&with("", "")),
            ("sha256:f50807621d18dbe0c364a073d743ecc0ec816d6786ebf175e843148fc4b0b0cf".into(), KeyBasis::Content)
        );
        let at_bound = "k".repeat(MAX_KEY_BYTES);
        assert_eq!(key(&with(&at_bound, "")).0, at_bound);
        let past_bound = "k".repeat(MAX_KEY_BYTES + 1);
        assert_eq!(key(&with(&past_bound, "")).0, sha256(past_bound.as_bytes()));
        assert_eq!(key(&with("a\0b", "")).0, sha256(b"a\0b"));
    }

    #[test]
    fn metadata_is_clipped_at_character_boundaries_and_lists_are_bounded() {
        let item = Item {
            guid: format!("{}\u{e9}", "g".repeat(MAX_METADATA_BYTES - 1)),
            link: "https://a.example/".into(),
            links: (0..30).map(|n| format!("https://a.example/{n}")).chain(["https://a.example/".into()]).collect(),
            categories: (0..60).map(|n| format!("c{n}")).collect(),
            authors: vec![Author { name: "<b>A</b>\nB".into(), email: String::new() }, Author::default()],
            ..Item::default()
        };
        let metadata = Metadata::of(&item);
        assert_eq!(metadata.guid, "g".repeat(MAX_METADATA_BYTES - 1));
        assert_eq!((metadata.links.len(), metadata.categories.len()), (MAX_LIST, MAX_CATEGORIES));
        assert_eq!(metadata.authors, vec![Author { name: "A B".into(), email: String::new() }]);
    }
}
