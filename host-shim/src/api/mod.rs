//! The REST API: JSON over HTTP for operators and programs.
//!
//! Owns routes, keys, request bodies and answers; the rules are the corpus service's. One file for each resource. Every
//! error is `{code, message, retryable, field?, request_id}`.

mod auth;
mod body;
mod connectors;
mod corpora;
mod cursor;
mod error;
mod kinds;
mod probes;
mod records;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{get, post};

use crate::corpus::Service;

pub use auth::{Keys, new_key};
pub use error::ApiError;

/// Bytes of a request body: a checkpoint of 128 KiB, escaped, and room for a config.
pub const MAX_BODY_BYTES: usize = 512 * 1_024;

/// Entries of one page of a list.
pub const MAX_LIMIT: u32 = 100;

/// What every handler shares.
#[derive(Clone)]
pub struct Api {
    service: Arc<Service>,
    keys: Keys,
}

impl Api {
    /// The API over a service, open to the holders of these keys.
    #[must_use]
    pub fn new(service: Arc<Service>, keys: Keys) -> Self {
        Self { service, keys }
    }

    /// The routes.
    pub fn router(self) -> Router {
        let guarded = Router::new()
            .route("/v0/corpora", get(corpora::list).post(corpora::create))
            .route("/v0/connectors", get(connectors::list).post(connectors::create))
            .route("/v0/connectors/{id}", get(connectors::get))
            .route("/v0/connectors/{id}/disable", post(connectors::disable))
            .route("/v0/connectors/{id}/runs", get(connectors::runs).post(connectors::run))
            .route("/v0/connector-kinds", get(kinds::list))
            .route("/v0/records", get(records::list))
            .route("/v0/records/{id}", get(records::get))
            .route("/v0/records/{id}/versions", get(records::versions))
            .route("/v0/records/{id}/versions/{version}", get(records::version))
            .route_layer(middleware::from_fn_with_state(self.clone(), auth::require));
        Router::new()
            .merge(guarded)
            .route("/healthz", get(probes::alive))
            .route("/readyz", get(probes::ready))
            .fallback(error::no_route)
            .method_not_allowed_fallback(error::no_method)
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(middleware::from_fn(error::finish))
            .with_state(self)
    }
}
