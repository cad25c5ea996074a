//! Probes for whoever watches the process: no key is needed, nothing is told.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::{Api, ApiError};

/// The process answers.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// The store answers and the scheduler looks at its work.
pub(super) async fn ready(State(api): State<Api>) -> Result<Json<Value>, ApiError> {
    let now = api.service.now_ms();
    api.service.store(move |store| store.next_due(now)).await?;
    if !api.service.is_scheduling() {
        return Err(ApiError::unavailable("connectors_unavailable", "The scheduler is stuck", true));
    }
    Ok(Json(json!({"status": "ok"})))
}
