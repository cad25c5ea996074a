//! Pace against a real server, with a clock that the test holds: what is asked, when, and why then.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fake_feed_server::{FakeFeedServer, Redirect, Route};
use host_shim::corpus::Service;
use host_shim::corpus::hosts::Manners;
use host_shim::corpus::schedule::NEVER;
use host_shim::store::Store;
use host_shim::store::model::{Instance, Outcome};
use host_shim::store::sqlite::Sqlite;
use serde_json::json;

use crate::rest::{Program, add, corpus, prepared, until};
use crate::service::{SETTINGS, World, new, rss, serving};
use crate::support::client;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// The wait until the next run, in milliseconds from now.
fn waits(world: &World, instance: &Instance) -> i64 {
    world.now(instance).next_run_at - world.clock.0.load(Ordering::SeqCst)
}

fn pass(world: &World, ms: i64) {
    world.clock.0.fetch_add(ms, Ordering::SeqCst);
}

#[tokio::test]
async fn a_reader_that_is_turned_away_waits_as_it_is_told() {
    let world = World::new("turned-away").await;
    // The four answers of a dialogue, and 403 in both ways.
    for (n, (status, retry_after, throttled, least, most)) in [
        (429, Some("3600"), true, 60, 66),
        (429, None, true, 60, 66),
        (429, Some("99999999"), true, 24 * 60, 24 * 66),
        (503, Some("soon"), false, 0, 2),
        (503, Some("7200"), true, 120, 132),
        (403, Some("60"), true, 30, 33),
        (403, None, false, 0, 2),
    ]
    .into_iter()
    .enumerate()
    {
        // A server of its own, since a rest holds for its whole host; each has the same name, so each rest is let pass.
        let server = serving(&[("a", "A")]).await;
        let retry_after = retry_after.map(str::to_owned);
        server.change("/feed", |r| (r.status, r.retry_after) = (Some(status), retry_after.clone())).unwrap();
        let instance = world.add(&n.to_string(), &server.url("/feed"));
        let run = world.poll(&instance).await;
        let now = world.now(&instance);
        assert_eq!(
            (run.throttled, now.throttled.is_some(), now.last_error.is_none()),
            (throttled, throttled, throttled)
        );
        assert_eq!(now.failures, u32::from(!throttled), "{status} {retry_after:?}");
        let waits = waits(&world, &instance);
        assert!((least * MINUTE..=most * MINUTE).contains(&waits), "{status} {retry_after:?}: {waits}");
        // Nobody gets through before, whoever asks.
        let earliest = world.clock.0.load(Ordering::SeqCst) + least * MINUTE;
        assert_eq!(now.not_before, if throttled { earliest } else { 0 });
        pass(&world, waits);
    }
}

#[tokio::test]
async fn a_rest_is_for_the_whole_host_and_outlives_the_process() {
    let server = serving(&[("a", "A")]).await;
    server
        .serve("/busy", Route { status: Some(429), retry_after: Some("5400".into()), ..Route::new("", "text/plain") });
    // Another address that leads there.
    let to = Redirect { status: 302, location: Some(server.url("/feed")) };
    let elsewhere = FakeFeedServer::start_on(std::net::TcpListener::bind("127.0.0.2:0").unwrap()).await;
    elsewhere.serve("/hop", Route { redirect: Some(to), ..Route::new("", "text/plain") });
    let world = World::new("resting").await;
    let busy = world.add("busy", &server.url("/busy"));
    let feed = world.add("feed", &server.url("/feed"));
    let hop = world.add("hop", &elsewhere.url("/hop"));
    world.poll(&busy).await;
    let before = server.requests().len();
    for instance in [&feed, &hop] {
        let run = world.poll(instance).await;
        assert_eq!(
            (run.outcome, run.throttled, run.code.as_deref()),
            (Some(Outcome::Failed), true, Some("rate_limited"))
        );
        let now = world.now(instance);
        assert_eq!((now.throttled.unwrap().1.as_str(), now.last_error), ("127.0.0.1", None));
        assert_eq!(now.next_run_because, "host_throttled");
    }
    assert_eq!(server.requests().len(), before, "nothing was sent");
    // A new process on the same store leaves it alone as well, on the schedule too.
    let clock = Arc::clone(&world.clock);
    let store: Arc<Sqlite> = Arc::new(Sqlite::open(&world.folder).unwrap());
    let service =
        Service::new(Arc::clone(&store) as _, world.service.pins().clone(), client(), clock as _, SETTINGS, None);
    service.recover().await.unwrap();
    let fresh = world.add("fresh", &server.url("/feed?x"));
    let scheduler = tokio::spawn(Arc::clone(&service).schedule());
    let deferred = async {
        loop {
            let now = world.now(&fresh);
            if now.next_run_because == "host_throttled" {
                return now;
            }
            tokio::task::yield_now().await;
        }
    };
    let now = tokio::time::timeout(std::time::Duration::from_secs(30), deferred).await.unwrap();
    assert!(now.next_run_at - world.clock.0.load(Ordering::SeqCst) > 85 * MINUTE && now.last_run_at.is_none());
    assert_eq!(server.requests().len(), before);
    // When it is over all of them are read.
    pass(&world, 120 * MINUTE);
    let read = async {
        while world.now(&fresh).last_success_at.is_none() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), read).await.unwrap();
    service.stop();
    scheduler.await.unwrap();
}

#[tokio::test]
async fn what_is_gone_stops_until_a_person_acts() {
    let server = serving(&[("a", "A")]).await;
    server.change("/feed", |r| r.status = Some(410)).unwrap();
    let world = World::new("gone").await;
    let instance = world.add("feed", &server.url("/feed"));
    world.poll(&instance).await;
    let now = world.now(&instance);
    assert_eq!((now.next_run_at, now.next_run_because.as_str()), (NEVER, "gone"));
    assert_eq!(now.last_error.unwrap().code, "gone");
    // A shorter interval or a restart is no reason to ask again.
    world.store.set_interval("con_feed", 30, world.clock.0.load(Ordering::SeqCst)).unwrap();
    world.store.recover(world.clock.0.load(Ordering::SeqCst) + 40 * DAY).unwrap();
    assert_eq!(world.now(&instance).next_run_at, NEVER);
    pass(&world, MINUTE);
    let at = world.service.request_run("con_feed").await.unwrap();
    assert_eq!((world.now(&instance).next_run_at, world.now(&instance).next_run_because.as_str()), (at, "requested"));
    server.change("/feed", |r| r.status = None).unwrap();
    assert_eq!(world.poll(&instance).await.outcome, Some(Outcome::Completed));
    assert!(world.now(&instance).next_run_at < NEVER);
}

#[tokio::test]
async fn an_address_that_moved_for_good_is_asked_where_it_is_after_three_days() {
    let server = serving(&[("a", "A")]).await;
    let moves = |status| Some(Redirect { status, location: Some("/feed".to_owned()) });
    server.serve("/old", Route { redirect: moves(301), ..Route::new("", "text/plain") });
    let world = World::new("moved").await;
    let instance = world.add("old", &server.url("/old"));
    let polled = async |day: u32| {
        pass(&world, DAY);
        let before = server.requests().len();
        world.poll(&instance).await;
        let paths: Vec<String> = server.requests()[before..].iter().map(|r| r.path.clone()).collect();
        (paths, world.now(&instance).moved.map(|m| (m.to, m.days.min(day))))
    };
    let target = server.url("/feed");
    let via = vec!["/old".to_owned(), "/feed".to_owned()];
    // Shown at once, used after the third day.
    for day in 1..=3 {
        assert_eq!(polled(day).await, (via.clone(), Some((target.clone(), day))));
    }
    assert_eq!(polled(3).await, (vec!["/feed".to_owned()], Some((target.clone(), 3))));
    // The validators went along: nothing is read twice.
    assert!(server.requests().last().unwrap().header("if-none-match").is_some());
    // A target that fails is forgotten, and the address itself is asked again.
    server.change("/feed", |r| r.status = Some(404)).unwrap();
    assert_eq!(polled(3).await, (vec!["/feed".to_owned()], None));
    server.change("/feed", |r| r.status = None).unwrap();
    assert_eq!(polled(1).await, (via.clone(), Some((target.clone(), 1))));
    // What is not meant to last is never relied on.
    server.change("/old", |r| r.redirect = moves(302)).unwrap();
    for _ in 0..5 {
        assert_eq!(polled(0).await, (via.clone(), None));
    }
}

#[tokio::test]
async fn after_a_week_of_nothing_new_a_whole_document_is_asked_for_once() {
    let server = serving(&[("a", "A")]).await;
    let world = World::new("week").await;
    let instance = world.add("feed", &server.url("/feed"));
    let mut asked = Vec::new();
    for _ in 0..17 {
        world.poll(&instance).await;
        asked.push(server.requests().last().unwrap().header("if-none-match").is_some());
        pass(&world, DAY);
    }
    let whole: Vec<usize> =
        asked.iter().enumerate().filter(|(_, conditional)| !**conditional).map(|(n, _)| n).collect();
    // A poll is a day and a minute after the one before, so the seventh is the first that is more than a week later.
    assert_eq!(whole, [0, 7, 14]);
}

#[tokio::test]
async fn validators_go_back_as_they_came_as_a_pair_and_to_who_gave_them() {
    let feed = rss(&[("a", "A")]);
    let route = |fields: &[(&str, &str)]| Route {
        etag: fake_feed_server::EtagMode::Absent,
        last_modified: false,
        headers: fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        ..Route::new(feed.clone(), "application/rss+xml")
    };
    let server = FakeFeedServer::start().await;
    let world = World::new("validators").await;
    server.serve("/feed", route(&[]));
    let instance = world.add("feed", &server.url("/feed"));
    let (first, date) = ("Mon, 01 Jun 2026 10:00:00 GMT", "2026-06-01 10:00");
    // What an answer brings, and what the next request must have.
    for (fields, etag, modified) in [
        (vec![("ETag", "\"1\""), ("Last-Modified", first)], Some("\"1\""), Some(first)),
        (vec![("ETag", "W/\"2\""), ("Last-Modified", first)], Some("W/\"2\""), Some(first)),
        (vec![("ETag", "unquoted")], Some("unquoted"), None),
        (vec![("Last-Modified", "Sun, 31 May 2026 23:59:59 GMT")], None, Some("Sun, 31 May 2026 23:59:59 GMT")),
        // No date: kept, not sent.
        (vec![("Last-Modified", date)], None, None),
        (vec![], None, None),
    ] {
        server.serve("/feed", route(&fields));
        world.poll(&instance).await;
        let kept = world.store.claim("con_feed", i64::MAX / 2, i64::MAX / 2).unwrap().unwrap().checkpoint.unwrap();
        assert_eq!(kept.contains(date), fields.iter().any(|(_, v)| *v == date));
        // That claim is given back.
        world.store.recover(world.clock.0.load(Ordering::SeqCst)).unwrap();
        server.serve("/feed", route(&fields));
        world.poll(&instance).await;
        let asked = server.requests().last().unwrap().clone();
        assert_eq!((asked.header("if-none-match"), asked.header("if-modified-since")), (etag, modified), "{fields:?}");
        for none in ["cookie", "referer"] {
            assert_eq!(asked.header(none), None);
        }
    }
    // A 304 of another server than the one that gave the validators is no answer.
    let other = FakeFeedServer::start().await;
    other.serve("/feed", Route { status: Some(304), ..Route::new("", "text/plain") });
    server.serve("/feed", route(&[("ETag", "\"7\"")]));
    world.poll(&instance).await;
    let to = Redirect { status: 302, location: Some(other.url("/feed")) };
    server.serve("/feed", Route { redirect: Some(to), ..route(&[]) });
    world.poll(&instance).await;
    let asked: Vec<bool> = other.requests().iter().map(|r| r.header("if-none-match").is_some()).collect();
    assert_eq!(asked, [true, false]);
}

#[tokio::test]
async fn what_a_source_declares_is_the_reason_that_is_shown() {
    let server = FakeFeedServer::start().await;
    let world = World::new("declared").await;
    /// Half an hour after the poll, which is a minute on.
    const IN_HALF_AN_HOUR: &str = "in half an hour";
    let ttl = "<rss version=\"2.0\"><channel><ttl>15</ttl><item><guid>g</guid></item></channel></rss>";
    let cases = [
        ("ttl", ttl, vec![], json!({}), 15, 17, "ttl"),
        ("deaf", ttl, vec![], json!({"honor_ttl": false}), 0, 2, "interval"),
        ("age", "", vec![("Cache-Control", "max-age=1200"), ("Age", "300")], json!({}), 15, 17, "cache_control"),
        ("expires", "", vec![("Expires", IN_HALF_AN_HOUR)], json!({}), 29, 31, "expires"),
        ("past", "", vec![("Expires", "0")], json!({}), 0, 2, "interval"),
    ];
    for (name, body, fields, config, least, most, because) in cases {
        let body = if body.is_empty() { rss(&[("a", "A")]) } else { body.to_owned() };
        let at = world.clock.0.load(Ordering::SeqCst) + 31 * MINUTE;
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(at.unsigned_abs());
        let date = httpdate::fmt_http_date(at);
        let headers = fields.iter().map(|(n, v)| ((*n).to_owned(), v.replace(IN_HALF_AN_HOUR, &date))).collect();
        let path = format!("/{name}");
        server.serve(&path, Route { headers, ..Route::new(body, "application/rss+xml") });
        let mut wanted = config.clone();
        wanted["url"] = server.url(&path).into();
        let instance = world.try_add(name, new(name, "rss", wanted)).unwrap();
        world.poll(&instance).await;
        let waits = waits(&world, &instance);
        assert!((least * MINUTE..=most * MINUTE).contains(&waits), "{name}: {waits}");
        assert_eq!(world.now(&instance).next_run_because, because, "{name}");
        // A 304 without a word about it leaves what the document said; the wait is the same again.
        pass(&world, waits);
        world.poll(&instance).await;
        if name == "ttl" {
            assert_eq!(world.now(&instance).next_run_because, "ttl");
        }
    }
}

#[tokio::test]
async fn a_clock_that_was_ahead_keeps_nothing_waiting() {
    let server = serving(&[("a", "A")]).await;
    let world = World::new("clock").await;
    let instance = world.add("feed", &server.url("/feed"));
    let scheduler = tokio::spawn(Arc::clone(&world.service).schedule());
    let read = async |times: usize| {
        let read = async {
            while server.requests().len() < times {
                tokio::task::yield_now().await
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), read).await.unwrap();
        while world.now(&instance).next_run_because == "running" {
            tokio::task::yield_now().await;
        }
    };
    read(1).await;
    // A year ahead: it is polled once, not a thousand times.
    pass(&world, 365 * DAY);
    read(2).await;
    // And back: within an interval it is polled again.
    pass(&world, -365 * DAY);
    let settled = async {
        while world.now(&instance).next_run_because != "clock" {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), settled).await.unwrap();
    assert!((0..MINUTE).contains(&waits(&world, &instance)));
    pass(&world, MINUTE);
    read(3).await;
    world.service.stop();
    scheduler.await.unwrap();
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_host_is_asked_in_turn_and_a_restart_asks_nobody() {
    const FEEDS: usize = 5;
    let server = serving(&[("a", "A")]).await;
    let folder = prepared("in-turn");
    let path = folder.join("host-shim.toml");
    let config = std::fs::read_to_string(&path).unwrap().replace("host_gap_ms = 0", "host_gap_ms = 400");
    std::fs::write(&path, config).unwrap();
    let program = Program::start(&folder, "");
    let corpus = corpus(&program.caller).await;
    let begun = std::time::Instant::now();
    for n in 0..FEEDS {
        server.serve(&format!("/{n}"), Route::new(rss(&[("a", "A")]), "application/rss+xml"));
        let id = add(&program.caller, &corpus, &n.to_string(), &server.url(&format!("/{n}"))).await;
        let schedule = json!({"interval_seconds": 3_600});
        program.caller.put(&format!("/v0/connectors/{id}/schedule"), &schedule).await.unwrap();
    }
    until(&program.caller, "/v0/connectors", |list| {
        list["items"].as_array().unwrap().iter().all(|c| !c["health"]["last_success_at"].is_null())
    })
    .await;
    assert!(begun.elapsed() >= std::time::Duration::from_millis(400) * 4, "each waited for the one before");
    let first: Vec<usize> = (0..FEEDS).map(|n| server.requests_for(&format!("/{n}")).len()).collect();
    let list = |program: &Program| {
        let caller =
            fake_feed_server::Caller { address: program.caller.address.clone(), key: program.caller.key.clone() };
        async move { caller.get("/v0/connectors").await.unwrap().body["items"].clone() }
    };
    let before = list(&program).await;
    let key = program.kill();
    let program = Program::start(&folder, &key);
    until(&program.caller, "/readyz", |_| true).await;
    let after = list(&program).await;
    for (before, after) in before.as_array().unwrap().iter().zip(after.as_array().unwrap()) {
        assert_eq!(before["next_poll"], after["next_poll"]);
    }
    let again: Vec<usize> = (0..FEEDS).map(|n| server.requests_for(&format!("/{n}")).len()).collect();
    assert_eq!(first, again);
}

/// Queues of many hosts do not hinder each other: a slow one takes its own places only.
#[test]
fn manners_are_those_of_the_configuration() {
    let text = "[schedule]\nrequests_per_host = 3\nhost_gap_ms = 700\n";
    let (config, _) = host_shim::config::read(text, std::path::Path::new("/"), "agent").unwrap();
    assert_eq!(config.manners(), Manners { at_once: 3, gap_ms: 700 });
    assert_eq!(config.politeness().gap.as_millis(), 700);
}
