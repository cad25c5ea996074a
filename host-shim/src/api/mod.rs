//! The REST API: JSON over HTTP for operators and programs.
//!
//! Owns routes, keys, request bodies and answers; the rules are the corpus service's. One file for each resource. Every
//! error is `{code, message, retryable, field?, request_id}`.

mod auth;
mod body;
mod changes;
mod connectors;
mod corpora;
mod create;
mod cursor;
mod error;
mod kinds;
mod openapi;
mod opml;
mod probes;
mod records;
mod reference;
mod view;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::routing::{MethodRouter, get, post, put};
use axum::{Router, middleware};
use tokio::sync::Semaphore;

use crate::corpus::Service;
use auth::Failures;

pub use auth::new_key;
pub use error::ApiError;
pub use openapi::document;

/// Bytes of a request body: a checkpoint of 128 KiB, escaped, and room for a config.
pub const MAX_BODY_BYTES: usize = 512 * 1_024;

/// Entries of one page of a list.
pub const MAX_LIMIT: u32 = 100;

/// What every handler shares.
#[derive(Clone)]
pub struct Api {
    service: Arc<Service>,
    failures: Arc<Failures>,
    streams: Arc<Semaphore>,
}

impl Api {
    /// The API over a service.
    #[must_use]
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, failures: Arc::default(), streams: Arc::new(Semaphore::new(changes::MAX_STREAMS)) }
    }

    /// The routes that need a key, by path.
    fn guarded() -> Vec<(&'static str, MethodRouter<Self>)> {
        vec![
            ("/v0/corpora", get(corpora::list).post(corpora::create)),
            ("/v0/connectors", get(connectors::list).post(create::create)),
            ("/v0/connectors/{id}", get(connectors::get)),
            ("/v0/connectors/{id}/credential", put(connectors::credential)),
            ("/v0/connectors/{id}/disable", post(connectors::disable)),
            ("/v0/connectors/{id}/pause", post(connectors::pause)),
            ("/v0/connectors/{id}/resume", post(connectors::resume)),
            ("/v0/connectors/{id}/runs", get(connectors::runs).post(connectors::run)),
            ("/v0/connectors/{id}/schedule", put(connectors::schedule)),
            ("/v0/connector-kinds", get(kinds::list)),
            ("/v0/records", get(records::list)),
            ("/v0/records/{id}", get(records::get)),
            ("/v0/records/{id}/versions", get(records::versions)),
            ("/v0/records/{id}/versions/{version}", get(records::version)),
            ("/v0/changes", get(changes::list)),
            ("/v0/changes/stream", get(changes::stream)),
            ("/v0/opml", get(opml::export).post(opml::import).layer(DefaultBodyLimit::max(crate::opml::MAX_BYTES + 1))),
            ("/metrics", get(probes::metrics)),
        ]
    }

    /// The routes that anybody may call: they tell nothing of what the service keeps.
    fn open() -> Vec<(&'static str, MethodRouter<Self>)> {
        vec![
            ("/healthz", get(probes::alive)),
            ("/readyz", get(probes::ready)),
            ("/openapi.json", get(openapi::serve)),
            ("/docs", get(reference::serve)),
        ]
    }

    /// The paths of all routes.
    #[must_use]
    pub fn paths() -> Vec<&'static str> {
        Self::guarded().into_iter().chain(Self::open()).map(|(path, _)| path).collect()
    }

    /// The routes, open to holders of keys. Serve it with the address of the peer.
    pub fn router(self) -> Router {
        let guarded = routed(Self::guarded());
        let guarded = guarded.route_layer(middleware::from_fn_with_state(self.clone(), auth::require));
        self.finish(guarded)
    }

    /// The same routes for the owner of the data folder, without a key; nothing may listen on them.
    pub fn operator_router(self) -> Router {
        let guarded = routed(Self::guarded()).route_layer(middleware::from_fn(auth::as_operator));
        self.finish(guarded)
    }

    fn finish(self, guarded: Router<Self>) -> Router {
        guarded
            .merge(routed(Self::open()))
            .fallback(error::no_route)
            .method_not_allowed_fallback(error::no_method)
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(middleware::from_fn(error::finish))
            .with_state(self)
    }
}

fn routed(routes: Vec<(&str, MethodRouter<Api>)>) -> Router<Api> {
    routes.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}
