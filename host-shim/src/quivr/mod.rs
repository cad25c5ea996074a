//! Quivr's HTTP plugin protocol in front of a component, so that it can be pinned in place of Quivr's own plugin.
//!
//! Owns the routes and the envelope of errors. The requests and answers are those of plugin API 0.3: only what that
//! contract knows goes out (the extension of the plugin's own id, no provenance, no window). A credential stays in the
//! host, as always. Must not keep anything between two calls.

mod message;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::egress::client::{Client, Rules};
use crate::egress::credential::Credential;
use crate::engine::answer::{Class, Failure};
use crate::engine::error::CallError;
use crate::engine::pin::Digest;
use crate::engine::plugin::{Invocation, Plugin};
use crate::runner::network::Network;
use message::{CheckRequest, FetchRequest, Refused, fetch_response};

/// The manifest, byte for byte: discovery reports its digest.
pub const MANIFEST: &str = include_str!("../../../plugin/quivr-plugin.yaml");

/// Version of the plugin in the manifest.
const VERSION: &str = "1.0.0";

/// Version of the plugin API that is spoken.
const PLUGIN_API: &str = "0.3.1";

/// Bytes of a request: a checkpoint of 128 KiB, escaped, a config and a credential.
const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// What the routes share.
#[derive(Debug, Clone)]
pub struct QuivrPlugin {
    plugin: Plugin,
    client: Client,
    discovery: Arc<Value>,
}

impl QuivrPlugin {
    /// The protocol in front of a component.
    #[must_use]
    pub fn new(plugin: Plugin, client: Client) -> Self {
        let kinds: serde_json::Map<String, Value> = plugin
            .descriptor()
            .kinds
            .iter()
            .map(|k| {
                let shown = json!({
                    "credential_required": k.credential_required,
                    "default_interval_seconds": k.default_interval_seconds,
                    "config_schema": k.config_schema,
                    "credential_schema": k.credential_schema,
                });
                (k.name.clone(), shown)
            })
            .collect();
        let limits = plugin.descriptor().limits;
        let discovery = json!({
            "id": plugin.descriptor().id,
            "version": VERSION,
            "plugin_api": PLUGIN_API,
            "manifest_digest": Digest::of(MANIFEST.as_bytes()).to_string(),
            "contributions": {"connector": {
                "kinds": kinds,
                "timeout_ms": limits.timeout_ms,
                "limits": {
                    "max_items": limits.max_items,
                    "max_response_bytes": limits.max_page_bytes,
                    "max_checkpoint_bytes": limits.max_checkpoint_bytes,
                },
            }},
        });
        Self { plugin, client, discovery: Arc::new(discovery) }
    }

    /// The routes.
    pub fn router(self) -> Router {
        Router::new()
            .route("/v0/discovery", get(discovery))
            .route("/v0/health", get(|| async { Json(json!({"status": "ok"})) }))
            .route("/v0/contributions/connector/fetch", post(fetch))
            .route("/v0/contributions/connector/check_credential", post(check_credential))
            .fallback(|| async { terminal(StatusCode::NOT_FOUND, "not_found", "There is no such route") })
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(self)
    }

    /// The component, its call and the network of one request.
    fn prepare(
        &self,
        request: &message::Common,
        invocation: Invocation,
    ) -> Result<(Plugin, Invocation, Network), Box<Response>> {
        let Some(kind) = self.plugin.descriptor().kind(&request.kind) else {
            let refused = terminal(StatusCode::BAD_REQUEST, "invalid_request", "The kind is not one of this plugin");
            return Err(Box::new(refused));
        };
        let configuration = request.configuration.to_string();
        // The protocol knows the one member; whatever else is in there is the component's to refuse.
        let open = request.configuration.get("allow_private_addresses") == Some(&Value::Bool(true));
        let rules = if open { Rules::open() } else { Rules::default() };
        let credential = match &request.credential {
            None => None,
            Some(json) => Some(Credential::new(json, &kind.credential_fields).map_err(|e| {
                let message = format!("The credential cannot be used: {e}");
                Box::new(envelope(Class::Access, "credential_unreadable", &message, None))
            })?),
        };
        let invocation = Invocation { has_credential: credential.is_some(), ..invocation };
        let network = Network::new(self.client.clone(), rules, credential, None);
        Ok((self.plugin.with_configuration(configuration), invocation, network))
    }
}

async fn discovery(State(quivr): State<QuivrPlugin>) -> Json<Value> {
    Json((*quivr.discovery).clone())
}

async fn fetch(
    State(quivr): State<QuivrPlugin>,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    let request = match read(body).and_then(|b| FetchRequest::read(&b)) {
        Ok(request) => request,
        Err(refused) => return terminal(refused.status, "invalid_request", &refused.message),
    };
    let (plugin, invocation, network) = match quivr.prepare(&request.common, request.invocation()) {
        Ok(prepared) => prepared,
        Err(response) => return *response,
    };
    match plugin.fetch(&invocation, Arc::new(network)).await.0 {
        Ok(Ok(page)) => {
            let text = fetch_response(&page, &quivr.plugin.descriptor().id, request.checkpoint.as_ref());
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Ok(Err(failure)) => of_failure(&failure),
        Err(error) => of_component(&error),
    }
}

async fn check_credential(
    State(quivr): State<QuivrPlugin>,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    let request = match read(body).and_then(|b| CheckRequest::read(&b)) {
        Ok(request) => request,
        Err(refused) => return terminal(refused.status, "invalid_request", &refused.message),
    };
    let (plugin, invocation, network) = match quivr.prepare(&request.common, request.invocation()) {
        Ok(prepared) => prepared,
        Err(response) => return *response,
    };
    match plugin.check_credential(&invocation, Arc::new(network)).await {
        Ok(Ok(expires_at)) => {
            let mut shown = json!({"status": "ok"});
            if let (Some(shown), Some(at)) = (shown.as_object_mut(), expires_at) {
                shown.insert("expires_at".to_owned(), at.into());
            }
            Json(shown).into_response()
        }
        Ok(Err(failure)) => of_failure(&failure),
        Err(error) => of_component(&error),
    }
}

fn read(body: Result<Bytes, axum::extract::rejection::BytesRejection>) -> Result<Bytes, Refused> {
    body.map_err(|_| Refused {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        message: format!("The request is larger than {MAX_REQUEST_BYTES} bytes"),
    })
}

/// An error that another try does not change.
fn terminal(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({"code": code, "message": message, "retryable": false}))).into_response()
}

/// The envelope of a classified error, with the status that Quivr's own SDK uses.
fn envelope(class: Class, code: &str, message: &str, retry_after_seconds: Option<u32>) -> Response {
    let status = match class {
        Class::Access => StatusCode::FORBIDDEN,
        Class::Transient => StatusCode::SERVICE_UNAVAILABLE,
        Class::Source => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let mut shown = json!({
        "code": code, "message": message, "retryable": class == Class::Transient, "error_class": class.name(),
    });
    if let (Some(shown), Some(seconds)) = (shown.as_object_mut(), retry_after_seconds) {
        shown.insert("retry_after_seconds".to_owned(), seconds.into());
    }
    (status, Json(shown)).into_response()
}

fn of_failure(failure: &Failure) -> Response {
    envelope(failure.class, &failure.code, &failure.message, failure.retry_after_seconds)
}

/// A component that fails on a document fails the run; the next document may be another one.
fn of_component(error: &CallError) -> Response {
    envelope(Class::Source, error.code(), &error.to_string(), None)
}
