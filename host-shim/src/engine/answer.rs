//! What a guest returned, held to the contract before anything uses it.
//!
//! Owns every rule of a page and of a failure, each with its own code. The types here can only be made by the checks,
//! so whoever holds a [`Page`] may rely on them. No message quotes what the guest returned.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::bindings::exports::corpus::connector::connector as wit;
use super::descriptor::Descriptor;
use super::error::CallError;

/// Bytes of a record key.
pub const MAX_KEY_BYTES: usize = 1_024;
/// Bytes of a revision.
pub const MAX_REVISION_BYTES: usize = 256;
/// Parts of an item.
pub const MAX_PARTS: usize = 64;
/// Bytes of a part's key.
pub const MAX_PART_KEY_BYTES: usize = 256;
/// Bytes of a part's role.
pub const MAX_ROLE_BYTES: usize = 64;
/// Bytes of one extension's data: 48 KiB of lists as Quivr bounds them, or strings of 2 KiB in their longest escapes.
pub const MAX_EXTENSION_BYTES: usize = 96 * 1_024;
/// Bytes of the diagnostics.
pub const MAX_DIAGNOSTICS_BYTES: usize = 16 * 1_024;
/// Entries of a window: a document has at most 1,000 items that count, and another connector may have more.
pub const MAX_WINDOW: usize = 10_000;
/// Bytes of a failure's message.
pub const MAX_MESSAGE_BYTES: usize = 1_024;
/// Seconds that a source may ask to wait: a day.
pub const MAX_RETRY_AFTER_SECONDS: u32 = 86_400;

/// A piece of an item's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Name, unique in the item.
    pub key: String,
    /// What it is for.
    pub role: String,
    /// The part that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_key: Option<String>,
    /// Text, not empty, without NUL.
    pub text: String,
}

/// Structured data of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Extension {
    /// Version of its schema.
    pub schema_version: String,
    /// A JSON object.
    pub data: Value,
}

/// A new or changed item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Identity.
    pub record_key: String,
    /// Revision.
    pub revision: String,
    /// Identity before the policy moved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_key: Option<String>,
    /// Text.
    pub parts: Vec<Part>,
    /// Structured data by namespace.
    pub extensions: BTreeMap<String, Extension>,
    /// Where the source has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_position: Option<String>,
    /// The source took it back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
}

/// An item that the document lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WindowEntry {
    /// Identity.
    pub record_key: String,
    /// Place in document order.
    pub position: u32,
}

/// What the source said of its pace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Hints {
    /// RSS `ttl` in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// `max-age` in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u64>,
    /// `Expires`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Period of updates in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_period_seconds: Option<u64>,
    /// Hours, 0 to 23.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skip_hours: Vec<u8>,
    /// Days, 0 is Monday.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skip_days: Vec<&'static str>,
    /// `Retry-After` in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// A page that keeps the contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// New and changed items.
    pub items: Vec<Item>,
    /// What the next call gets.
    pub checkpoint: String,
    /// Another page follows.
    pub more: bool,
    /// Too early; nothing was done.
    pub not_due: bool,
    /// Requests as the source counts them.
    pub reads: u32,
    /// A code that ends the run.
    pub notice: Option<String>,
    /// What the document lists.
    pub window: Option<Vec<WindowEntry>>,
    /// Pace.
    pub hints: Hints,
    /// A JSON object.
    pub diagnostics: Value,
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The source refuses this reader.
    Access,
    /// It may pass.
    Transient,
    /// The source, the configuration or the component is at fault.
    Source,
}

impl Class {
    /// The name in answers and in the store.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Transient => "transient",
            Self::Source => "source",
        }
    }
}

/// A failure that keeps the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Class.
    pub class: Class,
    /// Code.
    pub code: String,
    /// Sentence.
    pub message: String,
    /// When to ask again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// Whether a text is a code: `[a-z][a-z0-9_]*`, at most so many bytes.
pub(super) fn is_code(text: &str, bytes: usize) -> bool {
    text.len() <= bytes
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn invalid<T>(reason: &'static str, message: &str) -> Result<T, CallError> {
    Err(CallError::invalid(reason, message))
}

/// Checks a page. `before` is the checkpoint that went in.
pub(super) fn page(from: wit::Page, descriptor: &Descriptor, before: Option<&str>) -> Result<Page, CallError> {
    let limits = descriptor.limits;
    if from.items.len() > limits.max_items as usize {
        return invalid("too_many_items", "a page has more items than it may have");
    }
    if size(&from) > limits.max_page_bytes {
        return invalid("response_too_large", "a page has more bytes than it may have");
    }
    if from.checkpoint.len() > limits.max_checkpoint_bytes as usize {
        return invalid("checkpoint_too_large", "the checkpoint has more bytes than it may have");
    }
    if from.not_due {
        let nothing = from.items.is_empty() && !from.more && from.window.is_none();
        if !nothing || from.checkpoint != before.unwrap_or("") {
            return invalid(
                "invalid_not_due",
                "a page that is not due must have no items and the checkpoint that came in",
            );
        }
    }
    if from.more && before == Some(from.checkpoint.as_str()) {
        return invalid("stalled_checkpoint", "a page promises another one but its checkpoint did not move");
    }
    if from.more && from.window.is_some() {
        return invalid("invalid_window", "only the last page of a run may have a window");
    }
    if from.notice.as_deref().is_some_and(|n| !is_code(n, 64)) {
        return invalid("invalid_notice", "the notice is not a code");
    }
    let items = from.items.into_iter().map(|i| item(i, descriptor)).collect::<Result<Vec<_>, _>>()?;
    let keys: BTreeSet<&str> = items.iter().map(|i| i.record_key.as_str()).collect();
    if keys.len() != items.len() {
        return invalid("duplicate_record_key", "a record key stands twice in one page");
    }
    Ok(Page {
        items,
        more: from.more,
        not_due: from.not_due,
        reads: from.reads,
        notice: from.notice,
        window: from.window.map(window).transpose()?,
        hints: hints(from.hints)?,
        diagnostics: diagnostics(&from.diagnostics)?,
        checkpoint: from.checkpoint,
    })
}

/// Bytes of a page, every string counted.
fn size(page: &wit::Page) -> u64 {
    let items: usize = page
        .items
        .iter()
        .map(|i| {
            let parts: usize = i
                .parts
                .iter()
                .map(|p| p.key.len() + p.role.len() + p.parent_key.as_ref().map_or(0, String::len) + p.text.len())
                .sum();
            let extensions: usize =
                i.extensions.iter().map(|e| e.namespace.len() + e.schema_version.len() + e.data.len()).sum();
            i.record_key.len() + i.revision.len() + i.previous_key.as_ref().map_or(0, String::len) + parts + extensions
        })
        .sum();
    let window: usize = page.window.iter().flatten().map(|w| w.record_key.len()).sum();
    (items + window + page.checkpoint.len() + page.diagnostics.len()) as u64
}

fn is_key(key: &str) -> bool {
    (1..=MAX_KEY_BYTES).contains(&key.len()) && !key.contains('\0')
}

fn item(from: wit::Item, descriptor: &Descriptor) -> Result<Item, CallError> {
    if !is_key(&from.record_key) || from.previous_key.as_deref().is_some_and(|k| !is_key(k)) {
        return invalid("invalid_item", "a record key is not 1 to 1,024 bytes of text");
    }
    if !(1..=MAX_REVISION_BYTES).contains(&from.revision.len()) || from.revision.contains('\0') {
        return invalid("invalid_item", "a revision is not 1 to 256 bytes of text");
    }
    if from.source_position.as_deref().is_some_and(|p| !(1..=256).contains(&p.len()) || p.contains('\0')) {
        return invalid("invalid_item", "a source position is not 1 to 256 bytes of text");
    }
    if from.withdraw != from.parts.is_empty() {
        return invalid("invalid_item", "an item must either have parts or be withdrawn");
    }
    Ok(Item {
        parts: parts(from.parts)?,
        extensions: extensions(from.extensions, descriptor)?,
        record_key: from.record_key,
        revision: from.revision,
        previous_key: from.previous_key,
        source_position: from.source_position,
        withdraw: from.withdraw,
    })
}

fn parts(from: Vec<wit::Part>) -> Result<Vec<Part>, CallError> {
    if from.len() > MAX_PARTS {
        return invalid("too_many_parts", "an item has more than 64 parts");
    }
    let parents: BTreeMap<&str, Option<&str>> =
        from.iter().map(|p| (p.key.as_str(), p.parent_key.as_deref())).collect();
    if parents.len() != from.len() {
        return invalid("invalid_item", "a part key stands twice in one item");
    }
    for part in &from {
        let named =
            (1..=MAX_PART_KEY_BYTES).contains(&part.key.len()) && (1..=MAX_ROLE_BYTES).contains(&part.role.len());
        if !named || part.key.contains('\0') || part.role.contains('\0') {
            return invalid("invalid_item", "a part's key or role is empty or too long");
        }
        if part.text.is_empty() || part.text.contains('\0') {
            return invalid("invalid_item", "a part's text is empty or has a NUL");
        }
        // A chain longer than the parts there are runs in a circle.
        let mut at = part.parent_key.as_deref();
        for _ in 0..=from.len() {
            match at.map(|key| parents.get(key)) {
                None => break,
                Some(None) => return invalid("invalid_item", "a part's parent is not in the item"),
                Some(Some(next)) => at = *next,
            }
        }
        if at.is_some() {
            return invalid("invalid_item", "the parents of parts run in a circle");
        }
    }
    Ok(from.into_iter().map(|p| Part { key: p.key, role: p.role, parent_key: p.parent_key, text: p.text }).collect())
}

fn extensions(from: Vec<wit::Extension>, descriptor: &Descriptor) -> Result<BTreeMap<String, Extension>, CallError> {
    let mut out = BTreeMap::new();
    for extension in from {
        let Some(declared) = descriptor.extensions.iter().find(|n| n.name == extension.namespace) else {
            return invalid("undeclared_namespace", "an extension namespace is not in the descriptor");
        };
        if declared.schema_version != extension.schema_version {
            return invalid("undeclared_schema_version", "a schema version is not the one of the descriptor");
        }
        if extension.data.len() > MAX_EXTENSION_BYTES {
            return invalid("invalid_extension", "an extension is longer than 96 KiB");
        }
        let Ok(data @ Value::Object(_)) = serde_json::from_str(&extension.data) else {
            return invalid("invalid_extension", "an extension is not a JSON object");
        };
        let made = Extension { schema_version: extension.schema_version, data };
        if out.insert(extension.namespace, made).is_some() {
            return invalid("invalid_extension", "an extension namespace stands twice in one item");
        }
    }
    Ok(out)
}

fn window(from: Vec<wit::WindowEntry>) -> Result<Vec<WindowEntry>, CallError> {
    if from.len() > MAX_WINDOW || from.iter().any(|w| !is_key(&w.record_key)) {
        return invalid("invalid_window", "a window is too long or has a record key that is none");
    }
    if !from.is_sorted_by(|a, b| a.position < b.position) {
        return invalid("invalid_window", "a window is not in document order");
    }
    let keys: BTreeSet<&str> = from.iter().map(|w| w.record_key.as_str()).collect();
    if keys.len() != from.len() {
        return invalid("invalid_window", "a record key stands twice in a window");
    }
    Ok(from.into_iter().map(|w| WindowEntry { record_key: w.record_key, position: w.position }).collect())
}

fn hints(from: wit::Hints) -> Result<Hints, CallError> {
    let hours_ok = from.skip_hours.len() <= 24 && from.skip_hours.iter().all(|h| *h < 24);
    let expires_ok = from.expires.as_deref().is_none_or(|e| e.parse::<jiff::Timestamp>().is_ok());
    if !hours_ok || from.skip_days.len() > 7 || !expires_ok {
        return invalid("invalid_hints", "a hint is out of its range");
    }
    let day = |d: wit::Weekday| match d {
        wit::Weekday::Monday => "monday",
        wit::Weekday::Tuesday => "tuesday",
        wit::Weekday::Wednesday => "wednesday",
        wit::Weekday::Thursday => "thursday",
        wit::Weekday::Friday => "friday",
        wit::Weekday::Saturday => "saturday",
        wit::Weekday::Sunday => "sunday",
    };
    Ok(Hints {
        ttl_seconds: from.ttl_seconds,
        max_age_seconds: from.max_age_seconds,
        expires: from.expires,
        update_period_seconds: from.update_period_seconds,
        skip_hours: from.skip_hours,
        skip_days: from.skip_days.into_iter().map(day).collect(),
        retry_after_seconds: from.retry_after_seconds,
    })
}

fn diagnostics(text: &str) -> Result<Value, CallError> {
    if text.len() > MAX_DIAGNOSTICS_BYTES {
        return invalid("diagnostics_too_large", "the diagnostics are longer than 16 KiB");
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => invalid("invalid_diagnostics", "the diagnostics are not a JSON object"),
    }
}

/// Checks a failure.
pub(super) fn failure(from: wit::Failure) -> Result<Failure, CallError> {
    if !is_code(&from.code, 64) {
        return invalid("invalid_error", "the code of a failure is not a code");
    }
    let message_ok =
        (1..=MAX_MESSAGE_BYTES).contains(&from.message.len()) && !from.message.chars().any(char::is_control);
    if !message_ok {
        return invalid("invalid_error", "the message of a failure is not one line of 1 to 1,024 bytes");
    }
    let class = match from.class {
        wit::FailureClass::Access => Class::Access,
        wit::FailureClass::Transient => Class::Transient,
        wit::FailureClass::Source | wit::FailureClass::Other(_) => Class::Source,
    };
    let retry_ok = from.retry_after_seconds.is_none_or(|s| (1..=MAX_RETRY_AFTER_SECONDS).contains(&s));
    if !retry_ok || (from.retry_after_seconds.is_some() && class != Class::Transient) {
        return invalid("wrong_error_class", "only a transient failure may name a time, of 1 to 86,400 seconds");
    }
    Ok(Failure { class, code: from.code, message: from.message, retry_after_seconds: from.retry_after_seconds })
}
