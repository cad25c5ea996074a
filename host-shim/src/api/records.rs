//! Records and their versions.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{Allowed, ContentRead};
use super::body::{At, Parameters, limit};
use super::corpora::{list_of, page};
use super::error::tagged;
use super::{Api, ApiError, cursor};
use crate::corpus::access::Principal;
use crate::corpus::clock::rfc3339;
use crate::store::model::{Record, RecordOrder, RecordQuery, Version};

/// Corpora of one list.
const MAX_CORPORA: usize = 16;
/// Bytes of a search: some words.
const MAX_QUERY_BYTES: usize = 512;
/// Values of extensions that one list may name: each is looked up in each record.
const MAX_METADATA: usize = 8;
/// Bytes of them.
const MAX_METADATA_BYTES: usize = 4_096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    corpus_id: Option<String>,
    /// Several, joined by commas.
    corpus_ids: Option<String>,
    order: Option<String>,
    accepted_after: Option<String>,
    accepted_before: Option<String>,
    /// Words of title and body.
    q: Option<String>,
    /// Values of extensions, as JSON.
    metadata: Option<String>,
    page_cursor: Option<String>,
    limit: Option<String>,
}

fn invalid(field: &str, message: impl Into<String>) -> ApiError {
    ApiError::invalid("invalid_query", Some(field.to_owned()), message)
}

fn instant(field: &str, text: Option<&str>) -> Result<Option<i64>, ApiError> {
    text.map(|t| {
        t.parse::<jiff::Timestamp>()
            .map(jiff::Timestamp::as_millisecond)
            .map_err(|_| invalid(field, format!("{field} is not an RFC 3339 instant")))
    })
    .transpose()
}

/// Words of a search: some, not too many bytes, and at least one that is looked for.
fn text(q: Option<String>) -> Result<Option<String>, ApiError> {
    match q {
        Some(q) if q.len() > MAX_QUERY_BYTES || !q.chars().any(char::is_alphanumeric) || q.contains('\0') => {
            Err(invalid("q", format!("q must have a word and at most {MAX_QUERY_BYTES} bytes")))
        }
        q => Ok(q),
    }
}

/// The values of extensions that are wanted: a JSON object by namespace, whose members name values of its data.
fn metadata(given: Option<&str>) -> Result<Vec<(Vec<String>, Value)>, ApiError> {
    let Some(text) = given else { return Ok(Vec::new()) };
    let bad = || {
        let message = format!(
            "metadata must be a JSON object by extension namespace with 1 to {MAX_METADATA} texts, numbers or truth \
             values, such as {{\"connector.rss\":{{\"item\":{{\"guid\":\"x\"}}}}}}"
        );
        invalid("metadata", message)
    };
    if text.len() > MAX_METADATA_BYTES {
        return Err(bad());
    }
    let Ok(Value::Object(namespaces)) = serde_json::from_str::<Value>(text) else { return Err(bad()) };
    let mut wanted = Vec::new();
    for (namespace, data) in &namespaces {
        if !data.is_object() || !flatten(vec![namespace.clone(), "data".to_owned()], data, &mut wanted) {
            return Err(bad());
        }
    }
    if wanted.is_empty() { Err(bad()) } else { Ok(wanted) }
}

/// Collects the values of an object with their paths; false where it has something that cannot be compared.
fn flatten(path: Vec<String>, value: &Value, into: &mut Vec<(Vec<String>, Value)>) -> bool {
    // SQLite's paths have no way to quote a quote.
    if into.len() > MAX_METADATA || path.len() > MAX_METADATA || path.iter().any(|name| name.contains(['"', '\0'])) {
        return false;
    }
    match value {
        Value::Object(members) => members.iter().all(|(name, value)| {
            let path = path.iter().cloned().chain([name.clone()]).collect();
            flatten(path, value, into)
        }),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => {
            into.push((path, value.clone()));
            into.len() <= MAX_METADATA
        }
        Value::Null | Value::Array(_) => false,
    }
}

pub(super) async fn list(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ContentRead>,
    headers: HeaderMap,
    Parameters(query): Parameters<List>,
) -> Result<Response, ApiError> {
    let mut corpus_ids: Vec<String> = match (query.corpus_id, query.corpus_ids) {
        (Some(one), None) => vec![one],
        (None, Some(many)) => many.split(',').filter(|c| !c.is_empty()).map(str::to_owned).collect(),
        _ => return Err(invalid("corpus_id", "Give either corpus_id or corpus_ids")),
    };
    corpus_ids.sort();
    corpus_ids.dedup();
    if corpus_ids.is_empty() || corpus_ids.len() > MAX_CORPORA {
        return Err(invalid("corpus_ids", format!("corpus_ids must name 1 to {MAX_CORPORA} corpora")));
    }
    let order = match query.order.as_deref() {
        None | Some("record_id") => RecordOrder::RecordId,
        Some("accepted_at_desc") => RecordOrder::AcceptedDesc,
        Some(_) => return Err(invalid("order", "order must be record_id or accepted_at_desc")),
    };
    let accepted_after = instant("accepted_after", query.accepted_after.as_deref())?;
    let accepted_before = instant("accepted_before", query.accepted_before.as_deref())?;
    let limit = limit(query.limit)?;
    let (text, metadata) = (text(query.q)?, metadata(query.metadata.as_deref())?);
    if !corpus_ids.iter().all(|id| who.sees(id)) {
        return Err(ApiError::not_found("the corpus"));
    }
    let filter =
        format!("records {corpus_ids:?} {order:?} {accepted_after:?} {accepted_before:?} {text:?} {metadata:?}");
    let after = match query.page_cursor {
        None => None,
        Some(c) => {
            let place = cursor::read(&filter, &c)?;
            let parsed = place.split_once(' ').and_then(|(a, s)| Some((a.parse().ok()?, s.parse().ok()?)));
            Some(parsed.ok_or_else(cursor::invalid)?)
        }
    };
    let query =
        RecordQuery { corpus_ids, order, accepted_after, accepted_before, text, metadata, after, limit: limit + 1 };
    let mut records = api
        .service
        .store(move |store| {
            for corpus_id in &query.corpus_ids {
                store.corpus(corpus_id)?;
            }
            store.records(&query)
        })
        .await?;
    let next = page(&mut records, limit).map(|r| cursor::write(&filter, &format!("{} {}", r.accepted_at, r.seq)));
    Ok(tagged(&headers, &list_of(records.iter().map(show).collect(), next)))
}

fn show(record: &Record) -> Value {
    json!({
        "record_id": record.record_id,
        "source": {
            "corpus_id": record.corpus_id, "namespace": record.namespace, "record_key": record.record_key,
        },
        "withdrawn": record.withdrawn,
        "current_version_id": record.current_version_id,
        "versions": record.ordinal,
        "revision": record.revision,
        "first_seen_at": rfc3339(record.first_seen_at),
        "accepted_at": rfc3339(record.accepted_at),
        "sort_time": rfc3339(record.sort_time),
        "sort_origin": record.sort_origin,
    })
}

/// A record, where the caller may know of it.
async fn visible(api: &Api, who: &Principal, id: &str) -> Result<Record, ApiError> {
    let id = id.to_owned();
    let record = api.service.store(move |store| store.record(&id)).await?;
    if who.sees(&record.corpus_id) { Ok(record) } else { Err(ApiError::not_found("the record")) }
}

pub(super) async fn get(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ContentRead>,
    headers: HeaderMap,
    At(id): At<String>,
) -> Result<Response, ApiError> {
    Ok(tagged(&headers, &show(&visible(&api, &who, &id).await?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Versions {
    page_cursor: Option<String>,
    limit: Option<String>,
}

pub(super) async fn versions(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ContentRead>,
    headers: HeaderMap,
    At(id): At<String>,
    Parameters(query): Parameters<Versions>,
) -> Result<Response, ApiError> {
    let limit = limit(query.limit)?;
    visible(&api, &who, &id).await?;
    let filter = format!("versions {id}");
    let after = match query.page_cursor {
        None => 0,
        Some(c) => cursor::read(&filter, &c)?.parse().map_err(|_| cursor::invalid())?,
    };
    let record_id = id.clone();
    let mut list = api.service.store(move |store| store.versions(&record_id, after, limit + 1)).await?;
    let next = page(&mut list, limit).map(|v| cursor::write(&filter, &v.ordinal.to_string()));
    let items = list
        .iter()
        .map(|v| {
            json!({
                "version_id": v.version_id, "ordinal": v.ordinal, "revision": v.revision,
                "withdrawn": v.withdrawn, "accepted_at": rfc3339(v.accepted_at),
            })
        })
        .collect();
    Ok(tagged(&headers, &list_of(items, next)))
}

pub(super) async fn version(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ContentRead>,
    headers: HeaderMap,
    At((id, version)): At<(String, String)>,
) -> Result<Response, ApiError> {
    let record = visible(&api, &who, &id).await?;
    let version = api.service.store(move |store| store.version(&id, &version)).await?;
    Ok(tagged(&headers, &show_version(&record, &version)))
}

/// Parts are a manifest: the text stands in the content of each.
fn show_version(record: &Record, version: &Version) -> Value {
    let parts: Vec<Value> = version
        .parts
        .as_array()
        .into_iter()
        .flatten()
        .map(|part| {
            let mut shown = json!({
                "key": part.get("key"), "role": part.get("role"),
                "content": {"kind": "text", "text": part.get("text")},
            });
            if let (Some(shown), Some(parent)) = (shown.as_object_mut(), part.get("parent_key")) {
                shown.insert("parent_key".to_owned(), parent.clone());
            }
            shown
        })
        .collect();
    json!({
        "version_id": version.version_id,
        "record_id": record.record_id,
        "ordinal": version.ordinal,
        "revision": version.revision,
        "withdrawn": version.withdrawn,
        "accepted_at": rfc3339(version.accepted_at),
        "manifest": {"kind": "manifest", "parts": parts},
        "extensions": version.extensions,
        "provenance": {
            "producer": version.connector_id,
            "producer_version": format!("{}/{}", version.producer.plugin_id, version.producer.plugin_version),
            "plugin_digest": version.producer.plugin_digest,
            "run_id": version.run_id,
        },
        "availability": {"searchable": record.current_version_id == version.version_id},
    })
}
