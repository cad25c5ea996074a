//! The shapes that requests and answers have, as JSON Schema (2020-12).

use serde_json::{Value, json};

use crate::api::corpora::MAX_NAME_CHARS;
use crate::api::create::{MAX_INTERVAL_SECONDS, MAX_LABELS, MAX_POLICY_SECONDS};
use crate::corpus::address::MAX_NAMESPACE_BYTES;
use crate::corpus::schedule::BECAUSE;

/// A reference to a shape.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn instant() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn truth() -> Value {
    json!({"type": "boolean"})
}

/// The same, or `null`.
fn nullable(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// An object whose members are all there, but those that end in `?`.
fn object(members: &[(&str, Value)]) -> Value {
    let name = |member: &str| member.trim_end_matches('?').to_owned();
    let required: Vec<String> = members.iter().filter(|(n, _)| !n.ends_with('?')).map(|(n, _)| name(n)).collect();
    let properties: serde_json::Map<String, Value> = members.iter().map(|(n, s)| (name(n), s.clone())).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

/// The same for what is sent: nothing else is taken.
fn request(members: &[(&str, Value)]) -> Value {
    let mut schema = object(members);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    schema
}

fn list(name: &str) -> Value {
    json!({"type": "array", "items": reference(name)})
}

fn page(name: &str) -> Value {
    object(&[("items", list(name)), ("next_page_cursor?", text())])
}

/// All of them, by name.
pub(super) fn all() -> Value {
    let mut all = serde_json::Map::new();
    let groups = [general(), connector(), health(), content()];
    all.extend(groups.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema)));
    all.into()
}

type Named = Vec<(&'static str, Value)>;

fn name() -> Value {
    let pattern =
        "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$";
    json!({"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": pattern,
        "description": "One line, not blank."})
}

/// Every reason of the schedule.
fn because() -> Value {
    json!({"type": "string", "enum": BECAUSE, "description": "What decided: the interval, what the source declares, \
        a wait that it or its host asked for, failures, a request, or the host itself."})
}

fn idempotency_key() -> Value {
    json!({"type": "string", "pattern": "^(?!connector:)[!-~]{1,128}$"})
}

fn general() -> Named {
    vec![
        (
            "Error",
            object(&[
                ("code", json!({"type": "string", "description": "Stable; programs go by it."})),
                ("message", json!({"type": "string", "description": "For people: what is wrong and what to do."})),
                ("retryable", truth()),
                ("field?", json!({"type": "string", "description": "JSON pointer or parameter that is wrong."})),
                ("request_id", text()),
            ]),
        ),
        ("Status", object(&[("status", text())])),
        ("Once", request(&[("idempotency_key", idempotency_key())])),
        ("Corpus", object(&[("corpus_id", text()), ("name", text()), ("created_at", instant())])),
        ("CorpusPage", page("Corpus")),
        ("CorpusCreate", request(&[("idempotency_key", idempotency_key()), ("name", name())])),
        (
            "Imported",
            object(&[
                (
                    "added",
                    json!({"type": "array", "items": object(&[
                        ("connector_id", text()), ("name", text()), ("url", text()),
                    ])}),
                ),
                (
                    "skipped",
                    json!({"type": "array", "items": object(&[
                        ("name", text()), ("url", text()),
                        ("because", json!({"type": "string", "description": "duplicate, or the code of the refusal."})),
                        ("message", text()),
                    ])}),
                ),
            ]),
        ),
    ]
}

fn connector() -> Named {
    let seconds = |most: u32| json!({"type": "integer", "minimum": 1, "maximum": most});
    let labels = json!({
        "type": "object", "maxProperties": MAX_LABELS, "additionalProperties": {"type": "string", "maxLength": 256},
    });
    let secret = json!({"description": "As the kind's credential_schema says. It is never shown again."});
    let schedule = request(&[("interval_seconds", seconds(MAX_INTERVAL_SECONDS))]);
    let policy = request(&[
        ("silent_after_seconds?", seconds(MAX_POLICY_SECONDS)),
        ("credential_warning_seconds?", seconds(MAX_POLICY_SECONDS)),
    ]);
    let credential = object(&[("version", number()), ("deposited_at", instant()), ("expires_at?", instant())]);
    vec![
        (
            "Connector",
            object(&[
                ("connector_id", text()),
                ("corpus_id", text()),
                ("source_namespace", text()),
                ("name", text()),
                ("labels", json!({"type": "object", "additionalProperties": text()})),
                ("kind", text()),
                ("enabled", truth()),
                ("created_at", instant()),
                ("disabled_at?", instant()),
                ("paused_at?", instant()),
                ("config", json!({"type": "object"})),
                ("schedule", reference("Schedule")),
                ("health_policy", reference("HealthPolicy")),
                ("credential?", credential),
                ("next_poll", nullable(object(&[("at", instant()), ("because", because())]))),
                ("last_run_at", nullable(instant())),
                ("health", reference("Health")),
                ("counts?", object(&[("records", number()), ("listed", nullable(number()))])),
            ]),
        ),
        ("ConnectorPage", page("Connector")),
        ("Schedule", schedule),
        ("HealthPolicy", policy),
        (
            "ConnectorCreate",
            request(&[
                ("idempotency_key", idempotency_key()),
                ("corpus_id", text()),
                (
                    "source_namespace",
                    json!({"type": "string", "minLength": 1, "maxLength": MAX_NAMESPACE_BYTES,
                        "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$", "description": "Bytes of UTF-8 are counted."}),
                ),
                ("kind", json!({"type": "string", "pattern": "^[a-z][a-z0-9_]{0,31}$"})),
                ("config", json!({"type": "object", "description": "As the kind's config_schema says."})),
                ("schedule?", nullable(reference("Schedule"))),
                ("health_policy?", nullable(reference("HealthPolicy"))),
                ("name?", nullable(name())),
                ("labels?", nullable(labels)),
                ("checkpoint?", json!({"description": "Where an instance of another deployment left off."})),
                ("credential?", nullable(request(&[("secret", secret.clone()), ("expires_at?", nullable(instant()))]))),
            ]),
        ),
        (
            "CredentialReplace",
            request(&[
                ("idempotency_key", idempotency_key()),
                ("secret", secret),
                ("expires_at?", nullable(instant())),
            ]),
        ),
        (
            "KindList",
            object(&[
                ("credential_deposits", truth()),
                ("min_interval_seconds", number()),
                (
                    "items",
                    json!({"type": "array", "items": object(&[
                        ("kind", text()),
                        ("description", text()),
                        ("credential", json!({"enum": ["none", "optional", "required"]})),
                        ("default_interval_seconds", number()),
                        ("config_schema", json!({"type": "object"})),
                        ("credential_schema", nullable(json!({"type": "object"}))),
                        ("plugin", object(&[("id", text()), ("version", text()), ("digest", text())])),
                        ("egress", nullable(json!({"type": "object", "description": "For connectors:admin."}))),
                    ])}),
                ),
            ]),
        ),
    ]
}

fn health() -> Named {
    let state = json!({"enum": ["disabled", "access_error", "credential_expiring", "silent", "active"]});
    let run_error = object(&[("class", text()), ("code", text()), ("message", text())]);
    let outcome = json!({"enum": ["running", "completed", "skipped", "failed", "abandoned"]});
    vec![
        (
            "Health",
            object(&[
                ("state", state),
                ("evaluated_at", instant()),
                ("last_success_at", nullable(instant())),
                ("last_item_at", nullable(instant())),
                ("usage", object(&[("requests_today", number())])),
                ("diagnostics", nullable(json!({"type": "object", "description": "What the last document said."}))),
                (
                    "declared_pace",
                    nullable(json!({"type": "object", "description": "What the source says of its pace."})),
                ),
                (
                    "last_error?",
                    object(&[
                        ("class", text()),
                        ("code", text()),
                        ("message", text()),
                        ("at", instant()),
                        ("failures", number()),
                        ("detail?", json!({"type": "string", "description": "For connectors:admin."})),
                    ]),
                ),
                ("throttled?", object(&[("since", instant()), ("by", text())])),
                ("moved?", object(&[("to", text()), ("since", instant()), ("days", number())])),
            ]),
        ),
        ("RunAt", object(&[("run_at", instant())])),
        (
            "Run",
            object(&[
                ("run_id", text()),
                ("started_at", instant()),
                ("ended_at", nullable(instant())),
                ("outcome", outcome),
                ("error", nullable(run_error)),
                ("detail", nullable(text())),
                ("http_status", nullable(number())),
                ("final_url", nullable(text())),
                ("requests", number()),
                ("wire_bytes", number()),
                ("pages", number()),
                ("items_new", number()),
                ("items_changed", number()),
                ("plugin_digest", nullable(text())),
            ]),
        ),
        ("RunPage", page("Run")),
    ]
}

fn content() -> Named {
    let source = object(&[("corpus_id", text()), ("namespace", text()), ("record_key", text())]);
    let part = object(&[
        ("key", text()),
        ("role", text()),
        ("content", object(&[("kind", json!({"const": "text"})), ("text", text())])),
        ("parent_key?", nullable(text())),
    ]);
    let entry = [
        ("version_id", text()),
        ("ordinal", number()),
        ("revision", text()),
        ("withdrawn", truth()),
        ("accepted_at", instant()),
    ];
    let manifest =
        object(&[("kind", json!({"const": "manifest"})), ("parts", json!({"type": "array", "items": part}))]);
    let provenance =
        object(&[("producer", text()), ("producer_version", text()), ("plugin_digest", text()), ("run_id", text())]);
    let whole: Vec<(&str, Value)> = entry
        .iter()
        .cloned()
        .chain([
            ("record_id", text()),
            ("manifest", manifest),
            ("extensions", json!({"type": "object"})),
            ("provenance", provenance),
            ("availability", object(&[("searchable", truth())])),
        ])
        .collect();
    vec![
        (
            "Record",
            object(&[
                ("record_id", text()),
                ("source", source),
                ("withdrawn", truth()),
                ("current_version_id", text()),
                ("versions", number()),
                ("revision", text()),
                ("first_seen_at", instant()),
                ("accepted_at", instant()),
                ("sort_time", instant()),
                ("sort_origin", json!({"enum": ["feed", "first-seen", "clamped"]})),
            ]),
        ),
        ("RecordPage", page("Record")),
        ("VersionEntry", object(&entry)),
        ("VersionPage", page("VersionEntry")),
        ("Version", object(&whole)),
        (
            "Change",
            object(&[
                ("type", json!({"type": "string", "description": "Such as record.accepted; more may come."})),
                ("at", instant()),
                ("corpus_id", text()),
                ("resource", object(&[("kind", text()), ("id", text())])),
                ("data", json!({"type": ["object", "null"]})),
            ]),
        ),
        ("ChangePage", object(&[("items", list("Change")), ("next_cursor", text())])),
    ]
}
