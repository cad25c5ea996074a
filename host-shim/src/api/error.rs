//! Errors of the API: a status, a stable code, a sentence for the caller, and a detail for the log alone.

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::auth::KeyId;
use crate::engine::pin::Digest;
use crate::ids;
use crate::store::StoreError;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    retryable: bool,
    field: Option<String>,
    detail: Option<String>,
}

#[derive(Serialize)]
struct Shown<'e> {
    code: &'e str,
    message: &'e str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'e str>,
    request_id: &'e str,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retryable: false, field: None, detail: None }
    }

    /// 400.
    #[must_use]
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed_json", message)
    }

    /// 401.
    #[must_use]
    pub fn unauthenticated() -> Self {
        let message = "Send an API key as Authorization: Bearer KEY; the first start of the service shows one";
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
    }

    /// 403, with the scope that is missing.
    #[must_use]
    pub fn forbidden(scope: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", format!("This key lacks the scope {scope}"))
    }

    /// 429.
    #[must_use]
    pub fn too_many_failures() -> Self {
        let message = "Too many wrong keys came from this address; wait and send a right one";
        Self { retryable: true, ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message) }
    }

    /// 429 for streams.
    #[must_use]
    pub fn too_many_streams() -> Self {
        let message = "As many streams of changes are open as this service serves; close one or read by cursor";
        Self { retryable: true, ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message) }
    }

    /// 410.
    #[must_use]
    pub fn cursor_expired() -> Self {
        let message = "What came behind the cursor is no longer kept; read the records, then changes without a cursor";
        Self::new(StatusCode::GONE, "cursor_expired", message)
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The sentence for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// 404.
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("{what} does not exist"))
    }

    /// 409.
    #[must_use]
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 413.
    #[must_use]
    pub fn too_large(bound: usize) -> Self {
        let message = format!("The request body is larger than {bound} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
    }

    /// 415.
    #[must_use]
    pub fn media_type() -> Self {
        let message = "Send the body as Content-Type: application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 422, with the JSON pointer or the parameter that is wrong.
    #[must_use]
    pub fn invalid(code: &'static str, field: Option<String>, message: impl Into<String>) -> Self {
        Self { field, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message) }
    }

    /// 503.
    #[must_use]
    pub fn unavailable(code: &'static str, message: &str, retryable: bool) -> Self {
        Self { retryable, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message) }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(what) => Self::not_found(what),
            StoreError::NamespaceInUse => Self::conflict("source_namespace_in_use", error.to_string()),
            StoreError::NameInUse => Self::conflict("name_in_use", error.to_string()),
            StoreError::IdempotencyConflict => Self::conflict("idempotency_conflict", error.to_string()),
            StoreError::Damaged(_) => Self {
                detail: Some(error.to_string()),
                ..Self::unavailable("storage_damaged", "The store is damaged; its operator restores a backup", false)
            },
            StoreError::LostClaim | StoreError::NewerSchema { .. } | StoreError::Taken(_) | StoreError::Engine(_) => {
                Self {
                    detail: Some(error.to_string()),
                    ..Self::unavailable("storage_unavailable", "The store does not answer; try again", true)
                }
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // `finish` writes the body, since it knows the request's identifier.
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// What a route that does not exist answers.
pub(super) async fn no_route() -> ApiError {
    ApiError::not_found("this path")
}

/// What a route answers to another method.
pub(super) async fn no_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This path does not take this method")
}

/// Gives each request an identifier, logs it, writes errors and the audit line of a write.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    let request_id = ids::new("req", jiff::Timestamp::now().as_millisecond());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    let status = response.status();
    let mut code = None;
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        if let Some(detail) = &error.detail {
            tracing::error!(request_id, detail, "a request failed inside");
        }
        code = Some(error.code);
        let shown = Shown {
            code: error.code,
            message: &error.message,
            retryable: error.retryable,
            field: error.field.as_deref(),
            request_id: &request_id,
        };
        let (old, _) = std::mem::replace(&mut response, (status, Json(shown)).into_response()).into_parts();
        for (name, value) in old.headers.iter().filter(|(n, _)| **n == header::ALLOW || **n == header::RETRY_AFTER) {
            response.headers_mut().insert(name, value.clone());
        }
        if let Some(key) = old.extensions.get::<KeyId>() {
            response.extensions_mut().insert(key.clone());
        }
    }
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    // Paths have identifiers only; addresses of feeds travel in bodies.
    let key = response.extensions().get::<KeyId>().map(|k| k.0.as_str());
    if method.is_safe() {
        tracing::debug!(request_id, %method, path, status = status.as_u16(), "request");
    } else {
        tracing::info!(target: "audit", request_id, key, %method, path, status = status.as_u16(), code, "write");
    }
    response
}

/// JSON with an entity tag; 304 where the caller has it already (RFC 9110, section 13.1.2).
pub(super) fn tagged(headers: &HeaderMap, value: &serde_json::Value) -> Response {
    let body = value.to_string();
    let digest: String = Digest::of(body.as_bytes()).hex().chars().take(32).collect();
    let tag = format!("\"{digest}\"");
    let known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .any(|v| v.trim() == "*" || v.trim().trim_start_matches("W/") == tag);
    let tag = [(header::ETAG, tag), (header::CACHE_CONTROL, "private, no-cache".to_owned())];
    if known {
        return (StatusCode::NOT_MODIFIED, tag).into_response();
    }
    (tag, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
