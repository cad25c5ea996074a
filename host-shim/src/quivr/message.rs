//! Requests and answers of plugin API 0.3: what is read, held to its bounds, and what is written.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::engine::answer::{Item, Page};
use crate::engine::plugin::Invocation;

/// A request that breaks the contract.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl Refused {
    fn new(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Connector {
    instance_id: String,
    kind: String,
    config: Map<String, Value>,
    corpus_id: Option<String>,
    source_namespace: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFetch {
    invocation_id: String,
    contribution: String,
    organization_id: String,
    configuration: Value,
    connector: Connector,
    credential: Value,
    checkpoint: Value,
    now: String,
    page_in_run: u32,
    reads_today: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCheck {
    invocation_id: String,
    contribution: String,
    organization_id: String,
    configuration: Value,
    connector: Connector,
    credential: Value,
    now: String,
}

/// What both requests say.
pub(super) struct Common {
    pub(super) kind: String,
    pub(super) configuration: Value,
    /// The secret as JSON text; it goes no further than the host.
    pub(super) credential: Option<String>,
    connector: Connector,
    now: String,
}

/// A request for a page.
pub(super) struct FetchRequest {
    pub(super) common: Common,
    pub(super) checkpoint: Option<Value>,
    page_in_run: u32,
    reads_today: u32,
}

/// A request to check a credential.
pub(super) struct CheckRequest {
    pub(super) common: Common,
}

fn parse<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, Refused> {
    let value: Value = serde_json::from_slice(body).map_err(|_| Refused::new("The request is not JSON"))?;
    if !value.is_object() {
        return Err(Refused::new("The request is not a JSON object"));
    }
    // A member of the wrong type is told by its rule alone, since a message must not repeat a credential.
    serde_json::from_value(value).map_err(|e| {
        let text = e.to_string();
        let known = text.starts_with("unknown field") || text.starts_with("missing field");
        Refused::new(if known {
            format!("The request has another shape: {text}")
        } else {
            "A member of the request has another type".to_owned()
        })
    })
}

fn common(
    ids: (&str, &str, &str),
    configuration: Value,
    connector: Connector,
    credential: Value,
    now: String,
) -> Result<Common, Refused> {
    let (invocation_id, contribution, organization_id) = ids;
    if contribution != "connector" {
        return Err(Refused::new("contribution must be \"connector\""));
    }
    let bounded = |text: &str, most: usize| (1..=most).contains(&text.len());
    let optional = |text: &Option<String>, most: usize| text.as_deref().is_none_or(|t| bounded(t, most));
    let ids_ok = bounded(invocation_id, 128) && !organization_id.is_empty() && bounded(&connector.instance_id, 128);
    if !ids_ok || !optional(&connector.corpus_id, usize::MAX) || !optional(&connector.source_namespace, 200) {
        return Err(Refused::new("An identifier of the request is empty or too long"));
    }
    if now.parse::<jiff::Timestamp>().is_err() {
        return Err(Refused::new("now is not an RFC 3339 instant"));
    }
    let configuration = match configuration {
        Value::Null => json!({}),
        Value::Object(_) => configuration,
        _ => return Err(Refused::new("configuration is not an object")),
    };
    let credential = match credential {
        Value::Null => None,
        Value::Object(_) => Some(credential.to_string()),
        _ => return Err(Refused::new("credential is neither an object nor null")),
    };
    Ok(Common { kind: connector.kind.clone(), configuration, credential, connector, now })
}

impl Common {
    fn invocation(&self) -> Invocation {
        Invocation {
            instance_id: self.connector.instance_id.clone(),
            kind: self.kind.clone(),
            corpus_id: self.connector.corpus_id.clone().unwrap_or_default(),
            source_namespace: self.connector.source_namespace.clone().unwrap_or_default(),
            config: Value::Object(self.connector.config.clone()).to_string(),
            now: self.now.clone(),
            ..Invocation::default()
        }
    }
}

impl FetchRequest {
    pub(super) fn read(body: &[u8]) -> Result<Self, Refused> {
        let raw: RawFetch = parse(body)?;
        let ids = (raw.invocation_id.as_str(), raw.contribution.as_str(), raw.organization_id.as_str());
        Ok(Self {
            common: common(ids, raw.configuration, raw.connector, raw.credential, raw.now)?,
            checkpoint: Some(raw.checkpoint).filter(|c| !c.is_null()),
            page_in_run: raw.page_in_run,
            reads_today: raw.reads_today,
        })
    }

    pub(super) fn invocation(&self) -> Invocation {
        Invocation {
            checkpoint: self.checkpoint.as_ref().map(ToString::to_string),
            page_in_run: self.page_in_run,
            reads_today: self.reads_today,
            ..self.common.invocation()
        }
    }
}

impl CheckRequest {
    pub(super) fn read(body: &[u8]) -> Result<Self, Refused> {
        let raw: RawCheck = parse(body)?;
        let ids = (raw.invocation_id.as_str(), raw.contribution.as_str(), raw.organization_id.as_str());
        Ok(Self { common: common(ids, raw.configuration, raw.connector, raw.credential, raw.now)? })
    }

    pub(super) fn invocation(&self) -> Invocation {
        self.common.invocation()
    }
}

/// An item as that contract knows it: a manifest of text parts and the extension of the plugin's own id.
fn item(item: &Item, id: &str) -> Value {
    let parts: Vec<Value> = item
        .parts
        .iter()
        .map(|p| {
            let mut part = json!({"key": p.key, "role": p.role, "content": {"kind": "text", "text": p.text}});
            if let (Some(part), Some(parent)) = (part.as_object_mut(), &p.parent_key) {
                part.insert("parent_key".to_owned(), parent.clone().into());
            }
            part
        })
        .collect();
    let extensions: Map<String, Value> = item
        .extensions
        .iter()
        .filter(|(namespace, _)| *namespace == id)
        .map(|(namespace, e)| (namespace.clone(), json!({"schema_version": e.schema_version, "data": e.data})))
        .collect();
    json!({
        "record_key": item.record_key,
        "revision": item.revision,
        "content": {"kind": "manifest", "parts": parts},
        "extensions": extensions,
    })
}

/// The answer of a page. The checkpoint goes out as the component wrote it, byte for byte; one that is not due goes out
/// as it came in.
pub(super) fn fetch_response(page: &Page, id: &str, before: Option<&Value>) -> String {
    let items: Vec<Value> = page.items.iter().map(|i| item(i, id)).collect();
    let checkpoint = match (page.not_due, before) {
        (true, Some(before)) => before.to_string(),
        (true, None) => "null".to_owned(),
        (false, _) => page.checkpoint.clone(),
    };
    let not_due = if page.not_due { ",\"not_due\":true" } else { "" };
    let (items, more) = (Value::Array(items), page.more);
    format!("{{\"items\":{items},\"checkpoint\":{checkpoint},\"more\":{more}{not_due}}}")
}
