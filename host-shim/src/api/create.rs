//! A connector instance as it is asked for, checked: what may be created and what may be deposited.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::auth::{Allowed, ConnectorsWrite};
use super::body::{Body, once, whole, whole_or_none};
use super::connectors::show;
use super::corpora::{check_name, check_visible};
use super::{Api, ApiError};
use crate::corpus::address::MAX_NAMESPACE_BYTES;
use crate::corpus::pins::Pinned;
use crate::corpus::vault::{MAX_SECRET_BYTES, Vault};
use crate::egress::credential::Credential;
use crate::egress::url::{for_log, judge, normalise};
use crate::engine::descriptor::Kind;
use crate::engine::pin::Digest;
use crate::ids;
use crate::store::StoreError;
use crate::store::model::{Deposit, NewInstance};

/// The longest interval: a day.
pub(super) const MAX_INTERVAL_SECONDS: u32 = 86_400;
/// Seconds after which a feed without new items counts as silent, where nothing is said: a day.
const SILENT_AFTER_SECONDS: u32 = 86_400;
/// Seconds before a credential expires in which it is warned of, where nothing is said: two weeks.
const CREDENTIAL_WARNING_SECONDS: u32 = 1_209_600;
/// The longest time of a health policy: ten years.
pub(super) const MAX_POLICY_SECONDS: u32 = 315_360_000;
/// Labels of an instance.
pub(super) const MAX_LABELS: usize = 32;

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
    credential: Option<CredentialBody>,
}

impl Create {
    /// What a feed of a subscription list asks for; such a list is not made under an idempotency key.
    pub(super) fn of_feed(
        corpus_id: &str,
        source_namespace: String,
        kind: &str,
        config: Map<String, Value>,
        name: &str,
        labels: Map<String, Value>,
        schedule: Option<Schedule>,
    ) -> Self {
        Self {
            idempotency_key: String::new(),
            corpus_id: corpus_id.to_owned(),
            source_namespace,
            kind: kind.to_owned(),
            config,
            schedule,
            health_policy: None,
            name: Some(name.to_owned()),
            labels: Some(labels),
            checkpoint: None,
            credential: None,
        }
    }
}

/// A credential as it is deposited. It has no `Debug`, so that it is printed nowhere.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CredentialBody {
    pub(super) secret: Value,
    pub(super) expires_at: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
pub(super) struct Schedule {
    #[serde(deserialize_with = "whole")]
    pub(super) interval_seconds: u32,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct HealthPolicy {
    #[serde(default, deserialize_with = "whole_or_none")]
    silent_after_seconds: Option<u32>,
    #[serde(default, deserialize_with = "whole_or_none")]
    credential_warning_seconds: Option<u32>,
}

pub(super) async fn create(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsWrite>,
    Body(mut body): Body<Create>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let given = body.credential.take();
    let fingerprint = match &given {
        None => None,
        Some(credential) => Some(fingerprint(vault(&api)?, credential)),
    };
    let canonical = json!({
        "corpus_id": body.corpus_id, "source_namespace": body.source_namespace, "kind": body.kind,
        "config": body.config, "interval_seconds": body.schedule.map(|s| s.interval_seconds),
        "silent_after_seconds": body.health_policy.map(|p| p.silent_after_seconds),
        "credential_warning_seconds": body.health_policy.map(|p| p.credential_warning_seconds),
        "name": body.name, "labels": body.labels, "checkpoint": body.checkpoint, "credential": fingerprint,
    });
    let once = once("connectors", &body.idempotency_key, &canonical)?;
    check_visible(&api, &who, Some(&body.corpus_id)).await?;
    let is_named = body.name.is_some();
    let mut new = check(&api, body)?;
    if let Some(given) = given {
        new.credential = Some(deposit(&api, &new.kind, &new.connector_id, &given, "/credential")?);
    } else if kind(&api, &new.kind)?.credential_required {
        let message = "This kind needs a credential; its schema stands in GET /v0/connector-kinds";
        return Err(ApiError::invalid("invalid_credential", Some("/credential".to_owned()), message));
    }
    let now = api.service.now_ms();
    let created = api
        .service
        .store(move |store| match store.create_instance(new.clone(), &once, now) {
            // Two feeds may differ in their query alone, which is no part of a default name.
            Err(StoreError::NameInUse) if !is_named => {
                store.create_instance(NewInstance { name: other_name(&new), ..new }, &once, now)
            }
            other => other,
        })
        .await?;
    api.service.changed();
    api.service.wake();
    Ok((StatusCode::CREATED, Json(show(&api, &who, &created.value))))
}

/// A name for an instance whose default name is taken.
pub(super) fn other_name(new: &NewInstance) -> String {
    let room = super::corpora::MAX_NAME_CHARS.saturating_sub(new.source_namespace.chars().count() + 3);
    let name: String = new.name.chars().take(room).collect();
    format!("{name} ({})", new.source_namespace).chars().take(super::corpora::MAX_NAME_CHARS).collect()
}

/// What seals credentials.
pub(super) fn vault(api: &Api) -> Result<&Vault, ApiError> {
    api.service.vault().ok_or_else(|| {
        let message = "This service has no key to keep credentials with; its operator sets credential_key_file";
        ApiError::unavailable("credentials_unavailable", message, false)
    })
}

/// What tells one deposit from another in the memory of idempotency keys, without the secret.
pub(super) fn fingerprint(vault: &Vault, body: &CredentialBody) -> String {
    let text = json!({"secret": body.secret, "expires_at": body.expires_at}).to_string();
    Digest::from_bytes(vault.fingerprint(text.as_bytes())).hex()
}

/// A kind that a pinned component serves.
fn kind<'a>(api: &'a Api, name: &str) -> Result<&'a Kind, ApiError> {
    pinned(api, name).map(|(_, kind)| kind)
}

/// The same, with the component.
fn pinned<'a>(api: &'a Api, name: &str) -> Result<(&'a Pinned, &'a Kind), ApiError> {
    let pinned: Option<&Pinned> = api.service.pins().get(name).map(|p| &**p);
    pinned.and_then(|p| Some((p, p.plugin.descriptor().kind(name)?))).ok_or_else(|| {
        let message = "No pinned component serves this kind; GET /v0/connector-kinds lists those that are";
        ApiError::invalid("unsupported_connector_kind", Some("/kind".to_owned()), message)
    })
}

/// A deposit, held to the schema of its kind and sealed. No error quotes a value.
pub(super) fn deposit(
    api: &Api,
    kind_name: &str,
    connector_id: &str,
    body: &CredentialBody,
    at: &str,
) -> Result<Deposit, ApiError> {
    let vault = vault(api)?;
    let invalid = |field: String, message: String| ApiError::invalid("invalid_credential", Some(field), message);
    let kind = kind(api, kind_name)?;
    let Some(schema) = &kind.credential_schema else {
        return Err(invalid(at.to_owned(), "Sources of this kind take no credential".to_owned()));
    };
    let validator = jsonschema::validator_for(schema).map_err(|_| {
        ApiError::unavailable("connectors_unavailable", "The component's credential schema is no JSON Schema", false)
    })?;
    if let Some(error) = validator.iter_errors(&body.secret).next() {
        let field = format!("{at}/secret{}", error.instance_path());
        // Even a masked message may name members that were sent.
        return Err(invalid(field, "The secret does not fit the credential schema of the kind".to_owned()));
    }
    let text = body.secret.to_string();
    if text.len() > MAX_SECRET_BYTES {
        return Err(invalid(format!("{at}/secret"), format!("The secret is longer than {MAX_SECRET_BYTES} bytes")));
    }
    Credential::new(&text, &kind.credential_fields).map_err(|e| invalid(format!("{at}/secret"), e.to_string()))?;
    let expires = format!("{at}/expires_at");
    let expires_at = match body.expires_at.as_deref().map(str::parse::<jiff::Timestamp>) {
        None => None,
        Some(Ok(at)) if at.as_millisecond() > api.service.now_ms() => Some(at.as_millisecond()),
        Some(Ok(_)) => return Err(invalid(expires, "expires_at has passed already".to_owned())),
        Some(Err(_)) => return Err(invalid(expires, "expires_at is not an RFC 3339 instant".to_owned())),
    };
    let sealed = vault.seal(connector_id, text.as_bytes()).map_err(|_| {
        ApiError::unavailable("credentials_unavailable", "The secret cannot be sealed now; try again", true)
    })?;
    Ok(Deposit { sealed, expires_at })
}

pub(super) fn check(api: &Api, body: Create) -> Result<NewInstance, ApiError> {
    let field = |name: &str| Some(format!("/{name}"));
    let namespace = &body.source_namespace;
    let namespace_ok = (1..=MAX_NAMESPACE_BYTES).contains(&namespace.len()) && !namespace.chars().any(char::is_control);
    if !namespace_ok {
        let message = "source_namespace must be 1 to 200 bytes without control characters";
        return Err(ApiError::invalid("invalid_schema", field("source_namespace"), message));
    }
    let (pinned, kind) = pinned(api, &body.kind)?;
    let config = config(body.config, &kind.config_schema, pinned)?;
    let floor = api.service.settings().min_interval_seconds;
    let interval_seconds = match body.schedule {
        Some(schedule) => check_interval(api, schedule.interval_seconds, "/schedule/interval_seconds")?,
        None => kind.default_interval_seconds.max(floor),
    };
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
        credential: None,
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

/// An interval between the floor and a day.
pub(super) fn check_interval(api: &Api, seconds: u32, field: &str) -> Result<u32, ApiError> {
    let floor = api.service.settings().min_interval_seconds;
    if (floor..=MAX_INTERVAL_SECONDS).contains(&seconds) {
        return Ok(seconds);
    }
    let code = if seconds == 0 { "invalid_schema" } else { "invalid_interval" };
    let message = format!("interval_seconds must be {floor} to {MAX_INTERVAL_SECONDS}");
    Err(ApiError::invalid(code, Some(field.to_owned()), message))
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
