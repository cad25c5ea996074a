//! The client over real sockets: redirects, bounds, broken answers, and addresses that are never dialed.

use std::time::Duration;

use fake_feed_server::{FakeFeedServer, Redirect, Route};
use host_shim::egress::client::{Request, Response, Rules};
use host_shim::egress::error::{Failure, Kind};
use host_shim::engine::upstream::{self, Upstream as _};
use host_shim::runner::network::Network;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::client;

async fn get(url: &str) -> Result<Response, Failure> {
    client().send(&Request { url: url.to_owned(), ..Request::default() }, &Rules::open()).await
}

fn to(location: impl Into<String>) -> Route {
    Route { redirect: Some(Redirect { status: 302, location: Some(location.into()) }), ..Route::new("", "text/plain") }
}

#[tokio::test]
async fn redirects_are_followed_to_the_fifth_and_told() {
    let server = FakeFeedServer::start().await;
    server.serve("/end", Route::new("end", "text/plain"));
    for n in 1..=6 {
        let next = if n == 1 { "/end".to_owned() } else { format!("/{}", n - 1) };
        server.serve(&format!("/{n}"), to(next));
    }
    let answer = get(&server.url("/5")).await.unwrap();
    assert_eq!((answer.body.as_slice(), answer.final_url), (b"end".as_slice(), server.url("/end")));
    let hops: Vec<_> = answer.hops.iter().map(|h| (h.status, h.url.clone())).collect();
    assert_eq!(hops, (1..=5).rev().map(|n| (302, server.url(&format!("/{n}")))).collect::<Vec<_>>());
    assert_eq!(get(&server.url("/6")).await.unwrap_err().kind(), Kind::TooManyRedirects);
}

#[tokio::test]
async fn circles_bad_locations_and_missing_ones_end_in_order() {
    let server = FakeFeedServer::start().await;
    server.serve("/a", to("/b"));
    server.serve("/b", to("/a"));
    server.serve("/file", to("file:///etc/passwd"));
    server.serve("/user", to("http://user:pass@127.0.0.1/"));
    server.serve(
        "/nowhere",
        Route { redirect: Some(Redirect { status: 301, location: None }), ..Route::new("", "text/plain") },
    );
    assert_eq!(get(&server.url("/a")).await.unwrap_err().kind(), Kind::TooManyRedirects);
    assert_eq!(get(&server.url("/file")).await.unwrap_err().kind(), Kind::InvalidUrl);
    assert_eq!(get(&server.url("/user")).await.unwrap_err().kind(), Kind::InvalidUrl);
    assert_eq!(get(&server.url("/nowhere")).await.unwrap().status, 301);
}

#[tokio::test]
async fn refused_addresses_are_never_dialed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let closed = Rules::default();
    for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0"] {
        let request = Request { url: format!("http://{host}:{port}/"), ..Request::default() };
        let failure = client().send(&request, &closed).await.unwrap_err();
        assert_eq!(failure.kind(), Kind::AddressNotAllowed, "{host}");
    }
    // Nobody knocked.
    let knock = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(knock.is_err());
}

#[tokio::test]
async fn a_redirect_to_a_refused_address_is_not_followed() {
    let server = FakeFeedServer::start().await;
    server.serve("/meta", to("http://169.254.169.254/latest/meta-data/"));
    // Loopback is open here, and metadata is refused all the same.
    assert_eq!(get(&server.url("/meta")).await.unwrap_err().kind(), Kind::AddressNotAllowed);
}

#[tokio::test]
async fn the_operator_learns_the_hop_and_the_range_and_the_guest_the_kind() {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", to("/next?secret=1"));
    server.serve("/next", to("http://169.254.169.254/latest/?secret=2"));
    let network = Network::new(client(), Rules::open(), None, None);
    let request = upstream::Request { url: server.url("/feed?secret=0"), ..upstream::Request::default() };
    assert_eq!(network.send(request).await, Err(upstream::Failure::AddressNotAllowed));
    let detail = network.report().detail().unwrap();
    for part in ["redirect 2, http://169.254.169.254/latest/: ", "169.254.169.254 is refused", "cloud metadata"] {
        assert!(detail.contains(part), "{detail}");
    }
    assert!(!detail.contains("secret"), "{detail}");
}

#[tokio::test]
async fn a_body_is_bounded_and_must_be_whole() {
    let server = FakeFeedServer::start().await;
    let bound = 10 * 1_024 * 1_024;
    server.serve("/at", Route::new(vec![b'a'; bound], "text/plain"));
    server.serve("/past", Route::new(vec![b'a'; bound + 1], "text/plain"));
    server.serve("/short", Route { short_by: 10, ..Route::new("a feed that ends", "text/plain") });
    assert_eq!(get(&server.url("/at")).await.unwrap().body.len(), bound);
    assert_eq!(get(&server.url("/past")).await.unwrap_err().kind(), Kind::ResponseTooLarge);
    assert_eq!(get(&server.url("/short")).await.unwrap_err().kind(), Kind::Connection);
    let tighter = Request { url: server.url("/at"), max_body_bytes: Some(1_000), ..Request::default() };
    assert_eq!(client().send(&tighter, &Rules::open()).await.unwrap_err().kind(), Kind::ResponseTooLarge);
}

#[tokio::test]
async fn time_is_bounded() {
    let server = FakeFeedServer::start().await;
    server.serve("/slow", Route { delay: Duration::from_secs(60), ..Route::new("late", "text/plain") });
    let request = Request { url: server.url("/slow"), timeout: Some(Duration::from_millis(100)), ..Request::default() };
    assert_eq!(client().send(&request, &Rules::open()).await.unwrap_err().kind(), Kind::Timeout);
}

/// A server that answers one connection with given bytes.
async fn raw(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4_096];
        let _ = stream.read(&mut buffer).await;
        let _ = stream.write_all(&answer).await;
    });
    url
}

#[tokio::test]
async fn answers_that_are_not_http_or_too_long_in_the_head_are_refused() {
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "a".repeat(128 * 1_024));
    for answer in [
        b"hello there".to_vec(),
        format!("HTTP/1.1 200 OK\r\n{many}\r\nbody").into_bytes(),
        format!("HTTP/1.1 200 OK\r\n{long}\r\nbody").into_bytes(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel".to_vec(),
        Vec::new(),
    ] {
        assert_eq!(get(&raw(answer).await).await.unwrap_err().kind(), Kind::Connection);
    }
    let coded = b"HTTP/1.1 200 OK\r\nContent-Encoding: compress\r\nContent-Length: 1\r\n\r\nx".to_vec();
    assert_eq!(get(&raw(coded).await).await.unwrap_err().kind(), Kind::UnsupportedEncoding);
    let cookies = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 1\r\n\r\nx".to_vec();
    let answer = get(&raw(cookies).await).await.unwrap();
    assert!(answer.headers.iter().all(|(name, _)| name != "set-cookie"));
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_a_dns_failure() {
    // A resolver of our own that knows nothing: no server listens there.
    use host_shim::egress::{client::Client, dial::Tls, resolver::Dns};
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let dns = Dns::servers(&[closed]).unwrap();
    let client = Client::new(std::sync::Arc::new(dns), Tls::new(&[]).unwrap(), "tests").unwrap();
    let request = Request { url: "http://nowhere.site.org/".into(), ..Request::default() };
    assert_eq!(client.send(&request, &Rules::default()).await.unwrap_err().kind(), Kind::Dns);
}
