//! Connector instances: one feed each.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::{Body, Parameters, limit, once};
use super::corpora::{check_name, list_of, page};
use super::{Api, ApiError, cursor};
use crate::corpus::clock::rfc3339;
use crate::corpus::pins::Pinned;
use crate::egress::url::{for_log, judge, normalise};
use crate::ids;
use crate::store::StoreError;
use crate::store::model::{Instance, NewInstance, Run};

/// Bytes of a source namespace (Quivr's bound).
const MAX_NAMESPACE_BYTES: usize = 200;
/// The longest interval: a day.
const MAX_INTERVAL_SECONDS: u32 = 86_400;
/// Seconds after which a feed without new items counts as silent, where nothing is said: a day.
const SILENT_AFTER_SECONDS: u32 = 86_400;
/// Seconds before a credential expires in which it is warned of, where nothing is said: two weeks.
const CREDENTIAL_WARNING_SECONDS: u32 = 1_209_600;
/// The longest time of a health policy: ten years.
const MAX_POLICY_SECONDS: u32 = 315_360_000;
/// Labels of an instance.
const MAX_LABELS: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    idempotency_key: String,
    corpus_id: String,
    source_namespace: String,
    kind: String,
    config: Map<String, Value>,
    schedule: Option<Schedule>,
    health_policy: Option<HealthPolicy>,
    name: Option<String>,
    labels: Option<Map<String, Value>>,
    /// Where the instance goes on from, when it comes from another deployment.
    checkpoint: Option<Value>,
    credential: Option<Value>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct Schedule {
    interval_seconds: u32,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct HealthPolicy {
    silent_after_seconds: Option<u32>,
    credential_warning_seconds: Option<u32>,
}

pub(super) async fn create(
    State(api): State<Api>,
    Body(body): Body<Create>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    if body.credential.is_some() {
        let message = "This service has no key to keep credentials with";
        return Err(ApiError::unavailable("credentials_unavailable", message, false));
    }
    let canonical = json!({
        "corpus_id": body.corpus_id, "source_namespace": body.source_namespace, "kind": body.kind,
        "config": body.config, "interval_seconds": body.schedule.map(|s| s.interval_seconds),
        "silent_after_seconds": body.health_policy.map(|p| p.silent_after_seconds),
        "credential_warning_seconds": body.health_policy.map(|p| p.credential_warning_seconds),
        "name": body.name, "labels": body.labels, "checkpoint": body.checkpoint,
    });
    let once = once("connectors", &body.idempotency_key, &canonical)?;
    let is_named = body.name.is_some();
    let new = check(&api, body)?;
    let now = api.service.now_ms();
    let created = api
        .service
        .store(move |store| match store.create_instance(new.clone(), &once, now) {
            // Two feeds may differ in their query alone, which is no part of a default name.
            Err(StoreError::NameInUse) if !is_named => {
                let name = format!("{} ({})", new.name, new.source_namespace);
                store.create_instance(NewInstance { name, ..new }, &once, now)
            }
            other => other,
        })
        .await?;
    api.service.wake();
    Ok((StatusCode::CREATED, Json(show(&api, &created.value))))
}

fn check(api: &Api, body: Create) -> Result<NewInstance, ApiError> {
    let field = |name: &str| Some(format!("/{name}"));
    let namespace = &body.source_namespace;
    let namespace_ok = (1..=MAX_NAMESPACE_BYTES).contains(&namespace.len()) && !namespace.chars().any(char::is_control);
    if !namespace_ok {
        let message = "source_namespace must be 1 to 200 bytes without control characters";
        return Err(ApiError::invalid("invalid_schema", field("source_namespace"), message));
    }
    let pinned = api.service.pins().get(&body.kind).ok_or_else(|| {
        let message = "No pinned component serves this kind; GET /v0/connector-kinds lists those that are";
        ApiError::invalid("unsupported_connector_kind", field("kind"), message)
    })?;
    let kind = pinned.plugin.descriptor().kind(&body.kind).ok_or_else(|| ApiError::not_found("the kind"))?;
    let config = config(body.config, &kind.config_schema, pinned)?;
    let interval_seconds = body.schedule.map_or(kind.default_interval_seconds, |s| s.interval_seconds);
    let floor = api.service.settings().min_interval_seconds;
    if !(floor..=MAX_INTERVAL_SECONDS).contains(&interval_seconds) {
        let message = format!("interval_seconds must be {floor} to {MAX_INTERVAL_SECONDS}");
        let code = if interval_seconds == 0 { "invalid_schema" } else { "invalid_interval" };
        return Err(ApiError::invalid(code, field("schedule/interval_seconds"), message));
    }
    let policy = |given: Option<u32>, default: u32, name: &str| match given.unwrap_or(default) {
        seconds if (1..=MAX_POLICY_SECONDS).contains(&seconds) => Ok(seconds),
        _ => {
            let message = format!("{name} must be 1 to {MAX_POLICY_SECONDS}");
            Err(ApiError::invalid("invalid_schema", field(&format!("health_policy/{name}")), message))
        }
    };
    let health = body.health_policy;
    let name = match body.name {
        Some(name) => name,
        None => default_name(&config, &body.source_namespace),
    };
    check_name(&name)?;
    let labels = body.labels.unwrap_or_default();
    let label_ok = |(key, value): (&String, &Value)| {
        (1..=64).contains(&key.len()) && value.as_str().is_some_and(|v| v.len() <= 256)
    };
    if labels.len() > MAX_LABELS || !labels.iter().all(label_ok) {
        let message = "labels must be at most 32 names of 1 to 64 bytes with texts of at most 256 bytes";
        return Err(ApiError::invalid("invalid_schema", field("labels"), message));
    }
    Ok(NewInstance {
        connector_id: ids::new("con", api.service.now_ms()),
        checkpoint: checkpoint(body.checkpoint, pinned)?,
        corpus_id: body.corpus_id,
        source_namespace: body.source_namespace,
        name,
        labels: Value::Object(labels),
        kind: body.kind,
        config: Value::Object(config),
        interval_seconds,
        silent_after_seconds: policy(
            health.and_then(|h| h.silent_after_seconds),
            SILENT_AFTER_SECONDS,
            "silent_after_seconds",
        )?,
        credential_warning_seconds: policy(
            health.and_then(|h| h.credential_warning_seconds),
            CREDENTIAL_WARNING_SECONDS,
            "credential_warning_seconds",
        )?,
    })
}

/// The config of an instance: its address as people write it made into one that can be requested, then held to the
/// component's own schema and to the URL policy.
fn config(mut config: Map<String, Value>, schema: &Value, pinned: &Pinned) -> Result<Map<String, Value>, ApiError> {
    let invalid = |pointer: &str, message: String| {
        ApiError::invalid("invalid_config", Some(format!("/config{pointer}")), message)
    };
    if let Some(Value::String(url)) = config.get_mut("url") {
        *url = normalise(url);
    }
    let value = Value::Object(config);
    let validator = jsonschema::validator_for(schema).map_err(|_| {
        ApiError::unavailable("connectors_unavailable", "The component's config schema is no JSON Schema", false)
    })?;
    if let Some(error) = validator.iter_errors(&value).next() {
        let pointer = error.instance_path().to_string();
        return Err(invalid(&pointer, format!("The config does not fit the schema of the kind: {}", error.masked())));
    }
    if let Some(url) = value.get("url").and_then(Value::as_str) {
        judge(url, &pinned.rules).map_err(|refusal| invalid("/url", format!("The address is refused: {refusal}")))?;
    }
    match value {
        Value::Object(config) => Ok(config),
        _ => Ok(Map::new()),
    }
}

/// A checkpoint given at creation: JSON, or the text of it.
fn checkpoint(given: Option<Value>, pinned: &Pinned) -> Result<Option<String>, ApiError> {
    let text = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let bound = pinned.plugin.descriptor().limits.max_checkpoint_bytes as usize;
    if text.len() > bound {
        let message = format!("checkpoint is longer than {bound} bytes");
        return Err(ApiError::invalid("invalid_schema", Some("/checkpoint".to_owned()), message));
    }
    Ok(Some(text))
}

/// The address of the feed without user name, query and fragment, else the namespace.
fn default_name(config: &Map<String, Value>, namespace: &str) -> String {
    let address = config.get("url").and_then(Value::as_str).and_then(|u| url::Url::parse(u).ok()).map(|u| for_log(&u));
    let name = address.unwrap_or_else(|| namespace.to_owned());
    name.chars().take(super::corpora::MAX_NAME_CHARS).collect()
}

/// An instance as callers see it; secrets are never part of it.
fn show(api: &Api, instance: &Instance) -> Value {
    let new = &instance.new;
    let at = |ms: Option<i64>| ms.map(rfc3339);
    let now = api.service.now_ms();
    let mut health = json!({
        "state": api.service.health(instance).name(),
        "evaluated_at": rfc3339(now),
        "last_success_at": at(instance.last_success_at),
        "last_item_at": at(instance.last_item_at),
        "diagnostics": instance.diagnostics,
    });
    if let (Some(health), Some(error)) = (health.as_object_mut(), &instance.last_error) {
        let shown =
            json!({"class": error.class, "code": error.code, "message": error.message, "at": rfc3339(error.at)});
        health.insert("last_error".to_owned(), shown);
    }
    let next = match instance.disabled_at {
        Some(_) => Value::Null,
        None => json!({"at": rfc3339(instance.next_run_at), "because": instance.next_run_because}),
    };
    json!({
        "connector_id": new.connector_id,
        "corpus_id": new.corpus_id,
        "source_namespace": new.source_namespace,
        "name": new.name,
        "labels": new.labels,
        "kind": new.kind,
        "enabled": instance.disabled_at.is_none(),
        "created_at": rfc3339(instance.created_at),
        "disabled_at": at(instance.disabled_at),
        "config": new.config,
        "schedule": {"interval_seconds": new.interval_seconds},
        "health_policy": {
            "silent_after_seconds": new.silent_after_seconds,
            "credential_warning_seconds": new.credential_warning_seconds,
        },
        "next_poll": next,
        "last_run_at": at(instance.last_run_at),
        "health": health,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    corpus_id: Option<String>,
    page_cursor: Option<String>,
    limit: Option<u32>,
}

pub(super) async fn list(State(api): State<Api>, Parameters(query): Parameters<List>) -> Result<Json<Value>, ApiError> {
    let limit = limit(query.limit)?;
    let filter = format!("connectors {}", query.corpus_id.as_deref().unwrap_or(""));
    let after = query.page_cursor.map(|c| cursor::read(&filter, &c)).transpose()?;
    let corpus_id = query.corpus_id;
    let mut list =
        api.service.store(move |store| store.instances(corpus_id.as_deref(), after.as_deref(), limit + 1)).await?;
    let next = page(&mut list, limit).map(|last| cursor::write(&filter, &last.new.connector_id));
    Ok(Json(list_of(list.iter().map(|i| show(&api, i)).collect(), next)))
}

pub(super) async fn get(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let (instance, counts) = api.service.store(move |store| Ok((store.instance(&id)?, store.counts(&id)?))).await?;
    let mut shown = show(&api, &instance);
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
    Path(id): Path<String>,
    Body(body): Body<Once>,
) -> Result<Json<Value>, ApiError> {
    // Disabling is for good, so any key means the same.
    once("disable", &body.idempotency_key, &Value::Null)?;
    let now = api.service.now_ms();
    let instance = api.service.store(move |store| store.disable(&id, now)).await?;
    Ok(Json(show(&api, &instance)))
}

pub(super) async fn run(
    State(api): State<Api>,
    Path(id): Path<String>,
    Body(body): Body<Once>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let once = once("runs", &body.idempotency_key, &json!({"connector_id": id}))?;
    let (lookup, connector) = (once.clone(), id.clone());
    let (used, instance) =
        api.service.store(move |store| Ok((store.used(&lookup)?, store.instance(&connector)?))).await?;
    if instance.disabled_at.is_some() {
        return Err(ApiError::conflict("connector_disabled", "The connector is disabled"));
    }
    let run_at = match used {
        // The time that the same request was given.
        Some(at) => at,
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
    limit: Option<u32>,
}

pub(super) async fn runs(
    State(api): State<Api>,
    Path(id): Path<String>,
    Parameters(query): Parameters<Runs>,
) -> Result<Json<Value>, ApiError> {
    let limit = limit(query.limit)?;
    let filter = format!("runs {id}");
    let before = query.page_cursor.map(|c| cursor::read(&filter, &c)).transpose()?;
    let mut list = api.service.store(move |store| store.runs(&id, before.as_deref(), limit + 1)).await?;
    let next = page(&mut list, limit).map(|last| cursor::write(&filter, &last.run_id));
    Ok(Json(list_of(list.iter().map(show_run).collect(), next)))
}

fn show_run(run: &Run) -> Value {
    let error =
        run.error.as_ref().map(|(class, code, message)| json!({"class": class, "code": code, "message": message}));
    json!({
        "run_id": run.run_id,
        "started_at": rfc3339(run.started_at),
        "ended_at": run.ended_at.map(rfc3339),
        "outcome": run.outcome,
        "error": error,
        "detail": run.detail,
        "http_status": run.figures.http_status,
        "final_url": run.figures.final_url,
        "requests": run.figures.requests,
        "wire_bytes": run.figures.wire_bytes,
        "pages": run.pages,
        "items_new": run.brought.new,
        "items_changed": run.brought.changed,
        "plugin_digest": run.plugin_digest,
    })
}
