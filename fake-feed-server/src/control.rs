//! The control endpoint: what a person or a script may tell a running server.
//!
//! `POST /_control/edit` `{path, find, replace}` edits a document; `POST /_control/route` changes the script of a path;
//! `GET /_control/requests` lists what was requested, with header fields.

use std::time::Duration;

use serde::Deserialize;
use wiremock::{Request, ResponseTemplate};

use crate::Shared;
use crate::route::{Auth, Coding, EtagMode, Redirect, Route};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    path: String,
    find: String,
    replace: String,
}

/// A change of a path's script; what is absent stays, `null` takes it away.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    path: String,
    body: Option<String>,
    content_type: Option<String>,
    etag: Option<EtagMode>,
    last_modified: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    status: Option<Option<u16>>,
    #[serde(default, deserialize_with = "present")]
    retry_after: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    redirect: Option<Option<Redirect>>,
    #[serde(default, deserialize_with = "present")]
    auth: Option<Option<Auth>>,
    #[serde(default, deserialize_with = "present")]
    coding: Option<Option<Coding>>,
    delay_ms: Option<u64>,
    short_by: Option<usize>,
}

/// Tells `null` from a member that is not there.
fn present<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

pub(crate) fn respond(shared: &Shared, command: &str, request: &Request) -> ResponseTemplate {
    match (request.method.as_str(), command) {
        ("GET", "requests") => ResponseTemplate::new(200).set_body_json(&shared.lock().requests),
        ("POST", "edit") => match request.body_json::<Edit>() {
            Ok(edit) => outcome(shared.edit(&edit.path, &edit.find, &edit.replace)),
            Err(e) => refusal(&e.to_string()),
        },
        ("POST", "route") => match request.body_json::<Change>() {
            Ok(change) => {
                if change.body.is_some() {
                    shared
                        .lock()
                        .routes
                        .entry(change.path.clone())
                        .or_insert_with(|| Route::new("", "application/xml"));
                }
                outcome(shared.change(&change.path.clone(), |route| apply(route, change)))
            }
            Err(e) => refusal(&e.to_string()),
        },
        _ => refusal("GET requests, POST edit or POST route"),
    }
}

fn apply(route: &mut Route, change: Change) {
    if let Some(body) = change.body {
        route.replace(body);
    }
    route.content_type = change.content_type.unwrap_or_else(|| std::mem::take(&mut route.content_type));
    route.etag = change.etag.unwrap_or(route.etag);
    route.last_modified = change.last_modified.unwrap_or(route.last_modified);
    route.status = change.status.unwrap_or(route.status);
    route.retry_after = change.retry_after.unwrap_or_else(|| route.retry_after.take());
    route.redirect = change.redirect.unwrap_or_else(|| route.redirect.take());
    route.auth = change.auth.unwrap_or_else(|| route.auth.take());
    route.coding = change.coding.unwrap_or(route.coding);
    route.delay = change.delay_ms.map_or(route.delay, Duration::from_millis);
    route.short_by = change.short_by.unwrap_or(route.short_by);
}

fn outcome(result: Result<(), crate::ServerError>) -> ResponseTemplate {
    match result {
        Ok(()) => ResponseTemplate::new(204),
        Err(e) => refusal(&e.to_string()),
    }
}

fn refusal(why: &str) -> ResponseTemplate {
    ResponseTemplate::new(400).set_body_raw(format!("{why}\n"), "text/plain")
}
