//! The one reading of a feed: what every dialect becomes before it is made into records.
//!
//! Owns the plain types between parsing and records. Strings of title, content and summary are *raw*: as the
//! document has them after XML or JSON decoding, with their markup. Must not contain rules.

use crate::contract::Weekday;

/// How a text of the document is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Markup {
    /// HTML, or a text that may hold some: most of RSS.
    #[default]
    Html,
    /// The children of an XHTML element.
    Xhtml,
    /// Plain text: nothing in it is markup.
    Text,
}

/// A raw text and how to read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// As the document has it.
    pub raw: String,
    /// How to read it.
    pub markup: Markup,
}

/// Somebody who wrote an item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Author {
    /// Name.
    pub name: String,
    /// Mail address.
    pub email: String,
}

/// A file that an item refers to; it is never fetched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Enclosure {
    /// Address.
    pub url: String,
    /// Media type as written.
    pub media_type: String,
    /// Length in bytes, digits only.
    pub length: String,
}

/// Which element an item's own identifier came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdOrigin {
    /// RSS `guid`.
    #[default]
    Guid,
    /// Atom `id`.
    AtomId,
    /// JSON Feed `id`.
    JsonId,
    /// `rdf:about` where it differs from the link.
    RdfAbout,
}

/// One item of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Item {
    /// Identifier, trimmed; empty when there is none.
    pub guid: String,
    /// Where the identifier came from.
    pub guid_origin: IdOrigin,
    /// First link.
    pub link: String,
    /// Other links.
    pub links: Vec<String>,
    /// Title.
    pub title: Text,
    /// Full content.
    pub content: Text,
    /// Description or summary.
    pub summary: Text,
    /// Authors.
    pub authors: Vec<Author>,
    /// First publication, seconds since 1970 UTC.
    pub published: Option<i64>,
    /// Last change, seconds since 1970 UTC.
    pub updated: Option<i64>,
    /// Categories.
    pub categories: Vec<String>,
    /// Enclosures.
    pub enclosures: Vec<Enclosure>,
    /// The address that relative links of this item start from.
    pub base_url: String,
    /// What is not core, as a JSON object; empty where there is nothing.
    pub more: String,
}

/// The dialect that a document was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// RSS 0.90 to 0.94.
    Rss09,
    /// RSS 1.0 (RDF).
    Rss10,
    /// RSS 2.0.
    #[default]
    Rss20,
    /// Atom 1.0, and 0.3 read the same way.
    Atom,
    /// JSON Feed 1.0 and 1.1.
    Json,
}

impl Dialect {
    /// The name in diagnostics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rss09 => "rss-0.9x",
            Self::Rss10 => "rss-1.0",
            Self::Rss20 => "rss-2.0",
            Self::Atom => "atom",
            Self::Json => "json-feed-1.x",
        }
    }

    /// The format in the extension `connector.rss`.
    #[must_use]
    pub fn format(self) -> &'static str {
        match self {
            Self::Rss09 | Self::Rss10 | Self::Rss20 => "rss",
            Self::Atom => "atom",
            Self::Json => "json",
        }
    }
}

/// What a document says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedMeta {
    /// Dialect read.
    pub dialect: Dialect,
    /// Version as declared, such as `2.0`.
    pub version: String,
    /// Title.
    pub title: Text,
    /// Link of the site.
    pub link: String,
    /// Description.
    pub description: Text,
    /// Language tag as declared.
    pub language: String,
    /// Address of an icon or logo.
    pub icon: String,
    /// What the document says that it is, with its version: `rss-2.0`, `atom-0.3`, `unknown:<root>`.
    pub declared: String,
}

/// What a document says of its own pace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pace {
    /// RSS `ttl` in minutes.
    pub ttl_minutes: Option<u64>,
    /// Seconds between updates, by the syndication module.
    pub update_period_seconds: Option<u64>,
    /// Hours in which the source does not want to be asked.
    pub skip_hours: Vec<u8>,
    /// Days on which the source does not want to be asked.
    pub skip_days: Vec<Weekday>,
}

/// A whole document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Feed {
    /// What it says of itself.
    pub meta: FeedMeta,
    /// Its pace.
    pub pace: Pace,
    /// Items in document order, at most [`crate::parse::MAX_ITEMS`].
    pub items: Vec<Item>,
    /// Items of the document, kept or not.
    pub items_in_document: usize,
}
