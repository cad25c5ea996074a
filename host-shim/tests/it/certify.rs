//! Certification passes the connector and refuses each hostile component with the right reason.

use std::fs;

use fake_feed_server::{FakeFeedServer, Route};
use host_shim::certify::certify;
use host_shim::certify::fixture::{built_in, read_folder};
use serde_json::json;

use crate::hostile::hostile;
use crate::service::folder;
use crate::support::{PROGRAM, component, connector, fixtures};

#[tokio::test(flavor = "multi_thread")]
async fn the_connector_is_certified() {
    let plugin = connector().await;
    for set in [
        built_in("rss"),
        read_folder(&fixtures().join("feeds"), "rss").unwrap(),
        read_folder(&fixtures().join("certify"), "rss").unwrap(),
    ] {
        let checks = certify(&plugin, &set).await;
        let failed: Vec<_> = checks.iter().filter(|c| !c.ok).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        for check in ["imports", "descriptor", "invoke", "credentials", "resume", "deterministic"] {
            assert!(checks.iter().any(|c| c.check == check), "{check}");
        }
    }
}

/// The example of `docs/connectors.md`, as its author would try it.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_is_certified_and_polls() {
    let example = component("connector.lines.wasm");
    let own = fixtures().parent().unwrap().join("host-shim/guests/lines/fixtures");
    let server = FakeFeedServer::start().await;
    let document = fs::read(own.join("three-lines.txt")).unwrap();
    server.serve("/lines", Route::new(document, "text/plain"));
    let (url, checkpoint) = (server.url("/lines"), folder("lines").join("checkpoint"));
    let program = move |arguments: &[&str]| {
        let output = std::process::Command::new(PROGRAM).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect::<Vec<serde_json::Value>>()
    };
    tokio::task::spawn_blocking(move || {
        let example = example.to_str().unwrap();
        let report = program(&["certify", "--json", example, "--fixtures", own.to_str().unwrap()]);
        assert_eq!(report.last().unwrap()["certified"], true);
        let checkpoint = checkpoint.to_str().unwrap();
        let poll =
            ["--plugin", example, "poll", "--json", "--allow-private-addresses", "--checkpoint", checkpoint, &url];
        let first = program(&poll);
        let texts: Vec<_> = first.iter().filter_map(|l| l["parts"][0]["text"].as_str()).collect();
        assert_eq!(texts, ["Low water at six", "High water at noon", "Fog"]);
        // The entity tag went back: nothing is sent again.
        assert_eq!(program(&poll).len(), 1);
    })
    .await
    .unwrap();
    let second = server.requests_for("/lines")[1].header("if-none-match").map(str::to_owned);
    assert!(second.is_some_and(|tag| tag.starts_with('"')));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_hostile_component_is_refused_with_its_reason() {
    let plugin = hostile().await;
    for (mode, check, reason) in [
        ("spin", "invoke", "plugin_timeout"),
        ("allocate", "invoke", "plugin_memory"),
        ("recurse", "invoke", "plugin_trap"),
        ("panic", "invoke", "plugin_trap"),
        ("huge-answer", "invoke", "response_too_large"),
        ("huge-log", "invoke", "response_too_large"),
        ("http-loop", "invoke", "plugin_timeout"),
        ("same-key", "invoke", "duplicate_record_key"),
        ("many-items", "invoke", "too_many_items"),
        ("undeclared-namespace", "invoke", "undeclared_namespace"),
        ("bad-code", "invoke", "invalid_error"),
        ("http-held", "credentials", "credential"),
        ("honest", "resume", "checkpoint_not_honoured"),
        ("honest", "error_class", "a refused request counted as a success"),
        ("honest", "invalid_request", "taken for a good one"),
    ] {
        let folder = folder("certify");
        let fixture =
            json!({"connector": {"kind": "hostile", "config": {"mode": mode, "url": "http://x.example.org/"}}});
        fs::write(folder.join("hostile.fixture.json"), fixture.to_string()).unwrap();
        let checks = certify(&plugin, &read_folder(&folder, "hostile").unwrap()).await;
        let failed = checks.iter().find(|c| !c.ok && c.check == check);
        let found = failed.and_then(|c| c.reason.as_deref()).unwrap_or("it passed");
        assert!(found.contains(reason), "{mode}: {found}");
    }
}

#[test]
fn what_is_no_fixture_is_named() {
    let folder = folder("fixtures");
    assert!(read_folder(&folder, "rss").unwrap_err().to_string().contains("no fixture"));
    for (text, word) in [("{", "EOF"), ("{\"connector\":{}}", "kind"), ("{\"colour\":1}", "colour")] {
        fs::write(folder.join("bad.fixture.json"), text).unwrap();
        assert!(read_folder(&folder, "rss").unwrap_err().to_string().contains(word), "{text}");
    }
}
