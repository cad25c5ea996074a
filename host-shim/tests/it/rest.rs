//! The real program over real HTTP: the walk of a user, the README's own calls, and every refusal.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fake_feed_server::{Answer, Caller, FakeFeedServer, Route};
use host_shim::engine::pin::Digest;
use serde_json::{Value, json};

use crate::service::folder;
use crate::support::{PROGRAM, component, fixtures};

/// A running `host-shim serve`; killed when it is dropped.
pub struct Program {
    child: Child,
    pub caller: Caller,
    /// What it printed before it listened.
    pub printed: Vec<String>,
    /// Its data and its configuration.
    pub folder: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A data folder with its configuration.
pub fn prepared(name: &str) -> PathBuf {
    let folder = folder(name);
    let digest = Digest::of(&std::fs::read(component("connector.rss.wasm")).unwrap()).hex();
    let config = format!(
        "data_dir = \"data\"\nlisten = \"127.0.0.1:0\"\nuser_agent = \"tests (nobody@example.org)\"\n\
         [schedule]\nmin_interval_seconds = 1\nhost_gap_ms = 0\nrequests_per_host = 8\n[[plugins]]\npath = {:?}\nsha256 = \"{digest}\"\n\
         [plugins.configuration]\nallow_private_addresses = true\n",
        component("connector.rss.wasm")
    );
    std::fs::write(folder.join("host-shim.toml"), config).unwrap();
    folder
}

impl Program {
    /// Starts it on a prepared folder; `key` is known from an earlier start.
    pub fn start(folder: &Path, key: &str) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--config"])
            .arg(folder.join("host-shim.toml"))
            .stdout(Stdio::piped())
            .stderr(std::fs::File::options().create(true).append(true).open(folder.join("log")).unwrap())
            .env("HOST_SHIM_LOG", "host_shim=info,audit=info")
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut printed = Vec::new();
        let address = loop {
            let line = lines.next().expect("the program ended before it listened").unwrap();
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
            printed.push(line);
        };
        // Somebody must read the rest, or the program would wait for it.
        std::thread::spawn(move || lines.for_each(drop));
        let shown = printed.iter().find_map(|l| l.strip_prefix("API key, shown this once: ")).unwrap_or(key);
        Self { caller: Caller { address, key: shown.to_owned() }, child, printed, folder: folder.to_owned() }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }

    /// Ends it without a word, as a power cut would.
    pub fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.caller.key.clone()
    }
}

/// Asks until the answer is as wanted.
pub async fn until(caller: &Caller, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let asked = async {
        loop {
            let answer = caller.get(path).await.unwrap();
            if answer.status == 200 && wanted(&answer.body) {
                return answer.body;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap_or_else(|_| panic!("{path} never became so"))
}

pub async fn corpus(caller: &Caller) -> String {
    let made = caller.post("/v0/corpora", &json!({"idempotency_key": "c", "name": "one"})).await.unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    made.body["corpus_id"].as_str().unwrap().to_owned()
}

pub fn connector(corpus: &str, name: &str, url: &str) -> Value {
    json!({
        "idempotency_key": name, "corpus_id": corpus, "source_namespace": name, "kind": "rss",
        "config": {"url": url, "honor_ttl": false}, "schedule": {"interval_seconds": 1}, "name": name,
    })
}

pub async fn add(caller: &Caller, corpus: &str, name: &str, url: &str) -> String {
    let made = caller.post("/v0/connectors", &connector(corpus, name, url)).await.unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    made.body["connector_id"].as_str().unwrap().to_owned()
}

pub fn code(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.body["code"].as_str().unwrap_or(""))
}

pub async fn feeds() -> FakeFeedServer {
    let server = FakeFeedServer::start().await;
    server.serve_folder(&fixtures().join("feeds")).unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_becomes_records_with_versions() {
    let server = feeds().await;
    let program = Program::start(&prepared("walk"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let id = add(caller, &corpus, "harbour", &server.url("/rss-2.0.rss")).await;
    let polled = until(caller, &format!("/v0/connectors/{id}"), |c| !c["health"]["last_success_at"].is_null()).await;
    assert_eq!((polled["enabled"].clone(), polled["health"]["state"].clone()), (true.into(), "active".into()));
    assert_eq!(polled["health"]["diagnostics"]["feed"]["title"], "Harbour Notes");
    assert_eq!(polled["counts"], json!({"records": 3, "listed": 3}));
    assert_eq!(polled["next_poll"]["because"], "interval");

    let list = caller.get(&format!("/v0/records?corpus_id={corpus}")).await.unwrap().body;
    let keys: Vec<_> = list["items"].as_array().unwrap().iter().map(|r| r["source"]["record_key"].clone()).collect();
    assert_eq!(keys, ["https://harbour.example.org/no-guid", "harbour-2", "harbour-3"]);
    let record = &list["items"][1];
    let path = format!("/v0/records/{}", record["record_id"].as_str().unwrap());
    assert_eq!(&caller.get(&path).await.unwrap().body, record);
    let version = format!("{path}/versions/{}", record["current_version_id"].as_str().unwrap());
    let whole = caller.get(&version).await.unwrap().body;
    assert_eq!(whole["manifest"]["kind"], "manifest");
    let body = json!({"key": "body", "role": "body", "content": {"kind": "text", "text": "The ferry is late."}});
    assert_eq!(whole["manifest"]["parts"][1], body);
    assert_eq!(whole["extensions"]["connector.rss"]["data"]["item"]["guid"], "harbour-2");
    assert_eq!(whole["provenance"]["producer"], id);
    assert_eq!(whole["provenance"]["producer_version"], "connector.rss/0.1.0");

    server.edit("/rss-2.0.rss", "The ferry is", "The night ferry is").unwrap();
    let versions = until(caller, &format!("{path}/versions"), |v| v["items"].as_array().unwrap().len() == 2).await;
    assert_ne!(versions["items"][0]["revision"], versions["items"][1]["revision"]);

    let disabled =
        caller.post(&format!("/v0/connectors/{id}/disable"), &json!({"idempotency_key": "d"})).await.unwrap();
    assert_eq!((disabled.status, disabled.body["enabled"].clone()), (200, false.into()));
    assert_eq!(disabled.body["health"]["state"], "disabled");
    let again = caller.post(&format!("/v0/connectors/{id}/disable"), &json!({"idempotency_key": "e"})).await.unwrap();
    assert_eq!(again.body["disabled_at"], disabled.body["disabled_at"]);
    let run = caller.post(&format!("/v0/connectors/{id}/runs"), &json!({"idempotency_key": "r"})).await.unwrap();
    assert_eq!(code(&run), (409, "connector_disabled"));
    // The namespace is free again.
    add(caller, &corpus, "harbour-2", &server.url("/rss-2.0.rss")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readmes_calls_take_a_user_to_records() {
    let server = feeds().await;
    let program = Program::start(&prepared("readme"), "");
    let readme = std::fs::read_to_string(fixtures().join("../README.md")).unwrap();
    let block = readme.split("```sh\napi=").nth(1).expect("the README has the calls").split("```").next().unwrap();
    let script: String = format!("api={block}")
        .lines()
        .map(|line| match line.split_once('=').map(|(name, _)| name) {
            Some("api") => format!("api=http://{}\n", program.caller.address),
            Some("key") => format!("key={}\n", program.caller.key),
            Some("feed") => format!("feed={}\n", server.url("/atom-1.0.atom")),
            _ => format!("{line}\n"),
        })
        .collect();
    assert_eq!(script.matches("call ").count(), 5, "five calls");
    let output =
        tokio::task::spawn_blocking(move || Command::new("bash").args(["-euo", "pipefail", "-c", &script]).output())
            .await
            .unwrap()
            .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("tag:orbit.example.com,2026:1"), "{text}");
    assert!(text.contains("Not markup: a < b."), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_without_a_key_or_to_nowhere_are_refused() {
    let program = Program::start(&prepared("refusals"), "");
    let caller = &program.caller;
    let stranger = Caller { key: String::new(), ..caller.clone() };
    let wrong = Caller { key: "hs_wrong".into(), ..caller.clone() };
    for who in [&stranger, &wrong] {
        for path in ["/v0/corpora", "/v0/connectors", "/v0/records/x", "/v0/connector-kinds"] {
            assert_eq!(code(&who.get(path).await.unwrap()), (401, "unauthenticated"), "{path}");
        }
    }
    assert_eq!(stranger.get("/healthz").await.unwrap().status, 200);
    assert_eq!(stranger.get("/readyz").await.unwrap().status, 200);
    for path in [
        "/nothing",
        "/v0/connectors/con_x",
        "/v0/records/rec_x",
        "/v0/records/rec_x/versions/v",
        "/v0/records?corpus_id=c_x",
    ] {
        assert_eq!(code(&caller.get(path).await.unwrap()), (404, "not_found"), "{path}");
    }
    assert_eq!(code(&caller.call("DELETE", "/v0/corpora", None).await.unwrap()), (405, "method_not_allowed"));
    let text = caller.call("POST", "/v0/corpora", Some(("text/plain", "{}"))).await.unwrap();
    assert_eq!(code(&text), (415, "unsupported_media_type"));
    let broken = caller.call("POST", "/v0/corpora", Some(("application/json", "{"))).await.unwrap();
    assert_eq!(code(&broken), (400, "malformed_json"));
    let large = "x".repeat(600 * 1_024);
    let large = caller.post("/v0/corpora", &json!({"idempotency_key": "l", "name": large})).await.unwrap();
    assert_eq!(code(&large), (413, "request_too_large"));
    for path in [
        "/v0/records",
        "/v0/records?corpus_id=a&corpus_ids=b",
        "/v0/records?corpus_id=a&order=x",
        "/v0/records?corpus_id=a&accepted_after=x",
        "/v0/records?colour=a",
    ] {
        assert_eq!(code(&caller.get(path).await.unwrap()), (422, "invalid_query"), "{path}");
    }
    for limit in ["0", "101"] {
        assert_eq!(code(&caller.get(&format!("/v0/connectors?limit={limit}")).await.unwrap()), (422, "invalid_limit"));
    }
    assert_eq!(code(&caller.get("/v0/connectors?page_cursor=x").await.unwrap()), (422, "invalid_cursor"));
    let shown = caller.get("/nothing").await.unwrap().body;
    assert!(shown["request_id"].as_str().unwrap().starts_with("req_"));
    assert_eq!(shown["retryable"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_that_cannot_be_is_refused_with_the_field() {
    let program = Program::start(&prepared("creation"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let good = connector(&corpus, "good", "http://127.0.0.1:9/");
    let with = |pointer: &str, value: Value| {
        let mut body = good.clone();
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    let added = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    for (body, status, want, field) in [
        (added("colour", 1.into()), 422, "invalid_schema", "/colour"),
        (with("/kind", "atom".into()), 422, "unsupported_connector_kind", "/kind"),
        (with("/corpus_id", "c_x".into()), 404, "not_found", ""),
        (with("/config/url", "ftp://x.example.org/".into()), 422, "invalid_config", "/config/url"),
        (with("/config/url", "http://user:pw@x.example.org/".into()), 422, "invalid_config", "/config/url"),
        (with("/config/url", "http://localhost/".into()), 422, "invalid_config", "/config/url"),
        (with("/config", json!({"url": "http://x.example.org/", "ttl": 1})), 422, "invalid_config", "/config"),
        (with("/config", json!({})), 422, "invalid_config", "/config"),
        (with("/schedule/interval_seconds", 0.into()), 422, "invalid_schema", "/schedule/interval_seconds"),
        (with("/schedule/interval_seconds", 86_401.into()), 422, "invalid_interval", "/schedule/interval_seconds"),
        (with("/source_namespace", "".into()), 422, "invalid_schema", "/source_namespace"),
        (with("/name", " ".into()), 422, "invalid_schema", "/name"),
        (with("/idempotency_key", "".into()), 422, "invalid_schema", "/idempotency_key"),
        (with("/idempotency_key", "connector:x".into()), 422, "reserved_idempotency_key", "/idempotency_key"),
        (added("labels", json!({"a": 1})), 422, "invalid_schema", "/labels"),
        (added("checkpoint", "x".repeat(200_000).into()), 422, "invalid_schema", "/checkpoint"),
        (added("credential", json!({"secret": {"token": "hunter2"}})), 503, "credentials_unavailable", ""),
    ] {
        let answer = caller.post("/v0/connectors", &body).await.unwrap();
        assert_eq!(code(&answer), (status, want), "{body}");
        assert_eq!(answer.body["field"].as_str().unwrap_or(""), field, "{body}");
        assert!(!answer.body.to_string().contains("hunter2") && !answer.body.to_string().contains("pw@"));
    }
    assert_eq!(caller.get("/v0/connectors").await.unwrap().body["items"], json!([]));
    // The address as people type it.
    let typed =
        caller.post("/v0/connectors", &with("/config/url", " feed://127.0.0.1:9/my feed ".into())).await.unwrap();
    assert_eq!(typed.body["config"]["url"], "http://127.0.0.1:9/my%20feed");
    // The same request again is the same instance; another one under its key is a conflict.
    let again =
        caller.post("/v0/connectors", &with("/config/url", " feed://127.0.0.1:9/my feed ".into())).await.unwrap();
    assert_eq!((again.status, again.body["connector_id"].clone()), (201, typed.body["connector_id"].clone()));
    assert_eq!(code(&caller.post("/v0/connectors", &good).await.unwrap()), (409, "idempotency_conflict"));
    let same_space = with("/idempotency_key", "other".into());
    assert_eq!(code(&caller.post("/v0/connectors", &same_space).await.unwrap()), (409, "source_namespace_in_use"));
    let mut same_name = same_space.clone();
    same_name["source_namespace"] = "elsewhere".into();
    assert_eq!(code(&caller.post("/v0/connectors", &same_name).await.unwrap()), (409, "name_in_use"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_pages_bound_to_their_filter() {
    let server = FakeFeedServer::start().await;
    let items: String = (0..250).map(|n| format!("<item><guid>g{n:03}</guid><title>t</title></item>")).collect();
    server.serve("/feed", Route::new(format!("<rss version=\"2.0\"><channel>{items}</channel></rss>"), "text/xml"));
    let program = Program::start(&prepared("lists"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let id = add(caller, &corpus, "feed", &server.url("/feed")).await;
    until(caller, &format!("/v0/connectors/{id}"), |c| !c["health"]["last_success_at"].is_null()).await;
    for order in ["record_id", "accepted_at_desc"] {
        let first = format!("/v0/records?corpus_id={corpus}&order={order}&limit=100");
        let (mut path, mut seen, mut pages) = (first.clone(), std::collections::BTreeSet::new(), 0);
        loop {
            let page = caller.get(&path).await.unwrap().body;
            seen.extend(page["items"].as_array().unwrap().iter().map(|r| r["record_id"].as_str().unwrap().to_owned()));
            pages += 1;
            match page["next_page_cursor"].as_str() {
                Some(cursor) => path = format!("{first}&page_cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!((seen.len(), pages), (250, 3), "{order}");
    }
    let page = caller.get(&format!("/v0/records?corpus_id={corpus}&limit=1")).await.unwrap().body;
    let cursor = page["next_page_cursor"].as_str().unwrap();
    let other = caller
        .get(&format!("/v0/records?corpus_id={corpus}&order=accepted_at_desc&page_cursor={cursor}"))
        .await
        .unwrap();
    assert_eq!(code(&other), (409, "cursor_scope_changed"));
    // The accepted range: from the first instant on, and before it.
    let at = page["items"][0]["accepted_at"].as_str().unwrap();
    let after = caller.get(&format!("/v0/records?corpus_id={corpus}&accepted_after={at}&limit=1")).await.unwrap().body;
    let before = caller.get(&format!("/v0/records?corpus_id={corpus}&accepted_before={at}")).await.unwrap().body;
    assert_eq!((after["items"].as_array().unwrap().len(), before["items"].as_array().unwrap().len()), (1, 0));
    let runs = caller.get(&format!("/v0/connectors/{id}/runs?limit=1")).await.unwrap().body;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_may_be_asked_for_and_the_key_is_shown_once() {
    let server = feeds().await;
    let folder = prepared("restart");
    let program = Program::start(&folder, "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let mut body = connector(&corpus, "feed", &server.url("/atom-1.0.atom"));
    body["schedule"]["interval_seconds"] = 3_600.into();
    let id = caller.post("/v0/connectors", &body).await.unwrap().body["connector_id"].as_str().unwrap().to_owned();
    until(caller, &format!("/v0/connectors/{id}"), |c| !c["health"]["last_success_at"].is_null()).await;
    let path = format!("/v0/connectors/{id}/runs");
    let asked = caller.post(&path, &json!({"idempotency_key": "now"})).await.unwrap();
    assert_eq!(asked.status, 202);
    assert_eq!(caller.post(&path, &json!({"idempotency_key": "now"})).await.unwrap().body, asked.body);
    let runs = until(caller, &path, |r| r["items"].as_array().unwrap().len() == 2).await;
    // As instants: without a fraction the text of one sorts behind a later one.
    let instant = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(instant(&runs["items"][0]["started_at"]) >= instant(&asked.body["run_at"]));

    let second = Command::new(PROGRAM).args(["serve", "--config"]).arg(folder.join("host-shim.toml")).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another process serves"));
    let key = program.kill();
    let again = Program::start(&folder, &key);
    assert!(again.printed.iter().all(|l| !l.contains("API key")), "{:?}", again.printed);
    assert_eq!(again.caller.get(&format!("/v0/connectors/{id}")).await.unwrap().status, 200);
    // The key itself is in no file.
    for file in std::fs::read_dir(folder.join("data")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(key.len()).any(|w| w == key.as_bytes()), "{}", path.display());
        }
    }
    let kinds = again.caller.get("/v0/connector-kinds").await.unwrap().body;
    assert_eq!((kinds["items"][0]["kind"].clone(), kinds["credential_deposits"].clone()), ("rss".into(), false.into()));
    assert_eq!(kinds["items"][0]["egress"]["private_addresses"], true);
}

#[test]
fn a_configuration_that_is_wrong_is_named_and_a_bad_pin_does_not_stop_the_service() {
    let folder = prepared("config");
    let path = folder.join("host-shim.toml");
    let good = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, good.replace("data_dir", "data_dri")).unwrap();
    let output = Command::new(PROGRAM).args(["serve", "--config"]).arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("data_dri"));
    let bad = format!("{good}[[plugins]]\npath = \"/nowhere.wasm\"\nsha256 = \"{}\"\n", "0".repeat(64));
    std::fs::write(&path, bad).unwrap();
    let program = Program::start(&folder, "");
    assert!(program.printed.iter().any(|l| l.starts_with("kind rss: connector.rss sha256:")));
}
