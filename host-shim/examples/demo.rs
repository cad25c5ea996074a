//! Shows the path with real parts: fake feed server, client, component in the sandbox, records on the screen.
//!
//! Everything runs in this one process, so nothing is left behind when it is interrupted.

#![expect(clippy::print_stdout, reason = "a demonstration talks to people")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use fake_feed_server::FakeFeedServer;
use host_shim::egress::client::{Client, Rules};
use host_shim::egress::dial::Tls;
use host_shim::egress::resolver::Dns;
use host_shim::engine::answer::Item;
use host_shim::engine::limits::Limits;
use host_shim::engine::pin::Pin;
use host_shim::engine::plugin::{Invocation, Plugin};
use host_shim::engine::runtime::Runtime;
use host_shim::runner::network::Network;
use host_shim::runner::{RunError, Session};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// Feeds that the demonstration polls.
const FEEDS: [&str; 6] =
    ["rss-2.0.rss", "rss-0.91.xml", "rss-1.0.rdf", "atom-1.0.atom", "json-feed-1.1.json", "podcast.rss"];

/// A clock that stands still, so that the demonstration looks the same every time.
const NOW: &str = "2026-09-28T12:00:00Z";

#[tokio::main]
async fn main() -> ExitCode {
    match demo().await {
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

/// What a run brought.
struct Outcome {
    items: Vec<Item>,
    checkpoint: Option<String>,
    status: Option<u16>,
}

async fn poll(plugin: &Plugin, client: &Client, url: &str, checkpoint: Option<String>) -> Result<Outcome, RunError> {
    let network = Arc::new(Network::new(client.clone(), Rules::open(), None, None));
    let call = Invocation {
        instance_id: "demo".to_owned(),
        kind: plugin.descriptor().kinds.first().map(|k| k.name.clone()).unwrap_or_default(),
        corpus_id: "demo".to_owned(),
        source_namespace: "demo".to_owned(),
        config: json!({"url": url, "honor_ttl": false}).to_string(),
        checkpoint,
        now: NOW.to_owned(),
        ..Invocation::default()
    };
    let mut session = Session::new(plugin.clone(), Arc::clone(&network) as _, call);
    let mut outcome = Outcome { items: Vec::new(), checkpoint: None, status: None };
    while let Some(page) = session.next().await {
        let page = page?;
        outcome.items.extend(page.items);
        outcome.checkpoint = Some(page.checkpoint);
    }
    outcome.status = network.report().status;
    Ok(outcome)
}

fn table(items: &[Item]) {
    println!("  {:<42} {:<14} {:<24} PUBLISHED", "KEY", "REVISION", "TITLE");
    for item in items {
        let title = item.parts.iter().find(|p| p.key == "title").map_or("", |p| p.text.as_str());
        let published = item
            .extensions
            .get("connector.rss")
            .and_then(|e| e.data.pointer("/item/published"))
            .and_then(Value::as_str)
            .unwrap_or("-");
        let revision: String = item.revision.trim_start_matches("sha256:").chars().take(12).collect();
        let key: String = item.record_key.chars().take(42).collect();
        println!("  {key:<42} {revision:<14} {title:<24} {published}");
    }
}

/// A file that the build put beside the programs.
fn built(name: &str) -> Result<PathBuf, Failure> {
    let folder = std::env::current_exe()?.parent().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    Ok(folder.join(name))
}

async fn load(runtime: &Runtime, name: &str) -> Result<Plugin, Failure> {
    let pin = Pin { path: built(name)?, sha256: None, configuration: "{}".to_owned() };
    Ok(Plugin::load(runtime, &pin, None).await?)
}

fn check(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what.into()) }
}

async fn demo() -> Result<(), Failure> {
    let server = FakeFeedServer::start().await;
    server.serve_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/feeds"))?;
    println!("1. The fake feed server listens on {}", server.url("/"));

    println!("\n2. Compiling the component for the sandbox (about a second)");
    let runtime = Runtime::new(Limits { cpu: Duration::from_secs(1), ..Limits::DEFAULT })?;
    let plugin = load(&runtime, "connector.rss.wasm").await?;
    println!("   {} {}, {}", plugin.descriptor().id, plugin.descriptor().version, plugin.digest());
    let client = Client::new(Arc::new(Dns::system()?), Tls::new(&[])?, "host-shim-demo (nobody@example.org)")?;

    println!("\n3. Polling {} feeds", FEEDS.len());
    let mut checkpoints = Vec::new();
    for name in FEEDS {
        let outcome = poll(&plugin, &client, &server.url(&format!("/{name}")), None).await?;
        println!("\n   {name}: status {}, {} items", outcome.status.unwrap_or(0), outcome.items.len());
        table(&outcome.items);
        check(!outcome.items.is_empty(), "a feed gave no items")?;
        checkpoints.push(outcome.checkpoint);
    }

    println!("\n4. Polling them again: nothing changed");
    for (name, checkpoint) in FEEDS.iter().zip(&checkpoints) {
        let outcome = poll(&plugin, &client, &server.url(&format!("/{name}")), checkpoint.clone()).await?;
        println!("   {name}: status {}, {} items", outcome.status.unwrap_or(0), outcome.items.len());
        check(outcome.status == Some(304) && outcome.items.is_empty(), "an unchanged feed was read again")?;
    }

    println!("\n5. Editing one item of rss-2.0.rss: it comes back alone, with a new revision");
    server.edit("/rss-2.0.rss", "The ferry is", "The night ferry is")?;
    let first = checkpoints.first().cloned().flatten();
    let outcome = poll(&plugin, &client, &server.url("/rss-2.0.rss"), first).await?;
    table(&outcome.items);
    check(outcome.items.len() == 1, "not exactly the edited item came back")?;

    println!("\n6. A component that never stops computing, beside one that works");
    let hostile = load(&runtime, "hostile.wasm").await?;
    let (bad_client, bad_url) = (client.clone(), server.url("/"));
    let bad = tokio::spawn(async move { spin(&hostile, &bad_client, &bad_url).await });
    let good = poll(&plugin, &client, &server.url("/atom-1.0.atom"), None).await?;
    println!("   good component: {} items while the other one spins", good.items.len());
    let error = bad.await?;
    println!("   hostile component: {error}");
    check(error.contains("plugin_timeout"), "the hostile component was not stopped in time")?;
    Ok(())
}

/// One run of the hostile component in its mode `spin`: why it ended.
async fn spin(hostile: &Plugin, client: &Client, url: &str) -> String {
    let network = Arc::new(Network::new(client.clone(), Rules::open(), None, None));
    let call = Invocation {
        instance_id: "hostile".to_owned(),
        kind: "hostile".to_owned(),
        config: json!({"mode": "spin", "url": url}).to_string(),
        now: NOW.to_owned(),
        ..Invocation::default()
    };
    match Session::new(hostile.clone(), network, call).next().await {
        Some(Err(error)) => format!("{}: {error}", error.code()),
        _ => "it came to an end".to_owned(),
    }
}
