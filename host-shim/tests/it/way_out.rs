//! The client against names that change, certificates that are wrong, and servers that misbehave: every part real but
//! the world outside.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fake_feed_server::{
    Authority, Certificate, FakeDns, FakeFeedServer, Question, Redirect, RoughServer, Route, Step, TlsFront,
};
use host_shim::egress::client::{Client, Request, Response, Rules, Timings};
use host_shim::egress::credential::{Credential, Placement};
use host_shim::egress::dial::{Tls, authorities};
use host_shim::egress::error::{Failure, Kind, Stage, TlsProblem};
use host_shim::egress::resolver::Dns;

use crate::support::PROGRAM;

/// Times in which a test can wait for the end of patience.
const SHORT: Timings = Timings {
    request: Duration::from_secs(10),
    turn: Duration::from_secs(10),
    dns: Duration::from_secs(5),
    connect: Duration::from_millis(400),
    tls: Duration::from_millis(400),
    first_byte: Duration::from_millis(400),
    pace_grace: Duration::from_millis(400),
    pace: 1_024,
};

fn rules(json: serde_json::Value) -> Rules {
    Rules::of(&json.to_string()).unwrap().0
}

/// A client that asks this name server and trusts this authority.
fn client(dns: &FakeDns, authority: Option<&Authority>) -> Client {
    let trusted = authority.map(|a| authorities(a.pem().as_bytes()).unwrap()).unwrap_or_default();
    let dns = Arc::new(Dns::servers(&[dns.address()]).unwrap());
    Client::new(dns, Tls::new(&trusted).unwrap(), "tests").unwrap().with_timings(SHORT)
}

async fn names(addresses: &'static [&'static str]) -> FakeDns {
    FakeDns::start(move |_| Some(addresses.iter().map(|a| a.parse().unwrap()).collect())).await.unwrap()
}

async fn get(client: &Client, url: &str, rules: &Rules) -> Result<Response, Failure> {
    client.send(&Request { url: url.to_owned(), ..Request::default() }, rules).await
}

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

/// A name whose answer changes at each question: what is dialed is what was judged, or nothing.
#[tokio::test]
async fn a_rebinding_name_never_gets_a_connection_to_a_refused_address() {
    let steps = || vec![Step::ReadRequest, Step::Send(HELLO.to_vec())];
    let allowed = RoughServer::start_on("127.0.0.2:0".parse().unwrap(), steps()).await.unwrap();
    let port = allowed.address().port();
    let refused = RoughServer::start_on(SocketAddr::from(([127, 0, 0, 1], port)), steps()).await.unwrap();
    let dns = FakeDns::start(|question: &Question| {
        let turn: &[&str] = match (question.v6, question.before % 3) {
            (true, _) => &[],
            (false, 0) => &["127.0.0.2"],
            (false, 1) => &["127.0.0.1"],
            (false, _) => &["127.0.0.2", "127.0.0.1"],
        };
        Some(turn.iter().map(|a| a.parse().unwrap()).collect())
    })
    .await
    .unwrap();
    let (client, rules) = (client(&dns, None), rules(serde_json::json!({"allow_networks": ["127.0.0.2/32"]})));
    let mut answered = 0;
    for turn in 0..12 {
        match get(&client, &format!("http://rebind.site.org:{port}/"), &rules).await {
            Ok(answer) => {
                assert_eq!((turn % 3, answer.body.as_slice()), (0, b"hello".as_slice()));
                answered += 1;
            }
            Err(failure) => assert!(matches!(failure, Failure::Address { .. }), "{turn}: {failure}"),
        }
    }
    assert_eq!((answered, allowed.connections(), refused.connections()), (4, 4, 0));
    // One question for each family and request: there is no second look-up behind the verdict.
    assert_eq!(dns.asked().iter().filter(|q| !q.v6).count(), 12);
    assert!(dns.asked().iter().all(|q| q.name == "rebind.site.org"));
}

#[tokio::test]
async fn one_refused_address_of_either_family_refuses_the_name() {
    let dns = names(&["93.184.215.14", "::1"]).await;
    let failure = get(&client(&dns, None), "http://mixed.site.org/", &Rules::default()).await.unwrap_err();
    assert!(matches!(failure, Failure::Address { address, .. } if address == "::1".parse::<IpAddr>().unwrap()));
    let nobody = FakeDns::start(|_| None).await.unwrap();
    let failure = get(&client(&nobody, None), "http://nowhere.site.org/", &Rules::default()).await.unwrap_err();
    assert_eq!(failure.kind(), Kind::Dns);
    let empty = names(&[]).await;
    assert_eq!(
        get(&client(&empty, None), "http://empty.site.org/", &Rules::default()).await.unwrap_err().kind(),
        Kind::Dns
    );
}

#[tokio::test]
async fn a_host_opened_by_name_is_resolved_and_judged() {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", Route::new("here", "text/plain"));
    let dns = names(&["127.0.0.1"]).await;
    let client = client(&dns, None);
    let url = format!("http://nas.lan:{}/feed", server.address().port());
    for (opened, kind) in [
        (serde_json::json!({}), Some(Kind::AddressNotAllowed)),
        (serde_json::json!({"allow_hosts": ["nas.lan"]}), Some(Kind::AddressNotAllowed)),
        (serde_json::json!({"allow_networks": ["127.0.0.1/32"]}), Some(Kind::AddressNotAllowed)),
        (serde_json::json!({"allow_hosts": ["nas.lan"], "allow_networks": ["127.0.0.1/32"]}), None),
    ] {
        let answer = get(&client, &url, &rules(opened)).await;
        assert_eq!(answer.err().map(|f| f.kind()), kind);
    }
    assert_eq!(server.requests().len(), 1);
}

async fn front(authority: &Authority, server: &FakeFeedServer, name: &str, what: Certificate) -> TlsFront {
    authority.front(server.address(), name, what).await.unwrap()
}

#[tokio::test]
async fn each_fault_of_a_certificate_has_its_name_for_the_operator_alone() {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", Route::new("here", "text/plain"));
    let (authority, stranger) = (Authority::new().unwrap(), Authority::new().unwrap());
    let dns = names(&["127.0.0.1"]).await;
    let client = client(&dns, Some(&authority));
    let rules = rules(serde_json::json!({"allow_networks": ["127.0.0.1/32"]}));
    let of = |front: &TlsFront| format!("https://feeds.site.org:{}/feed", front.address().port());
    let good = front(&authority, &server, "feeds.site.org", Certificate::Good).await;
    assert_eq!(get(&client, &of(&good), &rules).await.unwrap().body, b"here");
    for (signed_by, what, expected) in [
        (&authority, Certificate::Expired, TlsProblem::Expired),
        (&authority, Certificate::NotYetValid, TlsProblem::NotYetValid),
        (&authority, Certificate::OtherName, TlsProblem::NameMismatch),
        (&stranger, Certificate::Good, TlsProblem::UnknownIssuer),
    ] {
        let front = front(signed_by, &server, "feeds.site.org", what).await;
        let failure = get(&client, &of(&front), &rules).await.unwrap_err();
        assert!(matches!(&failure, Failure::Tls { problem, .. } if *problem == expected), "{what:?}: {failure}");
        assert_eq!(failure.kind(), Kind::Tls);
    }
    // A server that speaks HTTP where TLS is expected.
    let plain = format!("https://feeds.site.org:{}/feed", server.address().port());
    let failure = get(&client, &plain, &rules).await.unwrap_err();
    assert!(matches!(failure, Failure::Tls { problem: TlsProblem::Protocol, .. }), "{failure}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_redirect_may_go_to_https_and_never_back() {
    let server = FakeFeedServer::start().await;
    let authority = Authority::new().unwrap();
    let dns = names(&["127.0.0.1"]).await;
    let secure = front(&authority, &server, "feeds.site.org", Certificate::Good).await;
    let client = client(&dns, Some(&authority));
    let rules = rules(serde_json::json!({"allow_networks": ["127.0.0.1/32"]}));
    let http = |path: &str| format!("http://feeds.site.org:{}{path}", server.address().port());
    let https = |path: &str| format!("https://feeds.site.org:{}{path}", secure.address().port());
    let to = |location: String| Route {
        redirect: Some(Redirect { status: 301, location: Some(location) }),
        ..Route::new("", "text/plain")
    };
    server.serve("/feed", Route::new("here", "text/plain"));
    server.serve("/up", to(https("/feed")));
    server.serve("/down", to(http("/feed")));
    server.serve("/relative", to("/feed".to_owned()));
    server.serve("/scheme-relative", to(https("/feed").replacen("https:", "", 1)));
    assert_eq!(get(&client, &http("/up"), &rules).await.unwrap().body, b"here");
    assert_eq!(get(&client, &https("/relative"), &rules).await.unwrap().final_url, https("/feed"));
    assert_eq!(get(&client, &https("/scheme-relative"), &rules).await.unwrap().final_url, https("/feed"));
    assert_eq!(get(&client, &https("/down"), &rules).await.unwrap_err().kind(), Kind::InsecureRedirect);
}

/// Go's rule, request by request, with the chains of its CVEs: who gets to see the secret.
#[tokio::test]
async fn a_credential_is_shown_to_its_own_host_and_below_it_only() {
    let server = FakeFeedServer::start().await;
    let authority = Authority::new().unwrap();
    let secure = front(&authority, &server, "a.site.org", Certificate::Good).await;
    let dns = names(&["127.0.0.1"]).await;
    let client = client(&dns, Some(&authority));
    let rules = rules(serde_json::json!({"allow_networks": ["127.0.0.1/32"]}));
    let (plain, tls) = (server.address().port(), secure.address().port());
    // Each chain, and at which of its requests the credential is sent.
    let table: [(&[&str], &[bool]); 9] = [
        (&["a.site.org", "a.site.org"], &[true, true]),
        (&["a.site.org", "www.a.site.org"], &[true, true]),
        (&["www.a.site.org", "a.site.org"], &[true, false]),
        (&["a.site.org", "b.site.org"], &[true, false]),
        (&["a.site.org", "a.site.org.evil.org"], &[true, false]),
        (&["a.site.org", "xa.site.org"], &[true, false]),
        (&["a.site.org", "b.site.org", "b.site.org", "a.site.org"], &[true, false, false, false]),
        (&["a.site.org", "www.a.site.org", "a.site.org"], &[true, true, true]),
        (&["a.site.org", "https:a.site.org"], &[true, true]),
    ];
    for (n, (chain, sent)) in table.iter().enumerate() {
        let address = |hop: usize| match chain[hop].strip_prefix("https:") {
            Some(host) => format!("https://{host}:{tls}/{n}/{hop}"),
            None => format!("http://{}:{plain}/{n}/{hop}", chain[hop]),
        };
        for hop in 0..chain.len() {
            let next = hop + 1 < chain.len();
            server.serve(
                &format!("/{n}/{hop}"),
                Route {
                    redirect: next.then(|| Redirect { status: 302, location: Some(address(hop + 1)) }),
                    ..Route::new("end", "text/plain")
                },
            );
        }
        for (placement, name) in [
            (Placement::Bearer, "authorization"),
            (Placement::Header("X-Api-Key".into()), "x-api-key"),
            (Placement::Query("token".into()), ""),
        ] {
            let before = server.requests().len();
            let credential = Credential::new(r#"{"s":"hunter2"}"#, &[("s".to_owned(), placement)]).unwrap();
            let request = Request { url: address(0), credential: Some(credential), ..Request::default() };
            let answer = client.send(&request, &rules).await.unwrap();
            assert!(!format!("{answer:?}").contains("hunter2"));
            let seen: Vec<bool> = server.requests()[before..]
                .iter()
                .map(|r| {
                    r.header(name).is_some_and(|v| v.contains("hunter2"))
                        || r.query.as_ref().is_some_and(|q| q.contains("hunter2"))
                })
                .collect();
            // A credential in the query goes to the first address alone.
            let expected: Vec<bool> =
                if name.is_empty() { (0..chain.len()).map(|hop| hop == 0).collect() } else { sent.to_vec() };
            assert_eq!(seen, expected, "{chain:?} {name}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_at_any_stage_is_a_connection_failure() {
    let dns = names(&["127.0.0.1"]).await;
    let client = client(&dns, None);
    let rules = rules(serde_json::json!({"allow_networks": ["127.0.0.1/32"]}));
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n".to_vec();
    for (stage, steps) in [
        ("connected", vec![Step::Reset]),
        ("request", vec![Step::ReadRequest, Step::Reset]),
        ("status line", vec![Step::ReadRequest, Step::Send(b"HTTP/1.1 20".to_vec()), Step::Reset]),
        ("header", vec![Step::ReadRequest, Step::Send(b"HTTP/1.1 200 OK\r\nContent-Le".to_vec()), Step::Reset]),
        ("body", vec![Step::ReadRequest, Step::Send(head.clone()), Step::Send(b"half".to_vec()), Step::Reset]),
        ("closed in the body", vec![Step::ReadRequest, Step::Send(head), Step::Send(b"half".to_vec())]),
    ] {
        let server = RoughServer::start(steps).await.unwrap();
        let failure = get(&client, &format!("http://{}/", server.address()), &rules).await.unwrap_err();
        assert_eq!(failure.kind(), Kind::Connection, "{stage}: {failure}");
        // The handshake of TLS meets the same.
        let failure = get(&client, &format!("https://{}/", server.address()), &rules).await.unwrap_err();
        assert!(matches!(failure.kind(), Kind::Connection | Kind::Tls | Kind::Timeout), "{stage}: {failure}");
    }
}

#[tokio::test]
async fn each_part_of_a_request_has_its_own_time() {
    let dns = names(&["127.0.0.1"]).await;
    let client = client(&dns, None);
    let rules = rules(serde_json::json!({"allow_networks": ["127.0.0.1/32"]}));
    let head = || Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n".to_vec());
    for (scheme, steps, stage) in [
        ("https", vec![Step::Stall], Stage::Tls),
        ("http", vec![Step::Stall], Stage::FirstByte),
        ("http", vec![Step::ReadRequest, Step::Send(b"HTTP/1.1 200".to_vec()), Step::Stall], Stage::FirstByte),
        ("http", vec![Step::ReadRequest, head(), Step::Stall], Stage::Pace),
        ("http", vec![Step::ReadRequest, head(), Step::Send(vec![b'x'; 100]), Step::Stall], Stage::Pace),
        ("http", vec![Step::ReadRequest, head(), Step::Drip(Duration::from_millis(20))], Stage::Pace),
        // Header fields that drip are no answer either.
        (
            "http",
            vec![
                Step::ReadRequest,
                Step::Send(b"HTTP/1.1 200 OK\r\nX: ".to_vec()),
                Step::Drip(Duration::from_millis(20)),
            ],
            Stage::FirstByte,
        ),
    ] {
        let server = RoughServer::start(steps.clone()).await.unwrap();
        let failure = get(&client, &format!("{scheme}://{}/", server.address()), &rules).await.unwrap_err();
        assert_eq!(failure, Failure::Timeout(stage), "{steps:?}");
    }
    // A name server that never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let dns = Arc::new(Dns::servers(&[silent.local_addr().unwrap()]).unwrap());
    let client = Client::new(dns, Tls::new(&[]).unwrap(), "tests").unwrap();
    let client = client.with_timings(Timings { dns: Duration::from_millis(300), ..SHORT });
    let failure = get(&client, "http://slow.site.org/", &Rules::default()).await.unwrap_err();
    assert_eq!(failure, Failure::Timeout(Stage::Dns));
}

#[tokio::test]
async fn a_bomb_of_each_coding_is_refused() {
    use std::io::Write as _;
    let zeros = vec![0_u8; 24 * 1_024 * 1_024];
    let level = flate2::Compression::best();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
    gzip.write_all(&zeros).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
    zlib.write_all(&zeros).unwrap();
    let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), level);
    raw.write_all(&zeros).unwrap();
    let mut brotli = Vec::new();
    brotli::CompressorWriter::new(&mut brotli, 4_096, 5, 22).write_all(&zeros).unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(zeros.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    let server = FakeFeedServer::start().await;
    for (path, coding, body) in [
        ("/gzip", "gzip", gzip.finish().unwrap()),
        ("/zlib", "deflate", zlib.finish().unwrap()),
        ("/deflate", "deflate", raw.finish().unwrap()),
        ("/br", "br", brotli),
        ("/zstd", "zstd", zstd),
    ] {
        let headers = vec![("Content-Encoding".to_owned(), coding.to_owned())];
        server.serve(path, Route { headers, ..Route::new(body, "application/xml") });
        let dns = names(&[]).await;
        let failure = get(&client(&dns, None), &server.url(path), &Rules::open()).await.unwrap_err();
        assert_eq!(failure.kind(), Kind::ResponseTooLarge, "{path}: {failure}");
    }
    let nested = vec![("Content-Encoding".to_owned(), "gzip, gzip, gzip".to_owned())];
    server.serve("/nested", Route { headers: nested, ..Route::new("x", "application/xml") });
    let dns = names(&[]).await;
    let failure = get(&client(&dns, None), &server.url("/nested"), &Rules::open()).await.unwrap_err();
    assert_eq!(failure.kind(), Kind::UnsupportedEncoding);
}

#[tokio::test]
async fn two_requests_at_a_time_go_to_one_host() {
    let server = RoughServer::start(vec![Step::ReadRequest, Step::Stall]).await.unwrap();
    let dns = names(&[]).await;
    let client = client(&dns, None).with_timings(Timings { first_byte: Duration::from_millis(600), ..SHORT });
    let url = format!("http://{}/", server.address());
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (client, url) = (client.clone(), url.clone());
        asking.spawn(async move { get(&client, &url, &Rules::open()).await.unwrap_err() });
    }
    // When the first has run out of patience, the third has at most begun.
    let first = asking.join_next().await.unwrap().unwrap();
    assert_eq!(first, Failure::Timeout(Stage::FirstByte));
    assert!(server.connections() <= 4, "{}", server.connections());
    while asking.join_next().await.is_some() {}
    assert_eq!(server.connections(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_of_the_environment_and_alternative_services_are_ignored() {
    let elsewhere = RoughServer::start(vec![Step::Stall]).await.unwrap();
    let server = FakeFeedServer::start().await;
    let feed =
        "<rss version=\"2.0\"><channel><title>t</title><item><guid>1</guid><title>a</title></item></channel></rss>";
    let alternative = format!("h3=\"{0}\", h2=\"{0}\"; ma=3600", elsewhere.address());
    server.serve(
        "/feed",
        Route { headers: vec![("Alt-Svc".to_owned(), alternative)], ..Route::new(feed, "application/rss+xml") },
    );
    let proxy = format!("http://{}", elsewhere.address());
    for _ in 0..2 {
        let poll = std::process::Command::new(PROGRAM)
            .args(["poll", "--allow-private-addresses", "--json", &server.url("/feed")])
            .envs(["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"].map(|name| (name, &proxy)))
            .output()
            .unwrap();
        assert!(poll.status.success(), "{}", String::from_utf8_lossy(&poll.stderr));
    }
    assert_eq!((server.requests_for("/feed").len(), elsewhere.connections()), (2, 0));
}
