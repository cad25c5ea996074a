//! Probes for whoever watches the process: no key is needed, nothing is told.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::auth::{Allowed, ConnectorsRead};
use super::{Api, ApiError};
use crate::store::StoreError;

/// The process answers.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// The store answers and the scheduler looks at its work.
pub(super) async fn ready(State(api): State<Api>) -> Result<Json<Value>, ApiError> {
    let now = api.service.now_ms();
    api.service.store(move |store| store.next_due(now)).await?;
    if api.service.is_damaged() {
        return Err(StoreError::Damaged("found since the start".to_owned()).into());
    }
    if !api.service.is_scheduling() {
        return Err(ApiError::unavailable("connectors_unavailable", "The scheduler is stuck", true));
    }
    Ok(Json(json!({"status": "ok"})))
}

/// What the service counts. The figures are of all corpora together, so a key that is bound to some does not see them.
pub(super) async fn metrics(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsRead>,
) -> Result<impl IntoResponse, ApiError> {
    if who.corpora.is_some() {
        return Err(ApiError::forbidden("connectors:read for all corpora"));
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], api.service.metrics().text()))
}
