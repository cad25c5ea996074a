//! Quivr's plugin protocol over real HTTP, with the shapes of plugin API 0.3.

use fake_feed_server::{Auth, Caller, FakeFeedServer, Route};
use host_shim::engine::pin::Digest;
use host_shim::quivr::{MANIFEST, QuivrPlugin};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{client, connector, fixtures};

const FETCH: &str = "/v0/contributions/connector/fetch";
const CHECK: &str = "/v0/contributions/connector/check_credential";

async fn plugin() -> Caller {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = QuivrPlugin::new(connector().await, client()).router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    Caller { address, key: String::new() }
}

fn request(url: &str) -> Value {
    json!({
        "invocation_id": "dev-invocation-0", "contribution": "connector", "organization_id": "org",
        "configuration": {"allow_private_addresses": true},
        "connector": {
            "instance_id": "i", "kind": "rss", "config": {"url": url}, "corpus_id": "c", "source_namespace": "n",
        },
        "credential": null, "checkpoint": null, "now": "2026-09-28T12:00:00Z", "page_in_run": 0, "reads_today": 0,
    })
}

fn check_request(url: &str) -> Value {
    let mut request = request(url);
    for name in ["checkpoint", "page_in_run", "reads_today"] {
        request.as_object_mut().unwrap().remove(name);
    }
    request
}

#[tokio::test]
async fn discovery_and_health_say_what_the_manifest_says() {
    let quivr = plugin().await;
    assert_eq!(quivr.get("/v0/health").await.unwrap().body, json!({"status": "ok"}));
    let discovery = quivr.get("/v0/discovery").await.unwrap().body;
    assert_eq!((discovery["id"].clone(), discovery["version"].clone()), ("connector.rss".into(), "1.0.0".into()));
    assert_eq!(discovery["manifest_digest"], Digest::of(MANIFEST.as_bytes()).to_string());
    let connector = &discovery["contributions"]["connector"];
    assert_eq!(connector["timeout_ms"], 30_000);
    assert_eq!(
        connector["limits"],
        json!({"max_items": 250, "max_response_bytes": 16_777_216, "max_checkpoint_bytes": 131_072})
    );
    assert_eq!(connector["kinds"]["rss"]["default_interval_seconds"], 300);
    for line in
        ["id: connector.rss", "version: 1.0.0", "timeout_ms: 30000", "max_items: 250", "max_checkpoint_bytes: 131072"]
    {
        assert!(MANIFEST.contains(line), "{line}");
    }
}

#[tokio::test]
async fn a_feed_is_fetched_page_by_page_as_that_contract_knows_it() {
    let server = FakeFeedServer::start().await;
    server.serve_folder(&fixtures().join("feeds")).unwrap();
    let quivr = plugin().await;
    let url = server.url("/rss-2.0.rss");
    let first = quivr.post(FETCH, &request(&url)).await.unwrap();
    assert_eq!(first.status, 200, "{first:?}");
    let members: Vec<_> = first.body.as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, ["checkpoint", "items", "more"]);
    let item = &first.body["items"][1];
    assert_eq!(item["record_key"], "harbour-2");
    assert_eq!(item["content"]["kind"], "manifest");
    assert_eq!(item["content"]["parts"][2]["parent_key"], "body");
    assert_eq!(
        item["content"]["parts"][0],
        json!({"key": "title", "role": "title", "content": {"kind": "text", "text": "The ferry"}})
    );
    assert_eq!(item["extensions"].as_object().unwrap().keys().collect::<Vec<_>>(), ["connector.rss"]);
    assert!(first.body["checkpoint"]["seen"].as_array().unwrap().len() == 3);

    // The ttl of the document has not passed: as it came in, and no request.
    let mut second = request(&url);
    second["checkpoint"] = first.body["checkpoint"].clone();
    let early = quivr.post(FETCH, &second).await.unwrap();
    assert_eq!(
        early.body,
        json!({"items": [], "checkpoint": first.body["checkpoint"], "more": false, "not_due": true})
    );
    assert_eq!(server.requests().len(), 1);
    second["now"] = "2026-09-28T13:00:00Z".into();
    let later = quivr.post(FETCH, &second).await.unwrap();
    assert_eq!((later.body["items"].clone(), later.body["more"].clone()), (json!([]), json!(false)));
}

/// The two fixtures of Quivr's own plugin, which need no network.
#[tokio::test]
async fn the_network_free_fixtures_hold() {
    let quivr = plugin().await;
    let mut early = request("https://feeds.example.org/feed");
    let checkpoint = json!({"etag": "\"a\"", "ttl_seconds": 900, "not_before": "2026-01-01T00:15:00Z"});
    early["now"] = "2026-01-01T00:00:00Z".into();
    early["checkpoint"] = checkpoint.clone();
    let answer = quivr.post(FETCH, &early).await.unwrap();
    assert_eq!(answer.body, json!({"items": [], "checkpoint": checkpoint, "more": false, "not_due": true}));

    let mut private = request("http://127.0.0.1:9/feed");
    private["configuration"] = json!({});
    private["credential"] = json!({"token": "fixture-token-1"});
    let answer = quivr.post(FETCH, &private).await.unwrap();
    assert_eq!(answer.status, 422);
    assert_eq!(
        (answer.body["error_class"].clone(), answer.body["code"].clone()),
        ("source".into(), "address_not_allowed".into())
    );
    assert_eq!(answer.body["retryable"], false);
    let mut check = check_request("http://127.0.0.1:9/feed");
    check["configuration"] = json!({});
    check["credential"] = json!({"token": "fixture-token-1"});
    assert_eq!(quivr.post(CHECK, &check).await.unwrap().body, json!({"status": "ok"}));
}

#[tokio::test]
async fn errors_come_in_their_envelope_with_their_status() {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", Route::new("<rss version=\"2.0\"><channel/></rss>", "text/xml"));
    let quivr = plugin().await;
    for (status, retry, http, class, code, seconds) in [
        (401, None, 403, "access", "unauthorized", Value::Null),
        (404, None, 422, "source", "not_found", Value::Null),
        (429, Some("90"), 503, "transient", "rate_limited", json!(90)),
    ] {
        server.change("/feed", |r| (r.status, r.retry_after) = (Some(status), retry.map(str::to_owned))).unwrap();
        let answer = quivr.post(FETCH, &request(&server.url("/feed"))).await.unwrap();
        assert_eq!(answer.status, http, "{status}");
        assert_eq!((answer.body["error_class"].clone(), answer.body["code"].clone()), (class.into(), code.into()));
        assert_eq!(
            (answer.body["retryable"].clone(), answer.body["retry_after_seconds"].clone()),
            ((class == "transient").into(), seconds)
        );
    }
}

#[tokio::test]
async fn a_credential_is_attached_by_the_host_and_never_comes_back() {
    let server = FakeFeedServer::start().await;
    let feed = Route {
        auth: Some(Auth::Bearer("s3cret-token".into())),
        ..Route::new("<rss version=\"2.0\"><channel/></rss>", "text/xml")
    };
    server.serve("/feed", feed);
    let quivr = plugin().await;
    let mut call = request(&server.url("/feed"));
    assert_eq!(quivr.post(FETCH, &call).await.unwrap().body["code"], "unauthorized");
    call["credential"] = json!({"token": "s3cret-token"});
    let answer = quivr.post(FETCH, &call).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(!answer.body.to_string().contains("s3cret"));
    let mut check = check_request(&server.url("/feed"));
    check["credential"] = json!({"token": "wrong-token"});
    let refused = quivr.post(CHECK, &check).await.unwrap();
    assert_eq!((refused.status, refused.body["code"].clone()), (403, "unauthorized".into()));
    check["credential"] = json!({"name": "not-a-member"});
    let unreadable = quivr.post(CHECK, &check).await.unwrap();
    assert_eq!((unreadable.status, unreadable.body["code"].clone()), (403, "credential_unreadable".into()));
    assert!(!unreadable.body.to_string().contains("not-a-member"));
}

#[tokio::test]
async fn requests_that_break_the_contract_are_refused_for_good() {
    let quivr = plugin().await;
    let good = request("https://feeds.example.org/feed");
    let with = |pointer: &str, value: Value| {
        let mut body = good.clone();
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    let mut cases = vec![
        with("/contribution", "receiver".into()),
        with("/invocation_id", "".into()),
        with("/connector/instance_id", "x".repeat(129).into()),
        with("/connector/source_namespace", "".into()),
        with("/connector/kind", "atom".into()),
        with("/connector/config", json!([])),
        with("/credential", "secret".into()),
        with("/now", "soon".into()),
        with("/page_in_run", json!(-1)),
    ];
    let mut unknown = good.clone();
    unknown["colour"] = 1.into();
    cases.push(unknown);
    let mut missing = good.clone();
    missing.as_object_mut().unwrap().remove("checkpoint");
    cases.push(missing);
    for body in cases {
        let answer = quivr.post(FETCH, &body).await.unwrap();
        assert_eq!((answer.status, answer.body["retryable"].clone()), (400, false.into()), "{body}");
        assert_eq!(answer.body["code"], "invalid_request");
    }
    for path in [FETCH, CHECK] {
        let answer = quivr.call("POST", path, Some(("application/json", "not json"))).await.unwrap();
        assert_eq!((answer.status, answer.body["code"].clone()), (400, "invalid_request".into()));
    }
    // The check's request has no checkpoint.
    assert_eq!(quivr.post(CHECK, &good).await.unwrap().status, 400);
}
