//! Records and their versions.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{Parameters, limit};
use super::corpora::{list_of, page};
use super::{Api, ApiError, cursor};
use crate::corpus::clock::rfc3339;
use crate::store::model::{Record, RecordOrder, RecordQuery, Version};

/// Corpora of one list.
const MAX_CORPORA: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    corpus_id: Option<String>,
    /// Several, joined by commas.
    corpus_ids: Option<String>,
    order: Option<String>,
    accepted_after: Option<String>,
    accepted_before: Option<String>,
    page_cursor: Option<String>,
    limit: Option<u32>,
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

pub(super) async fn list(State(api): State<Api>, Parameters(query): Parameters<List>) -> Result<Json<Value>, ApiError> {
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
    let filter = format!("records {corpus_ids:?} {order:?} {accepted_after:?} {accepted_before:?}");
    let after = match query.page_cursor {
        None => None,
        Some(c) => {
            let place = cursor::read(&filter, &c)?;
            let parsed = place.split_once(' ').and_then(|(a, s)| Some((a.parse().ok()?, s.parse().ok()?)));
            Some(parsed.ok_or_else(|| invalid("page_cursor", "page_cursor is not one that this list gave"))?)
        }
    };
    let query = RecordQuery { corpus_ids, order, accepted_after, accepted_before, after, limit: limit + 1 };
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
    Ok(Json(list_of(records.iter().map(show).collect(), next)))
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

pub(super) async fn get(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    Ok(Json(show(&api.service.store(move |store| store.record(&id)).await?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Versions {
    page_cursor: Option<String>,
    limit: Option<u32>,
}

pub(super) async fn versions(
    State(api): State<Api>,
    Path(id): Path<String>,
    Parameters(query): Parameters<Versions>,
) -> Result<Json<Value>, ApiError> {
    let limit = limit(query.limit)?;
    let filter = format!("versions {id}");
    let after = match query.page_cursor {
        None => 0,
        Some(c) => cursor::read(&filter, &c)?
            .parse()
            .map_err(|_| invalid("page_cursor", "page_cursor is not one that this list gave"))?,
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
    Ok(Json(list_of(items, next)))
}

pub(super) async fn version(
    State(api): State<Api>,
    Path((id, version)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let (record, version) =
        api.service.store(move |store| Ok((store.record(&id)?, store.version(&id, &version)?))).await?;
    Ok(Json(show_version(&record, &version)))
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
        "availability": {"searchable": false},
    })
}
