//! Documents that are odd in one way each: what must come of them, and what must be noted.
//!
//! The facts beside each document were written by hand from the specifications; a fact that is not named is free.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails loudly")]

use std::fs;
use std::path::{Path, PathBuf};

use connector_rss::contract::{Header, Http, HttpFailure, HttpRequest, HttpResponse, Invocation, Item};
use connector_rss::fetch::fetch;
use connector_rss::fuzz::{BODIES, Numbers, mutant};
use serde_json::{Value, json};

struct Serves(Vec<u8>, &'static str);

impl Http for Serves {
    fn send(&mut self, _request: &HttpRequest) -> Result<HttpResponse, HttpFailure> {
        Ok(HttpResponse {
            status: 200,
            headers: vec![Header { name: "content-type".into(), value: self.1.as_bytes().to_vec() }],
            body: self.0.clone(),
            final_url: "https://quay.example.org/feed".into(),
            ..HttpResponse::default()
        })
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

fn files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(fixtures().join(folder)).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

fn data(item: &Item, namespace: &str) -> Value {
    let found = item.extensions.iter().find(|e| e.namespace == namespace);
    found.map_or(Value::Null, |e| serde_json::from_str(&e.data).unwrap())
}

/// What an item says under the names that the facts use.
fn said(item: &Item) -> Value {
    let part = |key| item.parts.iter().find(|p| p.key == key).map(|p| p.text.clone());
    let core = data(item, "connector.rss")["item"].clone();
    let names = |list: &Value| -> Value { list.as_array().into_iter().flatten().map(|a| a["name"].clone()).collect() };
    json!({
        "key": item.record_key, "title": part("title"), "body": part("body"), "link": core["link"],
        "published": core["published"], "updated": core["updated"], "authors": names(&core["authors"]),
        "enclosures": core["enclosures"], "more": data(item, "connector.rss.more"),
    })
}

fn check(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let facts: Value = serde_json::from_slice(&fs::read(path.with_extension("facts.json")).unwrap()).unwrap();
    let media_type = if name.ends_with("json") { "application/feed+json" } else { "text/xml" };
    let call = Invocation {
        kind: "rss".into(),
        config: json!({"url": "https://quay.example.org/feed"}).to_string(),
        now: "2026-09-28T12:00:00Z".into(),
        ..Invocation::default()
    };
    let page = match (fetch(&mut Serves(fs::read(path).unwrap(), media_type), &call), facts["stage"].as_str()) {
        (Ok(page), None) => page,
        (Err(failure), Some(stage)) => {
            assert_eq!(failure.code, "malformed_feed", "{name}");
            assert!(failure.message.contains(&format!("(stage {stage},")), "{name}: {}", failure.message);
            assert!(failure.message.contains(facts["offers"].as_str().unwrap_or("")), "{name}: {}", failure.message);
            return;
        }
        (result, stage) => panic!("{name}: {result:?} where stage {stage:?} is expected"),
    };
    let told: Value = serde_json::from_str(&page.diagnostics).unwrap();
    let codes: Value = told["notes"].as_array().unwrap().iter().map(|n| n["code"].clone()).collect();
    assert_eq!(codes, facts["notes"], "{name}");
    for (fact, member) in [("dialect", "dialect"), ("declared", "dialect_declared")] {
        if let Some(expected) = facts.get(fact) {
            assert_eq!(&told[member], expected, "{name}");
        }
    }
    let window: Vec<&str> = page.window.as_ref().unwrap().iter().map(|w| w.record_key.as_str()).collect();
    let expected = facts["items"].as_array().unwrap();
    assert_eq!(window.len(), expected.len(), "{name}: {window:?}");
    for (key, facts) in window.iter().zip(expected) {
        let item = page.items.iter().find(|i| i.record_key == *key).unwrap();
        let said = said(item);
        for (fact, value) in facts.as_object().unwrap() {
            assert_eq!(&said[fact], value, "{name}, {key}: {fact}");
        }
    }
}

#[test]
fn every_odd_document_gives_its_facts_and_its_notes() {
    let documents: Vec<_> =
        files("odd").into_iter().filter(|p| !p.to_str().unwrap().ends_with(".facts.json")).collect();
    assert!(documents.len() > 25);
    for document in documents {
        check(&document);
    }
}

/// Half a feed is never served: what is left of a document that was cut anywhere is refused, or is the whole of it.
#[test]
fn a_document_that_was_cut_anywhere_is_refused_whole() {
    for name in [
        "odd/clean.xml",
        "odd/media.xml",
        "odd/entities.xml",
        "odd/ampersands.xml",
        "odd/unbalanced.xml",
        "feeds/json-feed-1.1.json",
    ] {
        let whole = fs::read(fixtures().join(name)).unwrap();
        let text = String::from_utf8(whole).unwrap();
        let kept = text.trim_end();
        let call = Invocation {
            kind: "rss".into(),
            config: json!({"url": "https://quay.example.org/feed"}).to_string(),
            now: "2026-09-28T12:00:00Z".into(),
            ..Invocation::default()
        };
        // The last character alone may be missing: it only ends the end tag of the root.
        for end in (0..kept.len() - 1).filter(|end| kept.is_char_boundary(*end)) {
            let cut = kept.as_bytes()[..end].to_vec();
            let result = fetch(&mut Serves(cut, "text/xml"), &call);
            assert!(result.is_err(), "{name} cut at {end} of {}", kept.len());
        }
    }
}

/// The short form of `make fuzz`.
#[test]
fn every_body_holds_over_all_documents_and_what_is_made_from_them() {
    const MUTANTS: usize = 200;
    let documents: Vec<_> = ["odd", "feeds", "refused", "corpus/date"]
        .iter()
        .flat_map(|folder| files(folder))
        .filter(|p| !p.to_str().unwrap().ends_with(".facts.json") && !p.to_str().unwrap().ends_with(".records.json"))
        .map(|p| fs::read(p).unwrap())
        .collect();
    let attacks = fs::read_to_string(fixtures().join("attacks.txt")).unwrap();
    let markup: Vec<Vec<u8>> = files("markup")
        .into_iter()
        .map(|p| fs::read(p).unwrap())
        .chain(attacks.lines().map(|l| l.as_bytes().to_vec()))
        .collect();
    for (name, body) in BODIES {
        let documents = if name == "render" { &markup } else { &documents };
        let mut numbers = Numbers::new(1);
        for (n, seed) in documents.iter().enumerate() {
            body(seed);
            let other = &documents[(n + 1) % documents.len()];
            for _ in 0..MUTANTS {
                body(&mutant(seed, other, &mut numbers));
            }
        }
    }
}
