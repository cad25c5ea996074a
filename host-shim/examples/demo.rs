//! Shows the service at work over REST: fake feed server, `serve`, one instance for each fixture feed, versions.
//!
//! The service runs in this process, as `host-shim serve` runs it, so nothing is left behind when it is interrupted.

#![expect(clippy::print_stdout, reason = "a demonstration talks to people")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fake_feed_server::{Caller, FakeFeedServer};
use host_shim::config;
use host_shim::engine::pin::{Pin, read};
use host_shim::server::Server;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// Feeds that the demonstration polls.
const FEEDS: [&str; 6] =
    ["rss-2.0.rss", "rss-0.91.xml", "rss-1.0.rdf", "atom-1.0.atom", "json-feed-1.1.json", "podcast.rss"];

/// How long it waits for something that takes a moment.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder that goes when the demonstration ends.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // It lies in the temporary folder, where a leftover does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = tokio::select! {
        outcome = demo() => outcome,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    match outcome {
        Ok(()) => {
            println!("\nDone: everything went as it should.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("\nThe demonstration failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A file that the build put beside the programs.
fn built(name: &str) -> Result<PathBuf, Failure> {
    let folder = std::env::current_exe()?.parent().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    Ok(folder.join(name))
}

/// A pin of a component that was just built, with its digest.
fn pin(name: &str, configuration: &Value) -> Result<Pin, Failure> {
    let unpinned = Pin { path: built(name)?, sha256: None, configuration: configuration.to_string() };
    let (digest, _) = read(&unpinned)?;
    Ok(Pin { sha256: Some(digest), ..unpinned })
}

async fn start(folder: &Path) -> Result<Server, Failure> {
    let text = "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n[schedule]\nmin_interval_seconds = 1\nhost_gap_ms = 0\n";
    let (mut config, _) = config::read(text, folder, "host-shim-demo (nobody@example.org)")?;
    config.plugins =
        vec![pin("connector.rss.wasm", &json!({"allow_private_addresses": true}))?, pin("hostile.wasm", &json!({}))?];
    Ok(Server::start(&config).await?)
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("-")
}

fn items(value: &Value) -> &[Value] {
    value.get("items").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

async fn get(caller: &Caller, path: &str) -> Result<Value, Failure> {
    let answer = caller.get(path).await?;
    if answer.status == 200 { Ok(answer.body) } else { Err(format!("{path}: {}", answer.body).into()) }
}

async fn post(caller: &Caller, path: &str, body: Value) -> Result<Value, Failure> {
    let answer = caller.post(path, &body).await?;
    if (200..300).contains(&answer.status) { Ok(answer.body) } else { Err(format!("{path}: {}", answer.body).into()) }
}

/// Asks until the answer is as wanted.
async fn until(caller: &Caller, path: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value, Failure> {
    let waiting = async {
        loop {
            let answer = get(caller, path).await?;
            if wanted(&answer) {
                return Ok::<_, Failure>(answer);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.map_err(|_| format!("{path} did not become what it should"))?
}

fn instance(corpus: &str, name: &str, kind: &str, config: Value) -> Value {
    json!({
        "idempotency_key": format!("demo-{name}"), "corpus_id": corpus, "source_namespace": name, "kind": kind,
        "config": config, "schedule": {"interval_seconds": 1}, "name": name,
    })
}

fn table(connectors: &[Value]) {
    println!("   {:<20} {:<13} {:<28} {:>6}  {:<25} BECAUSE", "FEED", "HEALTH", "LAST ERROR", "ITEMS", "NEXT POLL");
    for c in connectors {
        let records = c.pointer("/counts/records").and_then(Value::as_u64).unwrap_or(0);
        let (name, state) = (text(c, "/name"), text(c, "/health/state"));
        let (error, at) = (text(c, "/health/last_error/code"), text(c, "/next_poll/at"));
        println!("   {name:<20} {state:<13} {error:<28} {records:>6}  {at:<25} {}", text(c, "/next_poll/because"));
    }
}

/// The items of a feed: key, revision, title, published.
async fn records_table(caller: &Caller, corpus: &str, namespace: &str) -> Result<(), Failure> {
    println!("\n   {namespace}");
    println!("   {:<42} {:<14} {:<24} PUBLISHED", "KEY", "REVISION", "TITLE");
    let list = get(caller, &format!("/v0/records?corpus_id={corpus}")).await?;
    for record in items(&list).iter().filter(|r| text(r, "/source/namespace") == namespace) {
        let path =
            format!("/v0/records/{}/versions/{}", text(record, "/record_id"), text(record, "/current_version_id"));
        let version = get(caller, &path).await?;
        let parts = version.pointer("/manifest/parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let title = parts.iter().find(|p| text(p, "/key") == "title").map_or("-", |p| text(p, "/content/text"));
        let published = text(&version, "/extensions/connector.rss/data/item/published");
        let revision = text(record, "/revision").trim_start_matches("sha256:");
        println!("   {:<42.42} {revision:<14.12} {title:<24.24} {published}", text(record, "/source/record_key"));
    }
    Ok(())
}

async fn demo() -> Result<(), Failure> {
    let feeds = FakeFeedServer::start().await;
    feeds.serve_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/feeds"))?;
    println!("1. The fake feed server listens on {}", feeds.url("/"));

    let folder = Folder(std::env::temp_dir().join(format!("connector-demo-{}", std::process::id())));
    println!("\n2. Starting the service in {} (compiling the components takes a second or two)", folder.0.display());
    let server = start(&folder.0).await?;
    println!("   listening on http://{}", server.address);
    for kind in &server.kinds {
        println!("   kind {kind}");
    }
    let key = server.first_key.clone().ok_or("the first start made no key")?;
    let caller = Caller { address: server.address.to_string(), key };

    println!(
        "\n3. One corpus, one instance for each of {} feeds, and one of a component that never stops computing",
        FEEDS.len()
    );
    let corpus = post(&caller, "/v0/corpora", json!({"idempotency_key": "demo", "name": "demo"})).await?;
    let corpus = text(&corpus, "/corpus_id").to_owned();
    let hostile = instance(&corpus, "hostile", "hostile", json!({"mode": "spin"}));
    let hostile = text(&post(&caller, "/v0/connectors", hostile).await?, "/connector_id").to_owned();
    let mut ids = Vec::new();
    for name in FEEDS {
        let config = json!({"url": feeds.url(&format!("/{name}")), "honor_ttl": false});
        let made = post(&caller, "/v0/connectors", instance(&corpus, name, "rss", config)).await?;
        ids.push(text(&made, "/connector_id").to_owned());
    }
    let mut polled = Vec::new();
    for id in &ids {
        let done = |c: &Value| c.pointer("/health/last_success_at").is_some_and(|v| !v.is_null());
        polled.push(until(&caller, &format!("/v0/connectors/{id}"), done).await?);
    }
    table(&polled);
    for name in FEEDS {
        records_table(&caller, &corpus, name).await?;
    }

    println!("\n4. The next polls of the same feeds are answered 304");
    for (id, name) in ids.iter().zip(FEEDS) {
        let unchanged = |r: &Value| items(r).first().is_some_and(|r| r.pointer("/http_status") == Some(&json!(304)));
        until(&caller, &format!("/v0/connectors/{id}/runs?limit=1"), unchanged).await?;
        println!("   {name}: 304");
    }

    let records = get(&caller, &format!("/v0/records?corpus_id={corpus}")).await?;
    let record = items(&records)
        .iter()
        .find(|r| text(r, "/source/record_key") == "harbour-2")
        .ok_or("the record of the ferry is not there")?;
    let record_path = format!("/v0/records/{}", text(record, "/record_id"));
    println!("\n5. One record whole");
    let version = get(&caller, &format!("{record_path}/versions/{}", text(record, "/current_version_id"))).await?;
    println!("{}\n{}", serde_json::to_string_pretty(record)?, serde_json::to_string_pretty(&version)?);

    println!("\n6. Editing that item, then putting the earlier text back: each is a version of its own");
    for (n, from, to) in [(2, "The ferry is", "The night ferry is"), (3, "The night ferry is", "The ferry is")] {
        feeds.edit("/rss-2.0.rss", from, to)?;
        let versions = until(&caller, &format!("{record_path}/versions"), |v| items(v).len() == n).await?;
        for v in items(&versions) {
            let whole = get(&caller, &format!("{record_path}/versions/{}", text(v, "/version_id"))).await?;
            let ordinal = v.pointer("/ordinal").and_then(Value::as_u64).unwrap_or(0);
            let (revision, body) = (text(v, "/revision"), text(&whole, "/manifest/parts/1/content/text"));
            println!("   {ordinal} {revision:.19} {body}");
        }
        println!();
    }

    println!("7. Taking an item out of the feed: its record stays");
    let before = items(&records).len();
    let document =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/feeds/rss-0.91.xml"))?;
    let shorter = document.find("<item>").zip(document.find("</item>")).map(|(a, b)| {
        let (head, tail) = (document.get(..a).unwrap_or(""), document.get(b + "</item>".len()..).unwrap_or(""));
        format!("{head}{tail}")
    });
    feeds.change("/rss-0.91.xml", |route| route.replace(shorter.unwrap_or_default()))?;
    let almanac = ids.get(1).ok_or("there is no second feed")?;
    let listed = |c: &Value| c.pointer("/counts/listed").and_then(Value::as_u64) == Some(1);
    let shown = until(&caller, &format!("/v0/connectors/{almanac}"), listed).await?;
    let count = |name: &str| shown.pointer(&format!("/counts/{name}")).and_then(Value::as_u64).unwrap_or(0);
    println!("   the document lists {}, the corpus has {}", count("listed"), count("records"));
    let after = items(&get(&caller, &format!("/v0/records?corpus_id={corpus}")).await?).len();
    if after != before {
        return Err("a record went away".into());
    }

    println!("\n8. The component that never stops computing was stopped, and the others went on");
    let stopped = |c: &Value| c.pointer("/health/last_error/code").is_some();
    let hostile = until(&caller, &format!("/v0/connectors/{hostile}"), stopped).await?;
    println!("   {}: {}", text(&hostile, "/health/last_error/code"), text(&hostile, "/health/last_error/message"));
    table(&[until(&caller, &format!("/v0/connectors/{almanac}"), listed).await?, hostile]);
    server.stop().await;
    Ok(())
}
