//! Polls over real sockets: validators, edits, pages, credentials, statuses.

use fake_feed_server::{Auth, Coding, EtagMode, FakeFeedServer, Redirect, Route};
use host_shim::egress::credential::{Credential, Placement};
use host_shim::engine::pin::Digest;
use serde_json::json;

use crate::support::{fixtures, poll, poll_with};

fn rss(items: &str) -> String {
    format!("<rss version=\"2.0\"><channel><title>T</title><link>https://t.example.org/</link>{items}</channel></rss>")
}

fn item(n: usize, text: &str) -> String {
    format!(
        "<item><guid isPermaLink=\"false\">g{n}</guid><title>Item {n}</title><description>{text}</description></item>"
    )
}

async fn serving(body: impl Into<Vec<u8>>) -> (FakeFeedServer, String) {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", Route::new(body, "application/rss+xml"));
    let url = server.url("/feed");
    (server, url)
}

#[tokio::test]
async fn an_unchanged_feed_answers_304_and_an_edited_item_comes_back_alone() {
    let (server, url) = serving(rss(&(item(2, "two") + &item(1, "one")))).await;
    let first = poll(&url, None).await.0.unwrap();
    assert_eq!(first.keys(), ["g1", "g2"]);
    let (second, network) = poll(&url, first.checkpoint()).await;
    let second = second.unwrap();
    assert_eq!(network.report().status, Some(304));
    assert!(second.items.is_empty());
    assert_eq!(second.last.as_ref().unwrap().window, None);
    assert_eq!(second.checkpoint(), first.checkpoint());
    let asked = &server.requests_for("/feed")[1];
    assert_eq!(
        asked.header("if-none-match"),
        Route::new(rss(&(item(2, "two") + &item(1, "one"))), "").etag().as_deref()
    );
    assert_eq!(asked.header("if-modified-since"), Some("Tue, 01 Sep 2026 10:00:00 GMT"));

    server.edit("/feed", "two", "two, corrected").unwrap();
    let third = poll(&url, second.checkpoint()).await.0.unwrap();
    assert_eq!(third.keys(), ["g2"]);
    assert_ne!(third.items[0].revision, first.items[1].revision);
    // Only the document was ever asked for: no linked page, no enclosure, no icon.
    assert!(server.requests().iter().all(|r| r.path == "/feed" && r.method == "GET"));
}

#[tokio::test]
async fn requests_carry_the_hosts_name_and_the_guests_accept() {
    let (server, url) = serving(rss(&item(1, "one"))).await;
    poll(&url, None).await.0.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.header("user-agent"), Some("host-shim-tests (nobody@example.org)"));
    assert!(request.header("accept").unwrap().contains("application/feed+json"));
    assert_eq!(request.header("accept-encoding"), Some("gzip, br, zstd, deflate"));
    for name in ["cookie", "referer", "authorization", "if-none-match", "if-modified-since"] {
        assert_eq!(request.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn a_thousand_items_in_four_pages_cost_one_request() {
    let items: String = (0..1_000).map(|n| item(n, "x")).collect();
    let (server, url) = serving(rss(&items)).await;
    let run = poll(&url, None).await.0.unwrap();
    assert_eq!((run.items.len(), run.pages), (1_000, 4));
    assert_eq!(server.requests().len(), 1);
    assert_eq!(run.last.unwrap().window.unwrap().len(), 1_000);
    let keys: std::collections::BTreeSet<_> = run.items.iter().map(|i| &i.record_key).collect();
    assert_eq!(keys.len(), 1_000);
}

#[tokio::test]
async fn items_beyond_the_first_thousand_are_not_read() {
    let items: String = (0..1_001).map(|n| item(n, "x")).collect();
    let (_server, url) = serving(rss(&items)).await;
    let run = poll(&url, None).await.0.unwrap();
    assert_eq!(run.items.len(), 1_000);
    assert!(!run.keys().contains(&"g1000"));
    assert_eq!(run.last.unwrap().diagnostics["counts"]["beyond_bound"], 1);
}

#[tokio::test]
async fn a_feeds_ttl_is_waited_for_without_a_request() {
    let (server, url) = serving(rss(&format!("<ttl>90</ttl>{}", item(1, "one")))).await;
    let first = poll(&url, None).await.0.unwrap();
    let checkpoint = first.checkpoint();
    // 90 minutes count for at most 60.
    assert!(checkpoint.as_ref().unwrap().contains("\"ttl_seconds\":5400,\"not_before\":\"2026-09-28T13:00:00Z\""));
    let second = poll(&url, checkpoint.clone()).await.0.unwrap();
    assert!(second.last.as_ref().unwrap().not_due);
    assert_eq!(second.checkpoint(), checkpoint);
    assert_eq!(server.requests().len(), 1);
    let at_once = json!({"url": url, "honor_ttl": false});
    assert!(!poll_with(at_once, checkpoint, None, None).await.0.unwrap().last.unwrap().not_due);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_body_that_was_processed_before_is_not_read_again() {
    let body = rss(&item(1, "one"));
    let (server, url) = serving(body.clone()).await;
    server.change("/feed", |r| (r.etag, r.last_modified) = (EtagMode::Absent, false)).unwrap();
    let first = poll(&url, None).await.0.unwrap();
    let (second, network) =
        poll_with(json!({"url": url}), first.checkpoint(), None, Some(Digest::of(body.as_bytes()))).await;
    let second = second.unwrap();
    assert_eq!(network.report().status, Some(200));
    assert_eq!((second.items.len(), second.last.unwrap().window), (0, None));
}

#[tokio::test]
async fn every_status_becomes_its_class_and_code() {
    let (server, url) = serving(rss(&item(1, "one"))).await;
    for (status, retry_after, class, code, seconds) in [
        (401, None, "access", "unauthorized", None),
        (403, None, "access", "forbidden", None),
        (404, None, "source", "not_found", None),
        (410, None, "access", "gone", None),
        (418, None, "source", "http_status", None),
        (429, Some("120"), "transient", "rate_limited", Some(120)),
        (503, Some("Mon, 28 Sep 2026 12:01:30 GMT"), "transient", "server_error", Some(90)),
        (500, None, "transient", "server_error", None),
    ] {
        server.change("/feed", |r| (r.status, r.retry_after) = (Some(status), retry_after.map(str::to_owned))).unwrap();
        let error = poll(&url, None).await.0.unwrap_err();
        assert_eq!(
            (error.class().name(), error.code(), error.retry_after_seconds()),
            (class, code, seconds),
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_credential_is_sent_as_the_descriptor_says_and_never_to_another_host() {
    let (server, url) = serving(rss(&item(1, "one"))).await;
    let other = FakeFeedServer::start().await;
    other.serve("/feed", Route::new(rss(&item(2, "two")), "application/rss+xml"));
    let fields = [
        ("username".to_owned(), Placement::BasicUsername),
        ("password".to_owned(), Placement::BasicPassword),
        ("token".to_owned(), Placement::Bearer),
    ];
    for (json, auth) in [
        (r#"{"username":"ida","password":"k:eel"}"#, Auth::Basic { username: "ida".into(), password: "k:eel".into() }),
        (r#"{"token":"s3cret"}"#, Auth::Bearer("s3cret".into())),
    ] {
        let credential = Credential::new(json, &fields).unwrap();
        server.change("/feed", |r| (r.auth, r.redirect) = (Some(auth), None)).unwrap();
        assert_eq!(poll(&url, None).await.0.unwrap_err().code(), "unauthorized");
        let config = json!({"url": url});
        assert_eq!(poll_with(config.clone(), None, Some(credential.clone()), None).await.0.unwrap().keys(), ["g1"]);
        // The other server is the same address but for its name, so it stands for another host.
        let elsewhere = other.url("/feed").replace("127.0.0.1", "127.0.0.2");
        server
            .change("/feed", |r| {
                (r.auth, r.redirect) = (None, Some(Redirect { status: 302, location: Some(elsewhere) }))
            })
            .unwrap();
        let _ = poll_with(config, None, Some(credential), None).await;
    }
    assert!(other.requests().iter().all(|r| r.header("authorization").is_none()));
}

#[tokio::test]
async fn a_refused_document_leaves_no_item_and_no_checkpoint() {
    let (server, url) = serving(fs_read("refused/html-page.html")).await;
    for name in ["html-page.html", "truncated.rss", "empty.xml", "not-a-feed.xml"] {
        server.change("/feed", |r| r.replace(fs_read(&format!("refused/{name}")))).unwrap();
        let error = poll(&url, None).await.0.unwrap_err();
        assert_eq!((error.class().name(), error.code()), ("source", "malformed_feed"), "{name}");
    }
    assert!(server.requests().iter().all(|r| r.path == "/feed"));
}

fn fs_read(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

#[tokio::test]
async fn compressed_documents_give_the_same_records() {
    let body = rss(&(item(1, "one") + &item(2, "two")));
    let (server, url) = serving(body).await;
    let plain = poll(&url, None).await.0.unwrap();
    for coding in [Coding::Gzip, Coding::Brotli] {
        server.change("/feed", |r| r.coding = Some(coding)).unwrap();
        let run = poll(&url, None).await.0.unwrap();
        assert_eq!(run.items, plain.items, "{coding:?}");
    }
}

#[tokio::test]
async fn quivrs_checkpoint_is_adopted_without_sending_anything_twice() {
    let (server, url) = serving(rss(&(item(2, "two") + &item(1, "one")))).await;
    // g1 is known to the old plugin under a revision of its own; the short key is the hash of "g1".
    let k = Digest::of(b"g1").hex();
    let theirs =
        format!("{{\"etag\":\"\\\"old\\\"\",\"seen\":[{{\"k\":\"{}\",\"r\":\"0123456789abcdef\"}}]}}", &k[..16]);
    let first = poll(&url, Some(theirs)).await.0.unwrap();
    assert_eq!(first.keys(), ["g2"]);
    assert_eq!(server.requests()[0].header("if-none-match"), Some("\"old\""));
    let second = poll(&url, first.checkpoint()).await.0.unwrap();
    assert!(second.items.is_empty());
    server.edit("/feed", "one", "one, corrected").unwrap();
    assert_eq!(poll(&url, second.checkpoint()).await.0.unwrap().keys(), ["g1"]);
}

#[tokio::test]
async fn configs_and_checkpoints_that_cannot_be_read_are_named() {
    for (config, checkpoint, code) in [
        (json!({"url": "ftp://x.example.org/"}), None, "invalid_config"),
        (json!({"url": "https://x.example.org/", "more": 1}), None, "invalid_config"),
        (json!({"url": "https://x.example.org/"}), Some("not json"), "invalid_checkpoint"),
    ] {
        let error = poll_with(config, checkpoint.map(str::to_owned), None, None).await.0.unwrap_err();
        assert_eq!((error.class().name(), error.code()), ("source", code));
    }
}
