//! The kinds that pinned components serve.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::Api;
use super::auth::{Allowed, ConnectorsRead};
use crate::corpus::access::Scope;

pub(super) async fn list(State(api): State<Api>, Allowed(who, _): Allowed<ConnectorsRead>) -> Json<Value> {
    // What is open beyond public addresses describes a private network.
    let sees_egress = who.may(Scope::ConnectorsAdmin);
    let items: Vec<Value> = api
        .service
        .pins()
        .iter()
        .filter_map(|(name, pinned)| {
            let descriptor = pinned.plugin.descriptor();
            let kind = descriptor.kind(name)?;
            let credential = match (&kind.credential_schema, kind.credential_required) {
                (None, _) => "none",
                (Some(_), false) => "optional",
                (Some(_), true) => "required",
            };
            Some(json!({
                "kind": kind.name,
                "description": kind.description,
                "credential": credential,
                "default_interval_seconds": kind.default_interval_seconds,
                "config_schema": kind.config_schema,
                "credential_schema": kind.credential_schema,
                "plugin": {
                    "id": descriptor.id, "version": descriptor.version, "digest": pinned.plugin.digest().to_string(),
                },
                "egress": sees_egress.then_some(&pinned.rules),
            }))
        })
        .collect();
    Json(json!({
        "credential_deposits": api.service.vault().is_some(),
        "min_interval_seconds": api.service.settings().min_interval_seconds,
        "items": items,
    }))
}
