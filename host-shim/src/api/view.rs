//! Connector instances and their runs as callers see them.
//!
//! Secrets are never part of it; what describes a network behind the host is for administrators alone.

use serde_json::{Value, json};

use super::Api;
use crate::corpus::access::{Principal, Scope};
use crate::corpus::clock::rfc3339;
use crate::corpus::schedule::NEVER;
use crate::store::model::{Instance, Run};

/// An instance.
pub(super) fn show(api: &Api, who: &Principal, instance: &Instance) -> Value {
    let new = &instance.new;
    let at = |ms: Option<i64>| ms.map(rfc3339);
    let mut shown = json!({
        "connector_id": new.connector_id,
        "corpus_id": new.corpus_id,
        "source_namespace": new.source_namespace,
        "name": new.name,
        "labels": new.labels,
        "kind": new.kind,
        "enabled": instance.disabled_at.is_none(),
        "created_at": rfc3339(instance.created_at),
        "config": new.config,
        "schedule": {"interval_seconds": new.interval_seconds},
        "health_policy": {
            "silent_after_seconds": new.silent_after_seconds,
            "credential_warning_seconds": new.credential_warning_seconds,
        },
        "next_poll": next_poll(instance),
        "last_run_at": at(instance.last_run_at),
        "health": health(api, who, instance),
    });
    if let Some(object) = shown.as_object_mut() {
        if let Some(credential) = instance.credential {
            let mut known = json!({
                "version": credential.version, "deposited_at": rfc3339(credential.deposited_at),
            });
            insert(&mut known, "expires_at", at(credential.expires_at));
            object.insert("credential".to_owned(), known);
        }
        for (name, when) in [("disabled_at", instance.disabled_at), ("paused_at", instance.paused_at)] {
            if let Some(when) = when {
                object.insert(name.to_owned(), rfc3339(when).into());
            }
        }
    }
    shown
}

/// Adds a member where there is a value.
fn insert(object: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(object), Some(value)) = (object.as_object_mut(), value) {
        object.insert(name.to_owned(), value.into());
    }
}

/// When it is polled next, and why then; `null` where it is not: disabled, paused, or gone by its publisher's word.
fn next_poll(instance: &Instance) -> Value {
    if instance.disabled_at.is_some() || instance.paused_at.is_some() || instance.next_run_at >= NEVER {
        return Value::Null;
    }
    json!({"at": rfc3339(instance.next_run_at), "because": instance.next_run_because})
}

/// Health with everything that an operator asks next.
fn health(api: &Api, who: &Principal, instance: &Instance) -> Value {
    let at = |ms: Option<i64>| ms.map(rfc3339);
    let now = api.service.now_ms();
    let (day, requests) = instance.reads;
    let is_today = day == now.div_euclid(24 * 3_600 * 1_000);
    let mut health = json!({
        "state": api.service.health(instance).name(),
        "evaluated_at": rfc3339(now),
        "last_success_at": at(instance.last_success_at),
        "last_item_at": at(instance.last_item_at),
        "usage": {"requests_today": if is_today { requests } else { 0 }},
        "diagnostics": instance.diagnostics,
        // What the source says of its pace.
        "declared_pace": instance.hints,
    });
    if let Some(error) = &instance.last_error {
        let mut shown = json!({
            "class": error.class, "code": error.code, "message": error.message, "at": rfc3339(error.at),
            "failures": instance.failures,
        });
        let detail = instance.error_detail.clone().filter(|_| who.may(Scope::ConnectorsAdmin));
        insert(&mut shown, "detail", detail);
        insert(&mut health, "last_error", Some(shown));
    }
    if let Some((since, host)) = &instance.throttled {
        insert(&mut health, "throttled", Some(json!({"since": rfc3339(*since), "by": host})));
    }
    if let Some(moved) = &instance.moved {
        let shown = json!({"to": moved.to, "since": rfc3339(moved.since), "days": moved.days});
        insert(&mut health, "moved", Some(shown));
    }
    health
}

/// A run as callers see it.
pub(super) fn show_run(who: &Principal, run: &Run) -> Value {
    let error =
        run.error.as_ref().map(|(class, code, message)| json!({"class": class, "code": code, "message": message}));
    json!({
        "run_id": run.run_id,
        "started_at": rfc3339(run.started_at),
        "ended_at": run.ended_at.map(rfc3339),
        "outcome": run.outcome,
        "error": error,
        "detail": who.may(Scope::ConnectorsAdmin).then_some(run.detail.as_deref()).flatten(),
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
