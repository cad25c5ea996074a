//! Corpora: places for records.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{Allowed, ConnectorsAdmin};
use super::body::{Body, Parameters, limit, once};
use super::{Api, ApiError, cursor};
use crate::corpus::access::Principal;
use crate::corpus::clock::rfc3339;
use crate::ids;
use crate::store::model::Corpus;
use crate::store::{Store, StoreError};

/// Characters of a name.
pub(super) const MAX_NAME_CHARS: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    idempotency_key: String,
    name: String,
}

/// A name: one line, not blank.
pub(super) fn check_name(name: &str) -> Result<(), ApiError> {
    let valid =
        !name.trim().is_empty() && name.chars().count() <= MAX_NAME_CHARS && !name.chars().any(char::is_control);
    if valid {
        return Ok(());
    }
    let message = format!("name must be one line of 1 to {MAX_NAME_CHARS} characters");
    Err(ApiError::invalid("invalid_schema", Some("/name".to_owned()), message))
}

fn show(corpus: &Corpus) -> Value {
    json!({"corpus_id": corpus.corpus_id, "name": corpus.name, "created_at": rfc3339(corpus.created_at)})
}

pub(super) async fn create(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsAdmin>,
    Body(body): Body<Create>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    if who.corpora.is_some() {
        return Err(ApiError::forbidden("connectors:admin for all corpora"));
    }
    check_name(&body.name)?;
    let once = once("corpora", &body.idempotency_key, &json!({"name": body.name}))?;
    let now = api.service.now_ms();
    let corpus = Corpus { corpus_id: ids::new("c", now), name: body.name, created_at: now };
    let created = api.service.store(move |store| store.create_corpus(corpus, &once)).await?;
    api.service.changed();
    Ok((StatusCode::CREATED, Json(show(&created.value))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    page_cursor: Option<String>,
    limit: Option<String>,
}

/// Corpora are named by whoever may do anything with one of them.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(who): Extension<Principal>,
    Parameters(query): Parameters<List>,
) -> Result<Json<Value>, ApiError> {
    let limit = limit(query.limit)?;
    let after = query.page_cursor.map(|c| cursor::read("corpora", &c)).transpose()?;
    let mut corpora = match &who.corpora {
        None => api.service.store(move |store| store.corpora(after.as_deref(), limit + 1)).await?,
        Some(own) => {
            let behind = |id: &&String| after.as_ref().is_none_or(|after| *id > after);
            let wanted: Vec<String> = own.iter().filter(behind).take(limit as usize + 1).cloned().collect();
            api.service.store(move |store| existing(store, &wanted)).await?
        }
    };
    let next = page(&mut corpora, limit).map(|last| cursor::write("corpora", &last.corpus_id));
    let items: Vec<Value> = corpora.iter().map(show).collect();
    Ok(Json(list_of(items, next)))
}

/// Those of the corpora that there are.
fn existing(store: &dyn Store, wanted: &[String]) -> Result<Vec<Corpus>, StoreError> {
    let found = wanted.iter().map(|id| store.corpus(id)).filter(|c| !matches!(c, Err(StoreError::NotFound(_))));
    found.collect()
}

/// Whether a corpus exists for a caller; one that it may not know of does not.
pub(super) async fn check_visible(api: &Api, who: &Principal, corpus_id: Option<&str>) -> Result<(), ApiError> {
    let Some(id) = corpus_id.map(str::to_owned) else { return Ok(()) };
    if !who.sees(&id) {
        return Err(ApiError::not_found("the corpus"));
    }
    api.service.store(move |store| store.corpus(&id)).await?;
    Ok(())
}

/// Cuts a list that was read one entry too long; the last entry kept, where there is another page.
pub(super) fn page<T>(list: &mut Vec<T>, limit: u32) -> Option<&T> {
    let limit = limit as usize;
    if list.len() <= limit {
        return None;
    }
    list.truncate(limit);
    list.last()
}

/// A page of a list.
pub(super) fn list_of(items: Vec<Value>, next: Option<String>) -> Value {
    match next {
        Some(cursor) => json!({"items": items, "next_page_cursor": cursor}),
        None => json!({"items": items}),
    }
}
