//! The fake feed server answers as its scripts say, over real HTTP.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails loudly")]

use fake_feed_server::{Auth, Caller, EtagMode, FakeFeedServer, Redirect, Route};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One GET with header lines; the whole answer as text.
async fn get(server: &FakeFeedServer, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn field<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    head.lines().filter_map(|l| l.split_once(": ")).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v)
}

#[tokio::test]
async fn validators_match_as_http_says() {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", Route::new("one", "text/xml; charset=koi8-r"));
    let first = get(&server, "/feed", "").await;
    assert_eq!((status(&first), field(&first, "content-type")), (200, Some("text/xml; charset=koi8-r")));
    let (etag, modified) = (field(&first, "etag").unwrap(), field(&first, "last-modified").unwrap());
    assert!(etag.starts_with('"'));
    for (headers, expected) in [
        (format!("If-None-Match: {etag}\r\n"), 304),
        (format!("If-None-Match: W/{etag}\r\n"), 304),
        ("If-None-Match: \"other\"\r\n".to_owned(), 200),
        (format!("If-Modified-Since: {modified}\r\n"), 304),
        // The entity tag decides alone where both are sent (RFC 9110, section 13.2.2).
        (format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {modified}\r\n"), 200),
    ] {
        assert_eq!(status(&get(&server, "/feed", &headers).await), expected, "{headers}");
    }
    server.edit("/feed", "one", "two").unwrap();
    assert_eq!(status(&get(&server, "/feed", &format!("If-None-Match: {etag}\r\n")).await), 200);
    server.change("/feed", |r| (r.etag, r.last_modified) = (EtagMode::Weak, false)).unwrap();
    let weak = get(&server, "/feed", "").await;
    assert!(field(&weak, "etag").unwrap().starts_with("W/\"") && field(&weak, "last-modified").is_none());
    assert_eq!(status(&get(&server, "/nothing", "").await), 404);
}

#[tokio::test]
async fn scripts_are_followed_in_order_of_what_stops_a_request_first() {
    let server = FakeFeedServer::start().await;
    let route = Route { short_by: 5, ..Route::new("a body that is cut", "text/xml") };
    server.serve("/feed", route);
    let short = get(&server, "/feed", "").await;
    assert_eq!(field(&short, "content-length"), Some("23"));
    assert!(short.ends_with("a body that is cut"));
    server.change("/feed", |r| (r.status, r.retry_after) = (Some(503), Some("17".into()))).unwrap();
    let busy = get(&server, "/feed", "").await;
    assert_eq!((status(&busy), field(&busy, "retry-after")), (503, Some("17")));
    server.change("/feed", |r| r.redirect = Some(Redirect { status: 308, location: Some("/other".into()) })).unwrap();
    let moved = get(&server, "/feed", "").await;
    assert_eq!((status(&moved), field(&moved, "location")), (308, Some("/other")));
    server.change("/feed", |r| r.auth = Some(Auth::Bearer("key".into()))).unwrap();
    assert_eq!(status(&get(&server, "/feed", "").await), 401);
    assert_eq!(status(&get(&server, "/feed", "Authorization: Bearer key\r\n").await), 308);
}

#[tokio::test]
async fn the_control_endpoint_edits_documents_and_shows_requests() {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", Route::new("one", "text/xml"));
    let control = Caller { address: server.address().to_string(), key: String::new() };
    let post = async |path: &str, body: Value| control.post(path, &body).await.unwrap().status;
    assert_eq!(post("/_control/edit", json!({"path": "/feed", "find": "one", "replace": "two"})).await, 204);
    assert_eq!(post("/_control/edit", json!({"path": "/feed", "find": "nowhere", "replace": ""})).await, 400);
    assert_eq!(post("/_control/edit", json!({"path": "/none", "find": "a", "replace": ""})).await, 400);
    assert!(get(&server, "/feed", "X-Seen: yes\r\n").await.ends_with("two"));
    assert_eq!(post("/_control/route", json!({"path": "/feed", "status": 410})).await, 204);
    assert_eq!(status(&get(&server, "/feed", "").await), 410);
    assert_eq!(post("/_control/route", json!({"path": "/feed", "status": null})).await, 204);
    assert_eq!(status(&get(&server, "/feed", "").await), 200);
    assert_eq!(post("/_control/route", json!({"path": "/new", "body": "new", "etag": "absent"})).await, 204);
    assert!(get(&server, "/new", "").await.ends_with("new"));
    assert_eq!(post("/_control/route", json!({"path": "/feed", "colour": 1})).await, 400);
    let requests = control.get("/_control/requests").await.unwrap().body;
    let paths: Vec<_> = requests.as_array().unwrap().iter().map(|r| r["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/feed", "/feed", "/feed", "/new"]);
    assert!(requests[0]["headers"].as_array().unwrap().contains(&json!(["x-seen", "yes"])));
}
