//! What is served at a path: a document, its validators, and what goes wrong on the way.

use std::time::Duration;

use sha2::{Digest, Sha256};

/// How the entity tag is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EtagMode {
    /// `"…"`.
    #[default]
    Strong,
    /// `W/"…"`.
    Weak,
    /// None is sent.
    Absent,
}

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coding {
    /// gzip.
    Gzip,
    /// brotli.
    Brotli,
}

/// A login that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// HTTP Basic with the encoded pair.
    Basic {
        /// User name.
        username: String,
        /// Password.
        password: String,
    },
    /// Bearer token.
    Bearer(String),
}

/// A redirect.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Redirect {
    /// Status.
    pub status: u16,
    /// Location, as it is sent; absent means no such field.
    pub location: Option<String>,
}

/// The script of a path.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// The document.
    pub body: Vec<u8>,
    /// Content-Type, as it is sent.
    pub content_type: String,
    /// How the entity tag is made.
    pub etag: EtagMode,
    /// Whether Last-Modified is sent.
    pub last_modified: bool,
    /// A status that is answered instead of the document.
    pub status: Option<u16>,
    /// Retry-After, as it is sent with a forced status.
    pub retry_after: Option<String>,
    /// A redirect that is answered instead of the document.
    pub redirect: Option<Redirect>,
    /// A login that is asked for.
    pub auth: Option<Auth>,
    /// Time before the answer.
    pub delay: Duration,
    /// A coding that is used where the request accepts it.
    pub coding: Option<Coding>,
    /// Bytes that are announced but not sent.
    pub short_by: usize,
    /// More header fields.
    pub headers: Vec<(String, String)>,
    /// Edits so far: the clock of Last-Modified.
    pub edits: u64,
}

impl Route {
    /// A document with a strong entity tag and Last-Modified.
    #[must_use]
    pub fn new(body: impl Into<Vec<u8>>, content_type: &str) -> Self {
        Self { body: body.into(), content_type: content_type.to_owned(), last_modified: true, ..Self::default() }
    }

    /// The entity tag of the document as it is now.
    #[must_use]
    pub fn etag(&self) -> Option<String> {
        let digest = Sha256::digest(&self.body);
        let tag: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        match self.etag {
            EtagMode::Strong => Some(format!("\"{tag}\"")),
            EtagMode::Weak => Some(format!("W/\"{tag}\"")),
            EtagMode::Absent => None,
        }
    }

    /// Last-Modified of the document as it is now: an hour that never was, and a second more with each edit.
    #[must_use]
    pub fn last_modified(&self) -> Option<String> {
        self.last_modified.then(|| {
            let (minute, second) = (self.edits / 60 % 60, self.edits % 60);
            format!("Tue, 01 Sep 2026 10:{minute:02}:{second:02} GMT")
        })
    }

    /// Replaces the document.
    pub fn replace(&mut self, body: impl Into<Vec<u8>>) {
        self.body = body.into();
        self.edits += 1;
    }

    /// Replaces a text of the document; false where it does not stand there.
    pub(crate) fn edit(&mut self, find: &str, replace: &str) -> bool {
        let text = String::from_utf8_lossy(&self.body);
        if find.is_empty() || !text.contains(find) {
            return false;
        }
        let edited = text.replace(find, replace).into_bytes();
        self.replace(edited);
        true
    }
}

/// The content type of a file by its ending.
pub(crate) fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("rss") => "application/rss+xml; charset=utf-8",
        Some("atom") => "application/atom+xml; charset=utf-8",
        Some("rdf") => "application/rdf+xml; charset=utf-8",
        Some("json") => "application/feed+json",
        Some("xml") => "application/xml",
        Some("html") => "text/html; charset=utf-8",
        _ => "application/octet-stream",
    }
}
