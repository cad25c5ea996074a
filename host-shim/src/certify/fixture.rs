//! Fixtures of certification: what is asked, what the request gets, what must come of it.
//!
//! Owns their forms: `NAME.fixture.json` in the shape of Quivr's connector fixtures with the document beside it, or a
//! plain document, of which only the general checks are made.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::engine::answer::Page;
use crate::engine::plugin::Invocation;
use crate::engine::upstream::Response;
use crate::runner::RunError;

/// Documents that every feed connector is asked, where no folder is named.
const BUILT_IN: [(&str, &[u8]); 6] = [
    ("rss-2.0.rss", include_bytes!("../../../fixtures/feeds/rss-2.0.rss")),
    ("rss-0.91.xml", include_bytes!("../../../fixtures/feeds/rss-0.91.xml")),
    ("rss-1.0.rdf", include_bytes!("../../../fixtures/feeds/rss-1.0.rdf")),
    ("atom-1.0.atom", include_bytes!("../../../fixtures/feeds/atom-1.0.atom")),
    ("json-feed-1.1.json", include_bytes!("../../../fixtures/feeds/json-feed-1.1.json")),
    ("podcast.rss", include_bytes!("../../../fixtures/feeds/podcast.rss")),
];

/// Files of one folder that are read.
const MAX_FILES: usize = 1_000;

/// Bytes of one file.
const MAX_FILE_BYTES: u64 = 12 * 1024 * 1024;

/// The clock of a fixture that names none (Quivr's).
const NOW: &str = "2026-01-01T00:00:00Z";

/// Why fixtures cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FixtureError {
    /// A file.
    #[error("cannot read {path}: {source}")]
    Read {
        /// File or folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Not a fixture.
    #[error("{path} is not a fixture: {why}")]
    Form {
        /// File.
        path: String,
        /// Why.
        why: String,
    },
    /// Nothing there.
    #[error("there is no fixture in {0}")]
    None(String),
}

/// What must come of a fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// A page that keeps the contract, or a failure that does.
    Anything,
    /// Record keys of each page, in order, and whether another follows.
    Pages(Vec<(Vec<String>, Option<bool>)>),
    /// A failure of this class and, where named, this code.
    Error(String, Option<String>),
}

impl Expectation {
    /// Whether a run came out as expected.
    pub(super) fn holds(&self, pages: &[Page], error: Option<&RunError>) -> Result<(), String> {
        match (self, error) {
            (_, Some(RunError::Component(_))) => Err("the component failed".to_owned()),
            (Self::Anything, None) => Ok(()),
            (Self::Anything | Self::Pages(_), Some(_)) => Err("unexpected_error".to_owned()),
            (Self::Error(..), None) => Err("unexpected_items: a failure was expected".to_owned()),
            (Self::Error(class, code), Some(RunError::Source(failure))) => {
                let same = failure.class.name() == class && code.as_ref().is_none_or(|c| *c == failure.code);
                same.then_some(()).ok_or_else(|| format!("unexpected_error: {class} {}", code.as_deref().unwrap_or("")))
            }
            (Self::Pages(expected), None) => {
                let as_expected = pages.len() == expected.len()
                    && pages.iter().zip(expected).all(|(page, (keys, more))| {
                        page.items.iter().map(|i| &i.record_key).eq(keys) && more.is_none_or(|m| m == page.more)
                    });
                as_expected.then_some(()).ok_or_else(|| "unexpected_items: other record keys or pages".to_owned())
            }
        }
    }
}

/// One fixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// Name in the report.
    pub name: String,
    /// What every request gets.
    pub response: Response,
    /// Configuration of the pin.
    pub configuration: String,
    /// Whether a credential is at hand.
    pub has_credential: bool,
    /// What must come of it.
    pub expect: Expectation,
    kind: String,
    config: String,
    checkpoint: Option<String>,
    now: String,
}

impl Fixture {
    /// A document that came from an address.
    fn document(name: &str, body: Vec<u8>, kind: &str) -> Self {
        let url = format!("https://feeds.example.org/{name}");
        Self {
            name: name.to_owned(),
            response: Response { status: 200, body, final_url: url.clone(), ..Response::default() },
            configuration: "{}".to_owned(),
            has_credential: false,
            expect: Expectation::Anything,
            kind: kind.to_owned(),
            config: json!({"url": url}).to_string(),
            checkpoint: None,
            now: NOW.to_owned(),
        }
    }

    /// The call that it is.
    #[must_use]
    pub fn invocation(&self) -> Invocation {
        Invocation {
            instance_id: "certify".to_owned(),
            kind: self.kind.clone(),
            corpus_id: "certify".to_owned(),
            source_namespace: "certify".to_owned(),
            config: self.config.clone(),
            checkpoint: self.checkpoint.clone(),
            now: self.now.clone(),
            has_credential: self.has_credential,
            ..Invocation::default()
        }
    }

    /// A clock two hours on: the longest wait that a connector may keep is one.
    pub(super) fn later(&self) -> String {
        let now: jiff::Timestamp = self.now.parse().unwrap_or_default();
        now.checked_add(jiff::SignedDuration::from_hours(2)).unwrap_or(now).to_string()
    }
}

/// The documents that are built in, for a kind.
#[must_use]
pub fn built_in(kind: &str) -> Vec<Fixture> {
    BUILT_IN.iter().map(|(name, body)| Fixture::document(name, body.to_vec(), kind)).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    connector: Connector,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    credential: Option<Value>,
    #[serde(default)]
    configuration: Map<String, Value>,
    checkpoint: Option<Value>,
    now: Option<String>,
    #[serde(default, rename = "max_pages")]
    _max_pages: Option<u32>,
    #[serde(default)]
    expect: Expect,
    /// The document beside the file that every request gets.
    document: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Connector {
    kind: String,
    config: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expect {
    pages: Option<Vec<PageExpect>>,
    error: Option<ErrorExpect>,
    #[serde(rename = "check_credential")]
    _check_credential: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageExpect {
    record_keys: Vec<String>,
    more: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorExpect {
    error_class: String,
    code: Option<String>,
}

fn read_file(path: &Path) -> Result<Vec<u8>, FixtureError> {
    use std::io::Read;
    let failed = |source| FixtureError::Read { path: path.display().to_string(), source };
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(failed)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Reads the fixtures of a folder, by name; plain documents are asked of `kind`.
///
/// # Errors
/// What cannot be read, or that there is none.
pub fn read_folder(folder: &Path, kind: &str) -> Result<Vec<Fixture>, FixtureError> {
    let failed = |source| FixtureError::Read { path: folder.display().to_string(), source };
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .map_err(failed)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|p| p.is_file())
        .take(MAX_FILES)
        .collect();
    paths.sort();
    let mut fixtures = Vec::new();
    let mut used = Vec::new();
    for path in &paths {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_owned();
        if let Some(stem) = name.strip_suffix(".fixture.json") {
            let (fixture, document) = read_fixture(path, stem)?;
            fixtures.push(fixture);
            used.extend(document);
        }
    }
    for path in &paths {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_owned();
        let is_document =
            ["rss", "xml", "atom", "rdf", "json"].iter().any(|e| path.extension().is_some_and(|x| x == *e))
                && !name.ends_with(".fixture.json")
                && !name.ends_with(".records.json")
                && !used.contains(&name);
        if is_document {
            fixtures.push(Fixture::document(&name, read_file(path)?, kind));
        }
    }
    if fixtures.is_empty() { Err(FixtureError::None(folder.display().to_string())) } else { Ok(fixtures) }
}

fn read_fixture(path: &Path, stem: &str) -> Result<(Fixture, Option<String>), FixtureError> {
    let form = |why: String| FixtureError::Form { path: path.display().to_string(), why };
    let file: File = serde_json::from_slice(&read_file(path)?).map_err(|e| form(e.to_string()))?;
    let body = match &file.document {
        Some(name) if name.contains(['/', '\\']) => return Err(form("document must be a file beside it".to_owned())),
        Some(name) => read_file(&path.with_file_name(name))?,
        None => Vec::new(),
    };
    let url = file.connector.config.get("url").and_then(Value::as_str).unwrap_or("").to_owned();
    let expect = match (file.expect.pages, file.expect.error) {
        (Some(pages), _) => Expectation::Pages(pages.into_iter().map(|p| (p.record_keys, p.more)).collect()),
        (None, Some(error)) => Expectation::Error(error.error_class, error.code),
        (None, None) => Expectation::Anything,
    };
    let now = file.now.unwrap_or_else(|| NOW.to_owned());
    now.parse::<jiff::Timestamp>().map_err(|_| form("now is not an RFC 3339 instant".to_owned()))?;
    let fixture = Fixture {
        name: stem.to_owned(),
        response: Response { status: 200, body, final_url: url, ..Response::default() },
        configuration: Value::Object(file.configuration).to_string(),
        has_credential: file.credential.is_some_and(|c| !c.is_null()),
        expect,
        kind: file.connector.kind,
        config: Value::Object(file.connector.config).to_string(),
        checkpoint: file.checkpoint.filter(|c| !c.is_null()).map(|c| c.to_string()),
        now,
    };
    Ok((fixture, file.document))
}
