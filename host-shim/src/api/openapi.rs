//! The description of the API: OpenAPI 3.1 at `/openapi.json`.
//!
//! Owns what a generated client knows: calls, parameters, scopes, answers. A test holds every call against it. The shapes
//! stand in `schemas`.

mod schemas;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};

use super::{Api, MAX_LIMIT};
use schemas::reference;

/// `/openapi.json`.
pub(super) async fn serve(State(_): State<Api>) -> Json<Value> {
    Json(document())
}

/// The whole description.
#[must_use]
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "host-shim",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Feeds as keyed, revision-hashed records.",
            "description": "Instants are RFC 3339 in UTC. Lists come in pages: pass next_page_cursor as page_cursor. A \
                            write takes an idempotency_key: the same request under it again gives the same answer. What \
                            a key may not know of does not exist for it (404).",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "corpora", "description": "Places for records."},
            {"name": "connectors", "description": "Instances: one feed each."},
            {"name": "records", "description": "Items of feeds. Everything in them is asserted by the feed."},
            {"name": "changes", "description": "What happened, in commit order."},
            {"name": "service", "description": "The process itself."},
        ],
        "paths": paths(),
        "components": {
            "securitySchemes": {"key": {
                "type": "http", "scheme": "bearer",
                "description": "A key of host-shim keys create. Its scopes and corpora say what it may do and know of; \
                                connectors:admin includes connectors:write, which includes connectors:read.",
            }},
            "schemas": schemas::all(),
            "responses": {"Error": {
                "description": "What went wrong, and what to do.",
                "headers": {
                    "x-request-id": {"schema": {"type": "string"}, "description": "The request, as the log names it."},
                    "retry-after": {"schema": {"type": "integer"}, "description": "Seconds to wait, with 429."},
                },
                "content": {"application/json": {"schema": reference("Error")}},
            }},
        },
    })
}

/// One call.
struct Call {
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    /// Scopes; `None` needs no key, an empty list any key.
    scopes: Option<&'static [&'static str]>,
    parameters: Vec<Value>,
    body: Option<Value>,
    /// Status, media type and schema of success.
    answers: Vec<(&'static str, &'static str, Value)>,
    /// Statuses of refusals beside those that every call has.
    refusals: &'static [&'static str],
    /// Calls that the answer leads to, and where it has what they need.
    links: &'static [Link],
}

/// A call that an answer leads to: its identifier, and its parameters with their places in the answer.
type Link = (&'static str, &'static [(&'static str, &'static str)]);

impl Call {
    fn get(id: &'static str, tag: &'static str, scope: &'static [&'static str], schema: &str) -> Self {
        Self {
            id,
            tag,
            summary: "",
            scopes: Some(scope),
            parameters: Vec::new(),
            body: None,
            answers: vec![("200", "application/json", reference(schema))],
            refusals: &[],
            links: &[],
        }
    }

    fn write(id: &'static str, tag: &'static str, scope: &'static [&'static str], body: &str, answer: &str) -> Self {
        let body = json!({"required": true, "content": {"application/json": {"schema": reference(body)}}});
        let refusals = &["400", "409", "413", "415", "422"];
        Self { body: Some(body), refusals, ..Self::get(id, tag, scope, answer) }
    }

    fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    fn with(mut self, parameters: impl IntoIterator<Item = Value>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    fn refused(self, refusals: &'static [&'static str]) -> Self {
        Self { refusals, ..self }
    }

    fn answers(self, answers: Vec<(&'static str, &'static str, Value)>) -> Self {
        Self { answers, ..self }
    }

    fn status(mut self, status: &'static str) -> Self {
        for answer in &mut self.answers {
            answer.0 = status;
        }
        self
    }

    fn links(self, links: &'static [Link]) -> Self {
        Self { links, ..self }
    }

    /// The answer has an entity tag.
    fn tagged(self) -> Self {
        let tag = json!({
            "name": "If-None-Match", "in": "header", "schema": {"type": "string"},
            "description": "ETag of an answer that the caller has: 304 where it still holds.",
        });
        self.with([tag])
    }

    fn show(self) -> Value {
        let is_tagged = self.parameters.iter().any(|p| p.get("name").is_some_and(|n| n == "If-None-Match"));
        let mut responses = Map::new();
        for (status, kind, schema) in self.answers {
            let mut answer = json!({"description": "Done.", "content": {kind: {"schema": schema}}});
            if is_tagged && let Some(answer) = answer.as_object_mut() {
                answer.insert("headers".to_owned(), json!({"etag": {"schema": {"type": "string"}, "required": true}}));
            }
            if let Some(answer) = answer.as_object_mut().filter(|_| !self.links.is_empty()) {
                answer.insert("links".to_owned(), self.links.iter().map(link).collect::<Map<_, _>>().into());
            }
            responses.insert(status.to_owned(), answer);
        }
        if is_tagged {
            responses.insert("304".to_owned(), json!({"description": "As the caller has it."}));
        }
        let keyed: &[&str] = if self.scopes.is_some() { &["401", "403", "429"] } else { &[] };
        let places: &[&str] = if self.parameters.is_empty() { &[] } else { &["404"] };
        for status in keyed.iter().chain(places).chain(self.refusals).chain(&["405", "503"]) {
            responses.insert((*status).to_owned(), json!({"$ref": "#/components/responses/Error"}));
        }
        let mut shown = json!({
            "operationId": self.id, "tags": [self.tag], "summary": self.summary, "responses": responses,
            "security": self.scopes.map_or_else(|| json!([]), |scopes| json!([{"key": scopes}])),
        });
        if let Some(shown) = shown.as_object_mut() {
            if !self.parameters.is_empty() {
                shown.insert("parameters".to_owned(), self.parameters.into());
            }
            if let Some(body) = self.body {
                shown.insert("requestBody".to_owned(), body);
            }
        }
        shown
    }
}

fn link((call, parameters): &Link) -> (String, Value) {
    let parameters: Map<String, Value> =
        parameters.iter().map(|(name, place)| ((*name).to_owned(), format!("$response.body#{place}").into())).collect();
    ((*call).to_owned(), json!({"operationId": call, "parameters": parameters}))
}

fn id() -> Value {
    json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}})
}

fn query(name: &str, schema: &Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "schema": schema, "description": description})
}

fn corpus_id(is_required: bool) -> Value {
    let mut parameter = query("corpus_id", &json!({"type": "string"}), "Only this corpus.");
    if let Some(parameter) = parameter.as_object_mut() {
        parameter.insert("required".to_owned(), is_required.into());
    }
    parameter
}

fn pages() -> [Value; 2] {
    [query("page_cursor", &cursor_form(), "next_page_cursor of the page before, with the same filter."), limit()]
}

/// What a cursor looks like; what is in it is the service's own.
fn cursor_form() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{8,1024}$"})
}

fn limit() -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": MAX_LIMIT});
    query("limit", &schema, "Entries of a page.")
}

/// Refusals of a list: parameters that are wrong, a cursor of another filter.
const LISTS: &[&str] = &["404", "409", "422"];
const READ: &[&str] = &["connectors:read"];
const WRITE: &[&str] = &["connectors:write"];
const ADMIN: &[&str] = &["connectors:admin"];
const CONTENT: &[&str] = &["content:read"];
const CHANGES: &[&str] = &["changes:read"];

fn paths() -> Value {
    let mut paths = Map::new();
    for (path, calls) in corpora().into_iter().chain(connectors()).chain(records()).chain(changes()).chain(service()) {
        let calls: Map<String, Value> = calls.into_iter().map(|(m, call)| (m.to_owned(), call.show())).collect();
        paths.insert(path.to_owned(), calls.into());
    }
    paths.into()
}

type Calls = Vec<(&'static str, Vec<(&'static str, Call)>)>;

fn corpora() -> Calls {
    let list = Call::get("listCorpora", "corpora", &[], "CorpusPage").with(pages()).refused(LISTS);
    let create = Call::write("createCorpus", "corpora", ADMIN, "CorpusCreate", "Corpus").status("201");
    // Whatever it is sent as: generated clients know octets, people know OPML.
    let any = json!({"schema": {"type": "string"}});
    let file = json!({"required": true, "content": {"text/x-opml": any, "application/octet-stream": any}});
    let interval = query(
        "interval_seconds",
        &json!({"type": "integer", "minimum": 1, "maximum": 86_400}),
        "Seconds between two polls of each; without it the kind's.",
    );
    let import = Call { body: Some(file), ..Call::get("importOpml", "corpora", WRITE, "Imported") };
    let opml = vec![("200", "text/x-opml", json!({"type": "string"}))];
    let export = Call::get("exportOpml", "corpora", READ, "Error").answers(opml).with([corpus_id(true)]);
    vec![
        (
            "/v0/corpora",
            vec![
                ("get", list.summary("List the corpora that the key may know of.")),
                ("post", create.summary("Make a corpus; the key must be for all corpora.")),
            ],
        ),
        (
            "/v0/opml",
            vec![
                (
                    "get",
                    export.refused(&["422"]).summary("Export the enabled feeds of a corpus as a subscription list."),
                ),
                (
                    "post",
                    import
                        .with([corpus_id(true), interval])
                        .refused(&["413", "422"])
                        .summary("Make an instance of each feed of a subscription list, in one transaction."),
                ),
            ],
        ),
    ]
}

/// What can be asked of the connector that an answer is.
const OF_CONNECTOR: &[Link] = &[
    ("getConnector", &[("id", "/connector_id")]),
    ("replaceCredential", &[("id", "/connector_id")]),
    ("pauseConnector", &[("id", "/connector_id")]),
    ("resumeConnector", &[("id", "/connector_id")]),
    ("listRuns", &[("id", "/connector_id")]),
    ("requestRun", &[("id", "/connector_id")]),
    ("setSchedule", &[("id", "/connector_id")]),
    ("disableConnector", &[("id", "/connector_id")]),
];

/// What can be asked of the first record of a list.
const OF_RECORDS: &[Link] = &[
    ("getRecord", &[("id", "/items/0/record_id")]),
    ("listVersions", &[("id", "/items/0/record_id")]),
    ("getVersion", &[("id", "/items/0/record_id"), ("version", "/items/0/current_version_id")]),
];

fn connectors() -> Calls {
    let once =
        |name, summary| Call::write(name, "connectors", WRITE, "Once", "Connector").with([id()]).summary(summary);
    let list = Call::get("listConnectors", "connectors", READ, "ConnectorPage").with([corpus_id(false)]).with(pages());
    let create = Call::write("createConnector", "connectors", WRITE, "ConnectorCreate", "Connector").status("201");
    let create = create.links(OF_CONNECTOR);
    let runs = Call::get("listRuns", "connectors", READ, "RunPage").with([id()]).with(pages()).refused(LISTS);
    let run = Call::write("requestRun", "connectors", WRITE, "Once", "RunAt").with([id()]).status("202");
    let credential = Call::write("replaceCredential", "connectors", WRITE, "CredentialReplace", "Connector");
    let schedule = Call::write("setSchedule", "connectors", WRITE, "Schedule", "Connector").with([id()]);
    let kinds = Call::get("listConnectorKinds", "connectors", READ, "KindList");
    let get = Call::get("getConnector", "connectors", READ, "Connector").with([id()]);
    vec![
        (
            "/v0/connectors",
            vec![
                ("get", list.refused(LISTS).summary("List instances by identifier.")),
                (
                    "post",
                    create
                        .refused(&["400", "404", "409", "413", "415", "422"])
                        .summary("Make an instance; it is polled at once."),
                ),
            ],
        ),
        ("/v0/connectors/{id}", vec![("get", get.summary("One instance, with its health and counts."))]),
        (
            "/v0/connectors/{id}/credential",
            vec![("put", credential.with([id()]).summary("Replace the credential; it is checked before it is used."))],
        ),
        (
            "/v0/connectors/{id}/disable",
            vec![("post", once("disableConnector", "Disable an instance for good; its records stay."))],
        ),
        ("/v0/connectors/{id}/pause", vec![("post", once("pauseConnector", "Stop polling until it is resumed."))]),
        ("/v0/connectors/{id}/resume", vec![("post", once("resumeConnector", "Poll again."))]),
        (
            "/v0/connectors/{id}/runs",
            vec![
                ("get", runs.summary("List the runs of an instance, newest first.")),
                ("post", run.summary("Ask for a run as soon as floor and source allow.")),
            ],
        ),
        (
            "/v0/connectors/{id}/schedule",
            vec![("put", schedule.summary("Set the interval; a shorter one pulls the next run in."))],
        ),
        ("/v0/connector-kinds", vec![("get", kinds.summary("List the kinds that pinned components serve."))]),
    ]
}

fn records() -> Calls {
    let text = json!({"type": "string"});
    let instant = json!({"type": "string", "format": "date-time"});
    let order = json!({"type": "string", "enum": ["record_id", "accepted_at_desc"], "default": "record_id"});
    let list = Call::get("listRecords", "records", CONTENT, "RecordPage").with([
        corpus_id(false),
        query(
            "corpus_ids",
            &json!({"type": "string", "minLength": 1}),
            "1 to 16 corpora, joined by commas; either this or corpus_id is required.",
        ),
        query("order", &order, "Order."),
        query("accepted_after", &instant, "Accepted at or after."),
        query("accepted_before", &instant, "Accepted before."),
        query(
            "q",
            &json!({"type": "string", "minLength": 1, "maxLength": 512}),
            "Words that title and body must have: all of them; \"a phrase\", prefix*, -without.",
        ),
        query(
            "metadata",
            &text,
            "A JSON object by extension namespace whose values the current version must have, such as \
             {\"connector.rss\":{\"item\":{\"guid\":\"x\"}}}.",
        ),
    ]);
    let get = Call::get("getRecord", "records", CONTENT, "Record").with([id()]).tagged();
    let versions = Call::get("listVersions", "records", CONTENT, "VersionPage").with([id()]).with(pages()).tagged();
    let version = json!({"name": "version", "in": "path", "required": true, "schema": {"type": "string"}});
    let one = Call::get("getVersion", "records", CONTENT, "Version").with([id(), version]).tagged();
    vec![
        (
            "/v0/records",
            vec![(
                "get",
                list.with(pages())
                    .tagged()
                    .links(OF_RECORDS)
                    .refused(LISTS)
                    .summary("List and search records, withdrawn too."),
            )],
        ),
        ("/v0/records/{id}", vec![("get", get.summary("One record."))]),
        ("/v0/records/{id}/versions", vec![("get", versions.refused(LISTS).summary("List versions, oldest first."))]),
        ("/v0/records/{id}/versions/{version}", vec![("get", one.summary("One version with its parts."))]),
    ]
}

fn changes() -> Calls {
    let cursor = || {
        let about = "next_cursor of the page before; without it the oldest change that is kept (seven days).";
        query("cursor", &cursor_form(), about)
    };
    let refusals: &[&str] = &["404", "409", "410", "422"];
    let list = Call::get("listChanges", "changes", CHANGES, "ChangePage").with([corpus_id(false), cursor(), limit()]);
    let last = json!({
        "name": "Last-Event-ID", "in": "header", "schema": {"type": "string"},
        "description": "id of the last event; goes before cursor.",
    });
    let events = vec![("200", "text/event-stream", json!({"type": "string"}))];
    let stream = Call::get("streamChanges", "changes", CHANGES, "Change").answers(events);
    vec![
        ("/v0/changes", vec![("get", list.refused(refusals).summary("Changes behind a cursor, in commit order."))]),
        (
            "/v0/changes/stream",
            vec![(
                "get",
                stream.with([corpus_id(false), cursor(), last]).refused(refusals).summary(
                    "Changes as server-sent events: id is a cursor, event the type, data a Change. An event named error \
                     ends it.",
                ),
            )],
        ),
    ]
}

fn service() -> Calls {
    let open = |name, schema: &str| Call { scopes: None, ..Call::get(name, "service", &[], schema) };
    let text = |kind| vec![("200", kind, json!({"type": "string"}))];
    let any = vec![("200", "application/json", json!({"type": "object"}))];
    let metrics = Call::get("metrics", "service", READ, "Error");
    vec![
        ("/healthz", vec![("get", open("alive", "Status").summary("The process answers."))]),
        ("/readyz", vec![("get", open("ready", "Status").summary("The store answers and the scheduler works."))]),
        ("/openapi.json", vec![("get", open("openapi", "Status").answers(any).summary("This description."))]),
        (
            "/docs",
            vec![("get", open("docs", "Status").answers(text("text/html")).summary("This description to read."))],
        ),
        (
            "/metrics",
            vec![(
                "get",
                metrics
                    .answers(text("application/openmetrics-text"))
                    .summary("What the service counts; the key must be for all corpora."),
            )],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_calls_that_there_are_with_parameters_that_they_take() {
        let document = document();
        let mut calls = Vec::new();
        for methods in document["paths"].as_object().unwrap().values() {
            calls.extend(methods.as_object().unwrap().values());
        }
        let parameters = |id: &Value| -> Vec<&Value> {
            let call = calls.iter().find(|c| c["operationId"] == *id).unwrap();
            call["parameters"].as_array().unwrap().iter().map(|p| &p["name"]).collect()
        };
        let mut seen = 0;
        for call in &calls {
            for response in call["responses"].as_object().unwrap().values() {
                for link in response["links"].as_object().into_iter().flat_map(|l| l.values()) {
                    let known = parameters(&link["operationId"]);
                    for name in link["parameters"].as_object().unwrap().keys() {
                        assert!(known.contains(&&Value::from(name.as_str())), "{link}");
                    }
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, OF_CONNECTOR.len() + OF_RECORDS.len());
    }
}
