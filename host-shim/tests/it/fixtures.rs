//! The component makes of each fixture exactly the records that were written down for it.

use std::fs;
use std::sync::Arc;

use host_shim::engine::pin::Digest;
use host_shim::engine::upstream::Response;
use host_shim::runner::document::Document;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{call, connector, fixtures, run_with};

#[derive(Deserialize)]
struct Expected {
    dialect: String,
    window: Vec<String>,
    hints: Value,
    records: Vec<Value>,
}

async fn run(name: &str, body: Vec<u8>) -> Result<crate::support::Run, host_shim::runner::RunError> {
    let url = format!("https://feeds.example.org/{name}");
    let response = Response { status: 200, final_url: url.clone(), body, ..Response::default() };
    run_with(connector().await, Arc::new(Document::new(response)), call(json!({"url": url}), None)).await
}

#[tokio::test]
async fn every_feed_becomes_its_records() {
    let folder = fixtures().join("feeds");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".records.json") {
            continue;
        }
        let expected = path.with_extension("records.json");
        let expected: Expected = serde_json::from_slice(&fs::read(&expected).unwrap()).unwrap();
        let run = run(&name, fs::read(&path).unwrap()).await.unwrap();
        let page = run.last.as_ref().unwrap();
        assert_eq!(page.diagnostics["dialect"], expected.dialect, "{name}");
        assert_eq!(serde_json::to_value(&page.hints).unwrap(), expected.hints, "{name}");
        let window: Vec<_> = page.window.as_ref().unwrap().iter().map(|w| w.record_key.clone()).collect();
        assert_eq!(window, expected.window, "{name}");
        assert_eq!(run.items.len(), expected.records.len(), "{name}");
        for (item, want) in run.items.iter().zip(&expected.records) {
            let key = &item.record_key;
            assert_eq!(key, want["key"].as_str().unwrap(), "{name}");
            let parts: Vec<_> = item.parts.iter().map(|p| json!([p.key, p.role, p.parent_key, p.text])).collect();
            assert_eq!(json!(parts), want["parts"], "{name} {key}");
            let data = &item.extensions["connector.rss"].data;
            assert_eq!(data["item"], want["item"], "{name} {key}");
            assert_eq!(data["feed"], want["feed"], "{name} {key}");
            assert_eq!(item.extensions["connector.rss.provenance"].data, want["provenance"], "{name} {key}");
            assert_eq!(want["provenance"]["key_basis"], want["key_basis"], "{name} {key}");
            let revision = Digest::of(want["revision_of"].as_str().unwrap().as_bytes()).to_string();
            assert_eq!(item.revision, revision, "{name} {key}");
        }
        seen += 1;
    }
    assert!(seen >= 6, "only {seen} feeds were found");
}

#[tokio::test]
async fn what_is_not_a_whole_feed_is_refused_with_its_stage() {
    let folder = fixtures().join("refused");
    let stages: serde_json::Map<String, Value> =
        serde_json::from_slice(&fs::read(folder.join("stages.json")).unwrap()).unwrap();
    assert!(stages.len() >= 9);
    for (name, stage) in &stages {
        let error = run(name, fs::read(folder.join(name)).unwrap()).await.unwrap_err();
        assert_eq!((error.class().name(), error.code()), ("source", "malformed_feed"), "{name}");
        let message = error.to_string();
        assert!(message.contains(&format!("stage {},", stage.as_str().unwrap())), "{name}: {message}");
        assert!(!message.contains("Harbour"), "{name}: the message quotes the document");
    }
}

#[tokio::test]
async fn the_same_input_gives_the_same_bytes() {
    let body = fs::read(fixtures().join("feeds/rss-2.0.rss")).unwrap();
    let (first, second) = (run("x", body.clone()).await.unwrap(), run("x", body).await.unwrap());
    assert_eq!(first.items, second.items);
    assert_eq!(first.last, second.last);
}
