//! The API as others build on it: its description, keys, secrets, changes, search, lists of feeds.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fake_feed_server::{Answer, Auth, Caller, FakeFeedServer, Route};
use host_shim::api::{Api, document};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::rest::{Program, add, code, connector, corpus, feeds, prepared, until};
use crate::support::PROGRAM;

/// The description with every object closed, so that a member that is not described is found.
fn closed(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => {
            for member in object.values_mut() {
                *member = closed(member.take());
            }
            if object.contains_key("properties") && object.get("type").is_some_and(|t| t == "object") {
                object.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|v| *v = closed(v.take())),
        _ => {}
    }
    value
}

/// Holds an answer against the description.
fn hold(method: &str, path: &str, answer: &Answer) {
    let document = closed(document());
    let call = &document["paths"][path][method];
    let mut described = &call["responses"][answer.status.to_string()];
    assert!(described.is_object(), "{method} {path} answered {}, which is not described", answer.status);
    if described.get("$ref").is_some() {
        described = &document["components"]["responses"]["Error"];
    }
    let Some(content) = described["content"].as_object() else { return };
    let (kind, content) = content.iter().next().unwrap();
    let sent = answer.header("content-type").unwrap_or("");
    assert_eq!(sent.split(';').next(), Some(kind.as_str()), "{method} {path}");
    if kind == "application/json" {
        let schema = json!({"allOf": [content["schema"]], "components": document["components"]});
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&answer.body).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{method} {path} {}: {errors:?}\n{}", answer.status, answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_described_and_answers_as_described() {
    let described: BTreeSet<String> = document()["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(described, Api::paths().into_iter().map(str::to_owned).collect());
    let server = feeds().await;
    let program = Program::start(&prepared("described"), "");
    let caller = &program.caller;
    assert_eq!(caller.get("/openapi.json").await.unwrap().body, document());
    for path in &described {
        let wrong = caller.call("PATCH", &path.replace(['{', '}'], ""), None).await.unwrap();
        hold("get", "/v0/corpora", &Answer { status: 405, ..wrong.clone() });
        let allowed: BTreeSet<String> =
            wrong.header("allow").unwrap().split(',').map(str::to_lowercase).filter(|m| m != "head").collect();
        let methods = document()["paths"][path].as_object().unwrap().keys().cloned().collect();
        assert_eq!(allowed, methods, "{path}");
    }
    let made = caller.post("/v0/corpora", &json!({"idempotency_key": "c", "name": "one"})).await.unwrap();
    hold("post", "/v0/corpora", &made);
    let corpus = made.body["corpus_id"].as_str().unwrap();
    let made = caller.post("/v0/connectors", &connector(corpus, "a", &server.url("/atom-1.0.atom"))).await.unwrap();
    hold("post", "/v0/connectors", &made);
    let id = made.body["connector_id"].as_str().unwrap().to_owned();
    let one = format!("/v0/connectors/{id}");
    until(caller, &one, |c| !c["health"]["last_success_at"].is_null()).await;
    add(caller, corpus, "refused", "http://127.0.0.1:9/").await;
    let list = format!("/v0/records?corpus_id={corpus}");
    let record = caller.get(&list).await.unwrap().body["items"][0].clone();
    let record_path = format!("/v0/records/{}", record["record_id"].as_str().unwrap());
    let version = format!("{record_path}/versions/{}", record["current_version_id"].as_str().unwrap());
    for (path, asked) in [
        ("/v0/corpora", "/v0/corpora?limit=1".to_owned()),
        ("/v0/connectors", format!("/v0/connectors?corpus_id={corpus}")),
        ("/v0/connectors", "/v0/connectors?limit=x".to_owned()),
        ("/v0/connectors/{id}", one.clone()),
        ("/v0/connectors/{id}", "/v0/connectors/%FF".to_owned()),
        ("/v0/connectors/{id}/runs", format!("{one}/runs")),
        ("/v0/connector-kinds", "/v0/connector-kinds".to_owned()),
        ("/v0/records", list.clone()),
        ("/v0/records", "/v0/records".to_owned()),
        ("/v0/records/{id}", record_path.clone()),
        ("/v0/records/{id}/versions", format!("{record_path}/versions")),
        ("/v0/records/{id}/versions/{version}", version.clone()),
        ("/v0/changes", "/v0/changes".to_owned()),
        ("/v0/changes", "/v0/changes?cursor=x".to_owned()),
        ("/v0/opml", format!("/v0/opml?corpus_id={corpus}")),
        ("/healthz", "/healthz".to_owned()),
        ("/readyz", "/readyz".to_owned()),
        ("/metrics", "/metrics".to_owned()),
        ("/docs", "/docs".to_owned()),
    ] {
        hold("get", path, &caller.get(&asked).await.unwrap());
    }
    let once = json!({"idempotency_key": "k"});
    for action in ["runs", "pause", "resume", "disable"] {
        let answer = caller.post(&format!("{one}/{action}"), &once).await.unwrap();
        assert!(answer.status < 300, "{answer:?}");
        hold("post", &format!("/v0/connectors/{{id}}/{action}"), &answer);
    }
    let late = caller.put(&format!("{one}/schedule"), &json!({"interval_seconds": 60})).await.unwrap();
    assert_eq!(code(&late), (409, "connector_disabled"));
    hold("put", "/v0/connectors/{id}/schedule", &late);
    // The page to read loads nothing, and says so to the browser.
    let docs = caller.get("/docs").await.unwrap();
    assert!(docs.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    for needle in ["src=", "http:", "https:", "@import", "url("] {
        assert!(!docs.text.contains(needle), "{needle}");
    }
    assert!(docs.text.contains("GET /v0/changes/stream"));
    // An answer that the caller has is not sent again.
    for path in [list, record_path, version] {
        let first = caller.get(&path).await.unwrap();
        let tag = first.header("etag").unwrap().to_owned();
        let again = caller.call_with("GET", &path, &[("If-None-Match", &tag)], None).await.unwrap();
        assert_eq!((again.status, again.text.as_str(), again.header("etag")), (304, "", Some(tag.as_str())));
        let other = caller.call_with("GET", &path, &[("If-None-Match", "\"x\"")], None).await.unwrap();
        assert_eq!((other.status, other.body), (200, first.body));
    }
}

/// Calls `host-shim` on a data folder.
fn command(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output =
        Command::new(PROGRAM).args(arguments).arg("--config").arg(folder.join("host-shim.toml")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

fn make_key(folder: &Path, arguments: &[&str]) -> (String, String) {
    let (ok, text) = command(folder, &[&["--json", "keys", "create"], arguments].concat());
    assert!(ok, "{text}");
    let shown: Value = serde_json::from_str(&text).unwrap();
    (shown["key_id"].as_str().unwrap().to_owned(), shown["key"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_and_knows_what_it_was_made_for() {
    let server = feeds().await;
    let folder = prepared("keys");
    let program = Program::start(&folder, "");
    let first = &program.caller;
    let mine = corpus(first).await;
    let made = first.post("/v0/corpora", &json!({"idempotency_key": "o", "name": "other"})).await.unwrap();
    let other = made.body["corpus_id"].as_str().unwrap().to_owned();
    let own = add(first, &mine, "own", &server.url("/atom-1.0.atom")).await;
    let foreign = add(first, &other, "foreign", &server.url("/rss-2.0.rss")).await;
    for id in [&own, &foreign] {
        until(first, &format!("/v0/connectors/{id}"), |c| !c["health"]["last_success_at"].is_null()).await;
    }
    let theirs = first.get(&format!("/v0/records?corpus_id={other}")).await.unwrap().body["items"][0].clone();
    let record = format!("/v0/records/{}", theirs["record_id"].as_str().unwrap());
    let (key_id, key) =
        make_key(&folder, &["--scope", "connectors:read", "--scope", "content:read", "--corpus", &mine]);
    let caller = Caller { key, ..first.clone() };
    let answers = |path: String| {
        let caller = caller.clone();
        async move { caller.get(&path).await.unwrap() }
    };
    // What it may not do is forbidden; what it may not know of does not exist.
    let once = json!({"idempotency_key": "k"});
    for id in [&own, &foreign] {
        let asked = caller.post(&format!("/v0/connectors/{id}/disable"), &once).await.unwrap();
        assert_eq!(code(&asked), (403, "forbidden"));
    }
    for path in ["/v0/changes", "/v0/changes/stream", "/metrics"] {
        assert_eq!(code(&answers(path.into()).await), (403, "forbidden"), "{path}");
    }
    for path in [
        format!("/v0/connectors/{foreign}"),
        format!("/v0/connectors/{foreign}/runs"),
        format!("/v0/connectors?corpus_id={other}"),
        format!("/v0/records?corpus_ids={mine},{other}"),
        format!("/v0/opml?corpus_id={other}"),
        format!("{record}/versions"),
        record,
    ] {
        assert_eq!(code(&answers(path.clone()).await), (404, "not_found"), "{path}");
    }
    for (path, member) in [("/v0/corpora", "corpus_id"), ("/v0/connectors", "corpus_id")] {
        let list = answers(path.into()).await.body;
        assert_eq!((list["items"].as_array().unwrap().len(), &list["items"][0][member]), (1, &json!(mine)));
    }
    assert_eq!(answers("/v0/connector-kinds".into()).await.body["items"][0]["egress"], Value::Null);
    assert_eq!(answers(format!("/v0/records?corpus_id={mine}")).await.status, 200);
    // A key that is revoked is none, at once.
    assert!(command(&folder, &["keys", "revoke", &key_id]).0);
    assert_eq!(code(&answers("/v0/corpora".into()).await), (401, "unauthenticated"));
    let (_, listed) = command(&folder, &["keys", "list"]);
    assert!(listed.contains(&key_id) && listed.contains("revoked") && !listed.contains(&caller.key));
    // Whoever guesses is told to wait; a right key is not locked out by it.
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(answers("/v0/corpora".into()).await.status);
    }
    assert_eq!((statuses[0], statuses[11]), (401, 429), "{statuses:?}");
    assert!(answers("/v0/corpora".into()).await.header("retry-after").is_some());
    assert_eq!(first.get("/v0/corpora").await.unwrap().status, 200);
}

/// Every file under a folder that has the text.
fn files_with(folder: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if std::fs::read(&path).unwrap().windows(needle.len()).any(|w| w == needle.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_sealed_checked_used_and_seen_nowhere() {
    let (first, second) = ("hunter2-first-secret", "hunter2-second-secret");
    let server = FakeFeedServer::start().await;
    let feed = "<rss version=\"2.0\"><channel><title>t</title><item><guid>g</guid></item></channel></rss>";
    let mut route = Route::new(feed, "application/rss+xml");
    route.auth = Some(Auth::Bearer(first.to_owned()));
    server.serve("/feed", route);
    let folder = prepared("secrets");
    let path = folder.join("host-shim.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let keys = tempfile_of_keys(&folder);
    std::fs::write(&path, format!("credential_key_file = {:?}\n{config}", keys.0)).unwrap();
    let program = Program::start(&folder, "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let mut body = connector(&corpus, "feed", &server.url("/feed"));
    body["credential"] = json!({"secret": {"token": first}, "expires_at": "2100-01-01T00:00:00Z"});
    let made = caller.post("/v0/connectors", &body).await.unwrap();
    hold("post", "/v0/connectors", &made);
    assert_eq!(made.body["credential"]["version"], 1);
    let one = format!("/v0/connectors/{}", made.body["connector_id"].as_str().unwrap());
    until(caller, &one, |c| !c["health"]["last_success_at"].is_null()).await;
    server.change("/feed", |r| r.auth = Some(Auth::Bearer(second.to_owned()))).unwrap();
    let refused = until(caller, &one, |c| c["health"]["state"] == "access_error").await;
    assert_eq!(refused["health"]["last_error"]["code"], "unauthorized");
    let put = |key: &str, secret: Value| json!({"idempotency_key": key, "secret": secret});
    let replace = format!("{one}/credential");
    for secret in [json!({"token": 7}), json!({"password": first}), Value::Null] {
        let bad = caller.put(&replace, &put("bad", secret)).await.unwrap();
        assert_eq!((code(&bad), bad.body["field"].as_str()), ((422, "invalid_credential"), Some("/secret")));
    }
    let replaced = caller.put(&replace, &put("r", json!({"token": second}))).await.unwrap();
    hold("put", "/v0/connectors/{id}/credential", &replaced);
    assert_eq!(replaced.body["credential"]["version"], 2);
    let again = caller.put(&replace, &put("r", json!({"token": second}))).await.unwrap();
    assert_eq!(again.body["credential"], replaced.body["credential"]);
    let conflict = caller.put(&replace, &put("r", json!({"token": first}))).await.unwrap();
    assert_eq!(code(&conflict), (409, "idempotency_conflict"));
    until(caller, &one, |c| c["health"]["state"] == "active").await;
    let told = caller.get("/v0/changes").await.unwrap();
    assert!(told.text.contains("connector.credential_replaced"));
    // The key is changed while the service has the old one at hand; the secret goes on under the new one.
    let key = program.kill();
    let rotated = format!("credential_key_file = {:?}\nold_credential_key_files = [{:?}]\n{config}", keys.1, keys.0);
    std::fs::write(&path, rotated).unwrap();
    for count in ["1 secrets", "0 secrets"] {
        let (ok, text) = command(&folder, &["credentials", "rotate"]);
        assert!(ok && text.contains(count), "{text}");
    }
    std::fs::write(&path, format!("credential_key_file = {:?}\n{config}", keys.1)).unwrap();
    server.edit("/feed", "<title>t<", "<title>u<").unwrap();
    let program = Program::start(&folder, &key);
    let seen = until(&program.caller, &one, |c| c["health"]["diagnostics"]["feed"]["title"] == "u").await;
    assert_eq!(seen["health"]["state"], "active");
    let key = program.kill();
    // Without a key nothing is taken and nothing opens, and the rest works.
    std::fs::write(&path, &config).unwrap();
    let program = Program::start(&folder, &key);
    let closed = program.caller.put(&replace, &put("x", json!({"token": first}))).await.unwrap();
    assert_eq!(code(&closed), (503, "credentials_unavailable"));
    until(&program.caller, &one, |c| c["health"]["last_error"]["code"] == "credential_unreadable").await;
    drop(program);
    for secret in [first, second] {
        assert_eq!(files_with(&folder, secret), Vec::<String>::new());
    }
    // The log that was searched did record the writes.
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    assert!(log.contains("audit") && log.contains("/credential"), "{log}");
    assert!(!log.contains("/feed"), "no address of a feed above debug: {log}");
}

/// Two files with keys.
fn tempfile_of_keys(folder: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let keys = (folder.join("key-1"), folder.join("key-2"));
    std::fs::write(&keys.0, "1".repeat(64)).unwrap();
    std::fs::write(&keys.1, "2".repeat(64)).unwrap();
    keys
}

/// Follows the stream until `wanted` changes came; resumes it after each `cut` events.
async fn follow(caller: &Caller, wanted: usize, cut: usize) -> Vec<Value> {
    let mut last: Option<String> = None;
    let mut events = Vec::new();
    while events.len() < wanted {
        let mut stream = TcpStream::connect(&caller.address).await.unwrap();
        let resume = last.as_ref().map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request =
            format!("GET /v0/changes/stream HTTP/1.0\r\nAuthorization: Bearer {}\r\n{resume}\r\n", caller.key);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        let mut came = 0;
        while came < cut && events.len() < wanted {
            let line = lines.next_line().await.unwrap().expect("the stream goes on");
            if let Some(id) = line.strip_prefix("id: ") {
                last = Some(id.to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                events.push(serde_json::from_str(data).unwrap());
                came += 1;
            }
        }
    }
    events
}

/// Reads by cursor until `wanted` changes came.
async fn read(caller: &Caller, wanted: usize) -> Vec<Value> {
    let (mut path, mut events) = ("/v0/changes?limit=7".to_owned(), Vec::new());
    while events.len() < wanted {
        let page = caller.get(&path).await.unwrap();
        hold("get", "/v0/changes", &page);
        events.extend(page.body["items"].as_array().unwrap().iter().cloned());
        path = format!("/v0/changes?limit=7&cursor={}", page.body["next_cursor"].as_str().unwrap());
    }
    events.truncate(wanted);
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn two_readers_under_load_see_what_the_store_has() {
    const FEEDS: usize = 5;
    const ITEMS: usize = 30;
    let server = FakeFeedServer::start().await;
    let program = Program::start(&prepared("readers"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    // The corpus, then for each feed itself and its items.
    let wanted = 1 + FEEDS * (1 + ITEMS);
    let (one, two) = (caller.clone(), caller.clone());
    let streamed = tokio::spawn(async move { follow(&one, wanted, 11).await });
    let listed = tokio::spawn(async move { read(&two, wanted).await });
    for feed in 0..FEEDS {
        let items: String =
            (0..ITEMS).map(|n| format!("<item><guid>{feed}-{n}</guid><title>t</title></item>")).collect();
        let path = format!("/{feed}");
        server.serve(&path, Route::new(format!("<rss version=\"2.0\"><channel>{items}</channel></rss>"), "text/xml"));
        add(caller, &corpus, &format!("f{feed}"), &server.url(&path)).await;
    }
    let limit = Duration::from_secs(60);
    let streamed = tokio::time::timeout(limit, streamed).await.unwrap().unwrap();
    let listed = tokio::time::timeout(limit, listed).await.unwrap().unwrap();
    assert_eq!(streamed, listed);
    let told: BTreeSet<&str> = listed
        .iter()
        .filter(|c| c["type"] == "record.accepted")
        .map(|c| c["resource"]["id"].as_str().unwrap())
        .collect();
    let (mut stored, mut path) = (BTreeSet::new(), format!("/v0/records?corpus_id={corpus}"));
    loop {
        let page = caller.get(&path).await.unwrap().body;
        stored.extend(page["items"].as_array().unwrap().iter().map(|r| r["record_id"].as_str().unwrap().to_owned()));
        match page["next_page_cursor"].as_str() {
            Some(cursor) => path = format!("/v0/records?corpus_id={corpus}&page_cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(stored.len(), FEEDS * ITEMS);
    assert_eq!(told, stored.iter().map(String::as_str).collect());
    // A cursor belongs to its corpora.
    let cursor = caller.get("/v0/changes?limit=1").await.unwrap().body["next_cursor"].as_str().unwrap().to_owned();
    let other = caller.get(&format!("/v0/changes?corpus_id={corpus}&cursor={cursor}")).await.unwrap();
    assert_eq!(code(&other), (409, "cursor_scope_changed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn words_and_values_find_records() {
    let server = FakeFeedServer::start().await;
    let item = |guid: &str, title: &str, body: &str| {
        format!(
            "<item><guid isPermaLink=\"false\">{guid}</guid><title>{title}</title><description>{body}</description></item>"
        )
    };
    let items = [
        item("a", "Ferry timetable", "The night ferry is late."),
        item("b", "Harbour", "A ferryman waits; it is late."),
        item("c", "\u{6e2f}\u{53e3}\u{6d88}\u{606f}", "\u{6e21}\u{8f2a}\u{665a}\u{9ede}"),
    ]
    .concat();
    server.serve("/feed", Route::new(format!("<rss version=\"2.0\"><channel>{items}</channel></rss>"), "text/xml"));
    let program = Program::start(&prepared("search"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let id = add(caller, &corpus, "feed", &server.url("/feed")).await;
    until(caller, &format!("/v0/connectors/{id}"), |c| !c["health"]["last_success_at"].is_null()).await;
    let find = async |query: String| {
        let page = caller.get(&format!("/v0/records?corpus_id={corpus}&{query}")).await.unwrap();
        assert_eq!(page.status, 200, "{query}: {page:?}");
        let items = page.body["items"].as_array().unwrap().clone();
        let mut keys: Vec<_> = items.iter().map(|r| r["source"]["record_key"].as_str().unwrap().to_owned()).collect();
        keys.sort();
        keys.join("")
    };
    for (q, keys) in [
        ("ferry", "a"),
        ("FERRY+late", "a"),
        ("late", "ab"),
        ("ferry*", "ab"),
        ("late+-ferryman", "a"),
        ("%22night+ferry%22", "a"),
        ("%22ferry+night%22", ""),
        ("%E6%B8%AF%E5%8F%A3", "c"),
        ("%E6%B8%A1%E8%BC%AA", "c"),
        ("OR", ""),
    ] {
        assert_eq!(find(format!("q={q}")).await, keys, "{q}");
    }
    let guid = "metadata=%7B%22connector.rss%22:%7B%22item%22:%7B%22guid%22:%22b%22%7D%7D%7D";
    assert_eq!(find(guid.to_owned()).await, "b");
    assert_eq!(find(format!("{guid}&q=ferry")).await, "");
    for bad in ["q=", "q=***", "metadata=x", "metadata=%7B%7D", "metadata=%7B%22a%22:1%7D"] {
        let answer = caller.get(&format!("/v0/records?corpus_id={corpus}&{bad}")).await.unwrap();
        assert_eq!(code(&answer), (422, "invalid_query"), "{bad}");
    }
    // Only the current text is found.
    server.edit("/feed", "night ferry", "night train").unwrap();
    until(caller, &format!("/v0/records?corpus_id={corpus}&q=train"), |r| r["items"].as_array().unwrap().len() == 1)
        .await;
    assert_eq!(find("q=%22night+ferry%22".to_owned()).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_paused_resumed_and_rescheduled() {
    let server = feeds().await;
    let program = Program::start(&prepared("pause"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let mut body = connector(&corpus, "feed", &server.url("/atom-1.0.atom"));
    body["schedule"]["interval_seconds"] = 3_600.into();
    let id = caller.post("/v0/connectors", &body).await.unwrap().body["connector_id"].as_str().unwrap().to_owned();
    let one = format!("/v0/connectors/{id}");
    until(caller, &one, |c| !c["health"]["last_success_at"].is_null()).await;
    let paused = caller.post(&format!("{one}/pause"), &json!({"idempotency_key": "p"})).await.unwrap().body;
    assert_eq!((paused["next_poll"].clone(), paused["paused_at"].is_string()), (Value::Null, true));
    let run = caller.post(&format!("{one}/runs"), &json!({"idempotency_key": "r"})).await.unwrap();
    assert_eq!(code(&run), (409, "connector_paused"));
    let resumed = caller.post(&format!("{one}/resume"), &json!({"idempotency_key": "q"})).await.unwrap().body;
    assert!(resumed["next_poll"].is_object() && resumed["paused_at"].is_null());
    // The same request again is the same answer, not another pause.
    let replayed = caller.post(&format!("{one}/pause"), &json!({"idempotency_key": "p"})).await.unwrap().body;
    assert!(replayed["paused_at"].is_null());
    // The same interval changes nothing; a shorter one pulls the next run in.
    let changes = async || caller.get("/v0/changes").await.unwrap().body["items"].as_array().unwrap().len();
    let before = changes().await;
    let same = caller.put(&format!("{one}/schedule"), &json!({"interval_seconds": 3_600})).await.unwrap().body;
    assert_eq!((same["next_poll"].clone(), changes().await), (resumed["next_poll"].clone(), before));
    let shorter = caller.put(&format!("{one}/schedule"), &json!({"interval_seconds": 1})).await.unwrap().body;
    assert_eq!(shorter["schedule"]["interval_seconds"], 1);
    until(caller, &format!("{one}/runs"), |r| r["items"].as_array().unwrap().len() >= 2).await;
    let low = caller.put(&format!("{one}/schedule"), &json!({"interval_seconds": 86_401})).await.unwrap();
    assert_eq!((code(&low), low.body["field"].as_str()), ((422, "invalid_interval"), Some("/interval_seconds")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_feeds_comes_in_and_goes_out() {
    let program = Program::start(&prepared("opml"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let path = format!("/v0/opml?corpus_id={corpus}&interval_seconds=3600");
    let import = async |text: &str| {
        let answer = caller.call("POST", &path, Some(("text/x-opml", text))).await.unwrap();
        hold("post", "/v0/opml", &answer);
        answer
    };
    let list = "<opml version=\"2.0\"><body><outline text=\"News\">\
        <outline text=\"One\" xmlUrl=\"http://127.0.0.1:9/one\"/><outline title=\"One\" xmlUrl=\"http://127.0.0.1:9/1\"/>\
        </outline><outline text=\"again\" xmlUrl=\"HTTP://127.0.0.1:9/one#x\"/>\
        <outline text=\"bad\" xmlUrl=\"ftp://127.0.0.1/\"/></body></opml>";
    let broken = list.replace("</body></opml>", "");
    for bad in [broken.as_str(), "<!DOCTYPE opml><opml/>", "<rss/>"] {
        assert_eq!(code(&import(bad).await), (422, "invalid_opml"), "{bad}");
    }
    assert_eq!(caller.get("/v0/connectors").await.unwrap().body["items"], json!([]));
    let first = import(list).await.body;
    let names: Vec<_> = first["added"].as_array().unwrap().iter().map(|a| a["name"].clone()).collect();
    assert_eq!(names, ["One", "One (127.0.0.1:9/1)"]);
    let skipped: Vec<_> = first["skipped"].as_array().unwrap().iter().map(|a| a["because"].clone()).collect();
    assert_eq!(skipped, ["duplicate", "invalid_config"]);
    let again = import(list).await.body;
    assert_eq!((again["added"].clone(), again["skipped"].as_array().unwrap().len()), (json!([]), 4));
    let made = caller.get("/v0/connectors").await.unwrap().body["items"][0].clone();
    assert_eq!(made["labels"], json!({"folder": "News"}));
    assert_eq!(made["schedule"]["interval_seconds"], 3_600);
    let out = caller.get(&format!("/v0/opml?corpus_id={corpus}")).await.unwrap();
    let feeds = host_shim::opml::read(out.text.as_bytes()).unwrap();
    let shown: Vec<_> = feeds.iter().map(|f| (f.url.as_str(), f.folders.join("/"))).collect();
    assert_eq!(shown, [("http://127.0.0.1:9/one", "News".to_owned()), ("http://127.0.0.1:9/1", "News".to_owned())]);
    // Ten thousand feeds are one call.
    let many: String =
        (0..10_000).map(|n| format!("<outline text=\"n{n}\" xmlUrl=\"http://127.0.0.1:9/many/{n}\"/>")).collect();
    let all = import(&format!("<opml><body>{many}</body></opml>")).await.body;
    assert_eq!(all["added"].as_array().unwrap().len(), 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_past_the_retention_is_gone() {
    let folder = prepared("retention");
    let program = Program::start(&folder, "");
    corpus(&program.caller).await;
    for n in 0..3 {
        let body = json!({"idempotency_key": format!("k{n}"), "name": format!("n{n}")});
        program.caller.post("/v0/corpora", &body).await.unwrap();
    }
    let cursor = async |caller: &Caller, limit: u32| {
        let page = caller.get(&format!("/v0/changes?limit={limit}")).await.unwrap().body;
        page["next_cursor"].as_str().unwrap().to_owned()
    };
    let (early, late) = (cursor(&program.caller, 1).await, cursor(&program.caller, 3).await);
    let key = program.kill();
    // Two of the four happened eight days ago; the retention is seven.
    let connection = rusqlite::Connection::open(folder.join("data").join(host_shim::store::sqlite::FILE)).unwrap();
    connection.execute("UPDATE change SET at = at - 8 * 86400000 WHERE seq <= 2", []).unwrap();
    drop(connection);
    let program = Program::start(&folder, &key);
    until(&program.caller, "/v0/changes", |page| page["items"].as_array().unwrap().len() == 2).await;
    for path in ["/v0/changes", "/v0/changes/stream"] {
        let gone = program.caller.get(&format!("{path}?cursor={early}")).await.unwrap();
        assert_eq!(code(&gone), (410, "cursor_expired"), "{path}");
        hold("get", path, &gone);
    }
    let rest = program.caller.get(&format!("/v0/changes?cursor={late}")).await.unwrap().body;
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
}
