//! Connector instances: one feed each.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{Allowed, ConnectorsRead, ConnectorsWrite};
use super::body::{At, Body, Parameters, limit, once};
use super::corpora::{check_visible, list_of, page};
use super::create::{CredentialBody, Schedule, check_interval, deposit, fingerprint, vault};
pub(super) use super::view::show;
use super::view::show_run;
use super::{Api, ApiError, cursor};
use crate::corpus::access::Principal;
use crate::corpus::clock::rfc3339;
use crate::store::model::Instance;

/// An instance, where the caller may know of it.
async fn visible(api: &Api, who: &Principal, id: &str) -> Result<Instance, ApiError> {
    let id = id.to_owned();
    let instance = api.service.store(move |store| store.instance(&id)).await?;
    if who.sees(&instance.new.corpus_id) { Ok(instance) } else { Err(ApiError::not_found("the connector")) }
}

/// An instance that can be changed.
async fn enabled(api: &Api, who: &Principal, id: &str) -> Result<Instance, ApiError> {
    let instance = visible(api, who, id).await?;
    if instance.disabled_at.is_some() {
        return Err(ApiError::conflict("connector_disabled", "The connector is disabled for good; create another one"));
    }
    Ok(instance)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    corpus_id: Option<String>,
    page_cursor: Option<String>,
    limit: Option<String>,
}

pub(super) async fn list(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsRead>,
    Parameters(query): Parameters<List>,
) -> Result<Json<Value>, ApiError> {
    let limit = limit(query.limit)?;
    check_visible(&api, &who, query.corpus_id.as_deref()).await?;
    let corpora = who.within(query.corpus_id);
    let filter = format!("connectors {corpora:?}");
    let after = query.page_cursor.map(|c| cursor::read(&filter, &c)).transpose()?;
    let mut list =
        api.service.store(move |store| store.instances(corpora.as_deref(), after.as_deref(), limit + 1)).await?;
    let next = page(&mut list, limit).map(|last| cursor::write(&filter, &last.new.connector_id));
    Ok(Json(list_of(list.iter().map(|i| show(&api, &who, i)).collect(), next)))
}

pub(super) async fn get(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsRead>,
    At(id): At<String>,
) -> Result<Json<Value>, ApiError> {
    let instance = visible(&api, &who, &id).await?;
    let counts = api.service.store(move |store| store.counts(&id)).await?;
    let mut shown = show(&api, &who, &instance);
    if let Some(object) = shown.as_object_mut() {
        object.insert("counts".to_owned(), json!({"records": counts.0, "listed": counts.1}));
    }
    Ok(Json(shown))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Once {
    idempotency_key: String,
}

pub(super) async fn disable(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsWrite>,
    At(id): At<String>,
    Body(body): Body<Once>,
) -> Result<Json<Value>, ApiError> {
    visible(&api, &who, &id).await?;
    // Disabling is for good, so any key means the same.
    once("disable", &body.idempotency_key, &Value::Null)?;
    let now = api.service.now_ms();
    let instance = api.service.store(move |store| store.disable(&id, now)).await?;
    api.service.changed();
    Ok(Json(show(&api, &who, &instance)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replace {
    idempotency_key: String,
    secret: Value,
    expires_at: Option<String>,
}

pub(super) async fn credential(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsWrite>,
    At(id): At<String>,
    Body(body): Body<Replace>,
) -> Result<Json<Value>, ApiError> {
    let key = body.idempotency_key;
    let body = CredentialBody { secret: body.secret, expires_at: body.expires_at };
    let instance = enabled(&api, &who, &id).await?;
    let request = json!({"connector_id": id, "credential": fingerprint(vault(&api)?, &body)});
    let once = once("credential", &key, &request)?;
    let deposit = deposit(&api, &instance.new.kind, &id, &body, "")?;
    let (now, connector) = (api.service.now_ms(), id.clone());
    api.service.store(move |store| store.deposit(&connector, &deposit, &once, now)).await?;
    answer(&api, &who, &id).await
}

pub(super) async fn schedule(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsWrite>,
    At(id): At<String>,
    Body(body): Body<Schedule>,
) -> Result<Json<Value>, ApiError> {
    enabled(&api, &who, &id).await?;
    let seconds = check_interval(&api, body.interval_seconds, "/interval_seconds")?;
    let (now, connector) = (api.service.now_ms(), id.clone());
    api.service.store(move |store| store.set_interval(&connector, seconds, now)).await?;
    answer(&api, &who, &id).await
}

pub(super) async fn pause(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsWrite>,
    At(id): At<String>,
    Body(body): Body<Once>,
) -> Result<Json<Value>, ApiError> {
    set_paused(&api, &who, id, &body.idempotency_key, true).await
}

pub(super) async fn resume(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsWrite>,
    At(id): At<String>,
    Body(body): Body<Once>,
) -> Result<Json<Value>, ApiError> {
    set_paused(&api, &who, id, &body.idempotency_key, false).await
}

async fn set_paused(api: &Api, who: &Principal, id: String, key: &str, paused: bool) -> Result<Json<Value>, ApiError> {
    enabled(api, who, &id).await?;
    let once = once(if paused { "pause" } else { "resume" }, key, &json!({"connector_id": id}))?;
    let (now, connector) = (api.service.now_ms(), id.clone());
    api.service.store(move |store| store.set_paused(&connector, paused, &once, now)).await?;
    answer(api, who, &id).await
}

/// The answer to a write: its health told, the instance as it is now.
async fn answer(api: &Api, who: &Principal, id: &str) -> Result<Json<Value>, ApiError> {
    api.service.touched(id).await;
    Ok(Json(show(api, who, &visible(api, who, id).await?)))
}

pub(super) async fn run(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsWrite>,
    At(id): At<String>,
    Body(body): Body<Once>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let once = once("runs", &body.idempotency_key, &json!({"connector_id": id}))?;
    let instance = enabled(&api, &who, &id).await?;
    let lookup = once.clone();
    let run_at = match api.service.store(move |store| store.used(&lookup)).await? {
        // The time that the same request was given.
        Some(at) => at,
        None if instance.paused_at.is_some() => {
            return Err(ApiError::conflict("connector_paused", "The connector is paused; resume it first"));
        }
        None => {
            let at = rfc3339(api.service.request_run(&id).await?);
            let (now, told) = (api.service.now_ms(), at.clone());
            api.service.store(move |store| store.remember(&once, &told, now)).await?;
            at
        }
    };
    Ok((StatusCode::ACCEPTED, Json(json!({"run_at": run_at}))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Runs {
    page_cursor: Option<String>,
    limit: Option<String>,
}

pub(super) async fn runs(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsRead>,
    At(id): At<String>,
    Parameters(query): Parameters<Runs>,
) -> Result<Json<Value>, ApiError> {
    let limit = limit(query.limit)?;
    visible(&api, &who, &id).await?;
    let filter = format!("runs {id}");
    let before = query.page_cursor.map(|c| cursor::read(&filter, &c)).transpose()?;
    let mut list = api.service.store(move |store| store.runs(&id, before.as_deref(), limit + 1)).await?;
    let next = page(&mut list, limit).map(|last| cursor::write(&filter, &last.run_id));
    Ok(Json(list_of(list.iter().map(|run| show_run(&who, run)).collect(), next)))
}
