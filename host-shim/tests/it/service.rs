//! The corpus service over a real store, a real component and real sockets, with a clock that the test holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use fake_feed_server::{FakeFeedServer, Route};
use host_shim::corpus::clock::Clock;
use host_shim::corpus::hosts::Manners;
use host_shim::corpus::pins::Pins;
use host_shim::corpus::{RunSummary, Service, Settings};
use host_shim::engine::limits::Limits;
use host_shim::engine::pin::{Digest, Pin};
use host_shim::engine::runtime::Runtime;
use host_shim::store::model::{
    Admission, ChangeQuery, Corpus, Idempotency, Instance, NewInstance, Outcome, Record, RecordOrder, RecordQuery,
    RunEnd, RunFigures, SawMoved, Version,
};
use host_shim::store::sqlite::{FILE, Sqlite};
use host_shim::store::{Store, StoreError};
use serde_json::{Value, json};

use crate::support::{PROGRAM, cache, client, pin};

/// 2026-09-28T12:00:00Z.
pub const START: i64 = 1_790_596_800_000;

#[derive(Debug)]
pub struct Held(pub AtomicI64);

impl Clock for Held {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A folder beside the program that no other test uses.
pub fn folder(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    let path = Path::new(PROGRAM).with_file_name("test-data").join(format!("{name}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn open_pin(name: &str) -> Pin {
    Pin { configuration: json!({"allow_private_addresses": true}).to_string(), ..pin(name) }
}

async fn pins(names: &[&str]) -> Pins {
    let limits = Limits { cpu: Duration::from_millis(300), ..Limits::DEFAULT };
    let runtime = Runtime::new(limits).unwrap();
    let wanted: Vec<Pin> = names.iter().map(|n| open_pin(n)).collect();
    let (pins, refused) = Pins::load(&runtime, &wanted, cache().as_ref()).await;
    assert!(refused.is_empty(), "{refused:?}");
    pins
}

pub struct World {
    pub service: Arc<Service>,
    pub store: Arc<Sqlite>,
    pub clock: Arc<Held>,
    pub folder: PathBuf,
}

/// The fake server is one host, so a gap would make every test wait.
pub const SETTINGS: Settings = Settings {
    min_interval_seconds: 1,
    max_concurrent_runs: 4,
    manners: Manners { at_once: 32, gap_ms: 0 },
    max_pace_seconds: 3_600,
};

impl World {
    pub async fn new(name: &str) -> Self {
        Self::with(name, pins(&["connector.rss.wasm"]).await).await
    }

    pub async fn with(name: &str, pins: Pins) -> Self {
        let folder = folder(name);
        let store = Arc::new(Sqlite::open(&folder).unwrap());
        let clock = Arc::new(Held(START.into()));
        let service = Service::new(Arc::clone(&store) as _, pins, client(), Arc::clone(&clock) as _, SETTINGS, None);
        store
            .create_corpus(Corpus { corpus_id: "c_1".into(), name: "one".into(), created_at: START }, &once("c"))
            .unwrap();
        Self { service, store, clock, folder }
    }

    pub fn add(&self, name: &str, url: &str) -> Instance {
        self.try_add(name, new(name, "rss", json!({"url": url}))).unwrap()
    }

    pub fn try_add(&self, key: &str, new: NewInstance) -> Result<Instance, StoreError> {
        self.store.create_instance(new, &once(key), self.clock.now_ms()).map(|c| c.value)
    }

    pub async fn poll(&self, instance: &Instance) -> RunSummary {
        self.clock.0.fetch_add(60_000, Ordering::SeqCst);
        self.service.poll_now(&instance.new.connector_id).await.unwrap()
    }

    pub fn now(&self, instance: &Instance) -> Instance {
        self.store.instance(&instance.new.connector_id).unwrap()
    }

    fn records(&self) -> Vec<Record> {
        self.store.records(&all()).unwrap()
    }

    fn versions(&self, key: &str) -> Vec<Version> {
        let record = self.records().into_iter().find(|r| r.record_key == key).unwrap();
        self.store.versions(&record.record_id, 0, 100).unwrap()
    }

    fn bodies(&self, key: &str) -> Vec<String> {
        self.versions(key).iter().map(body).collect()
    }
}

fn all() -> RecordQuery {
    RecordQuery {
        corpus_ids: vec!["c_1".into()],
        order: RecordOrder::RecordId,
        accepted_after: None,
        accepted_before: None,
        text: None,
        metadata: Vec::new(),
        after: None,
        limit: 2_000,
    }
}

/// The records of the corpus that a word finds.
pub fn search(text: &str) -> RecordQuery {
    RecordQuery { text: Some(text.to_owned()), ..all() }
}

pub fn once(key: &str) -> Idempotency {
    Idempotency { scope: "test".into(), key: key.into(), request: Digest::of(key.as_bytes()).bytes() }
}

pub fn new(name: &str, kind: &str, config: Value) -> NewInstance {
    NewInstance {
        connector_id: format!("con_{name}"),
        corpus_id: "c_1".into(),
        source_namespace: name.into(),
        name: name.into(),
        labels: json!({}),
        kind: kind.into(),
        config,
        interval_seconds: 60,
        silent_after_seconds: 86_400,
        credential_warning_seconds: 1_209_600,
        checkpoint: None,
        credential: None,
    }
}

/// What the change log tells, in order.
fn told(store: &Sqlite) -> Vec<String> {
    let query = ChangeQuery { corpus_ids: None, after: 0, limit: 1_000 };
    store.changes(&query).unwrap().items.into_iter().map(|c| c.kind).collect()
}

fn body(version: &Version) -> String {
    let parts = version.parts.as_array().unwrap();
    parts.iter().find(|p| p["key"] == "body").unwrap()["text"].as_str().unwrap().to_owned()
}

pub fn rss(items: &[(&str, &str)]) -> String {
    let items: String = items
        .iter()
        .map(|(g, t)| format!("<item><guid isPermaLink=\"false\">{g}</guid><description>{t}</description></item>"))
        .collect();
    format!("<rss version=\"2.0\"><channel><title>T</title>{items}</channel></rss>")
}

pub async fn serving(items: &[(&str, &str)]) -> FakeFeedServer {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", Route::new(rss(items), "application/rss+xml"));
    server
}

#[tokio::test]
async fn going_back_to_an_earlier_text_is_a_version_and_what_leaves_the_feed_stays() {
    let server = serving(&[("b", "B"), ("a", "A")]).await;
    let world = World::new("versions").await;
    let instance = world.add("feed", &server.url("/feed"));
    let first = world.poll(&instance).await;
    assert_eq!((first.outcome, first.brought.new, first.brought.changed), (Some(Outcome::Completed), 2, 0));
    for text in ["A2", "A"] {
        server.change("/feed", |r| r.replace(rss(&[("b", "B"), ("a", text)]))).unwrap();
        let run = world.poll(&instance).await;
        assert_eq!((run.brought.new, run.brought.changed), (0, 1), "{text}");
    }
    assert_eq!(world.bodies("a"), ["A", "A2", "A"]);
    let versions = world.versions("a");
    assert_eq!(versions.iter().map(|v| v.ordinal).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(versions[0].revision, versions[2].revision);
    server.change("/feed", |r| r.replace(rss(&[("a", "A")]))).unwrap();
    world.poll(&instance).await;
    assert_eq!(world.records().len(), 2);
    assert_eq!(world.store.counts("con_feed").unwrap(), (2, Some(1)));
}

#[tokio::test]
async fn a_feed_that_breaks_the_rules_of_identity_goes_on_with_its_records() {
    let feed = |items: &[(&str, &str)]| {
        let items: String = items
            .iter()
            .map(|(g, l)| {
                format!("<item><guid>{g}</guid><link>https://x.example.org{l}</link><title>T{l}</title></item>")
            })
            .collect();
        format!("<rss version=\"2.0\"><channel>{items}</channel></rss>")
    };
    let server = serving(&[]).await;
    server.change("/feed", |r| r.replace(feed(&[("b", "/b"), ("a", "/a")]))).unwrap();
    let world = World::new("identity").await;
    let instance = world.add("feed", &server.url("/feed"));
    world.poll(&instance).await;
    let before: Vec<String> = world.records().into_iter().map(|r| r.record_id).collect();
    server.change("/feed", |r| r.replace(feed(&[("a", "/c"), ("b", "/b"), ("a", "/a")]))).unwrap();
    let run = world.poll(&instance).await;
    // "b" only changed its key; "a" is now the first of the two that say so, which has another text; the other is new.
    assert_eq!((run.brought.new, run.brought.changed), (1, 1));
    let after: Vec<String> = world.records().into_iter().map(|r| r.record_id).collect();
    assert_eq!((after.len(), &after[..2]), (3, &before[..]));
    let told: Vec<_> = told(&world.store);
    assert_eq!(told.iter().filter(|k| *k == "record.moved").count(), 2);
    assert_eq!(told.iter().filter(|k| *k == "connector.identity_changed").count(), 1);
    assert_eq!(world.now(&instance).diagnostics.unwrap()["identity"]["because"], "repeated_guid");
}

#[tokio::test]
async fn a_record_is_sorted_by_its_first_date_clamped_and_never_moved() {
    let dated = |date: &str| {
        format!(
            "<rss version=\"2.0\"><channel><item><guid>g</guid><title>t{date}</title>{}</item></channel></rss>",
            if date.is_empty() { String::new() } else { format!("<pubDate>{date}</pubDate>") }
        )
    };
    let server = serving(&[]).await;
    let world = World::new("sort").await;
    for (name, date, sort_time, origin) in [
        ("past", "Tue, 01 Sep 2026 10:00:00 GMT", 1_788_256_800_000, "feed"),
        ("future", "Fri, 01 Jan 2038 00:00:00 GMT", START + 60_000 + 86_400_000, "clamped"),
        ("none", "", START + 60_000, "first-seen"),
    ] {
        world.clock.0.store(START, Ordering::SeqCst);
        server.serve(&format!("/{name}"), Route::new(dated(date), "application/rss+xml"));
        let instance = world.add(name, &server.url(&format!("/{name}")));
        world.poll(&instance).await;
        let sorted = |w: &World| {
            let record = w.records().into_iter().find(|r| r.namespace == name).unwrap();
            (record.sort_time, record.sort_origin)
        };
        assert_eq!(sorted(&world), (sort_time, origin.to_owned()), "{name}");
        server.change(&format!("/{name}"), |r| r.replace(dated("Wed, 02 Sep 2026 10:00:00 GMT"))).unwrap();
        world.poll(&instance).await;
        assert_eq!(sorted(&world), (sort_time, origin.to_owned()), "{name}");
    }
}

#[tokio::test]
async fn a_run_that_is_too_early_touches_nothing() {
    let server = FakeFeedServer::start().await;
    let feed = "<rss version=\"2.0\"><channel><ttl>60</ttl><item><guid>g</guid><title>t</title></item></channel></rss>";
    server.serve("/feed", Route::new(feed, "application/rss+xml"));
    let world = World::new("early").await;
    let instance = world.add("feed", &server.url("/feed"));
    world.poll(&instance).await;
    let before = world.now(&instance);
    let run = world.poll(&instance).await;
    assert_eq!(run.outcome, Some(Outcome::Skipped));
    let after = world.now(&instance);
    assert_eq!((after.last_success_at, after.last_error), (before.last_success_at, before.last_error));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn failures_are_told_and_access_errors_last_until_a_success() {
    let server = serving(&[("a", "A")]).await;
    let world = World::new("failures").await;
    let instance = world.add("feed", &server.url("/feed"));
    // Turned away is no failure; a refusal is one that lasts, and a failure after it leaves it so.
    for (status, wait, code, kept, state) in [
        (503, true, "server_error", None, "active"),
        (403, false, "forbidden", Some("forbidden"), "access_error"),
        (500, true, "server_error", Some("server_error"), "access_error"),
    ] {
        let retry_after = wait.then(|| "7200".to_owned());
        server.change("/feed", |r| (r.status, r.retry_after) = (Some(status), retry_after)).unwrap();
        let run = world.poll(&instance).await;
        assert_eq!((run.outcome, run.code.as_deref()), (Some(Outcome::Failed), Some(code)));
        let now = world.now(&instance);
        assert_eq!(now.last_error.as_ref().map(|e| e.code.as_str()), kept, "{status}");
        assert_eq!((now.health.as_str(), now.throttled.is_some()), (state, true), "{status}");
        let waits = now.next_run_at - world.clock.now_ms();
        // A tenth earlier or later, but never before a wait that was asked for.
        let expected = if wait { 7_200_000..=7_920_000 } else { 54_000..=66_000 };
        assert!(expected.contains(&waits), "{status}: {waits}");
        assert_eq!(now.next_run_because, if wait { "retry_after" } else { "interval" });
        world.clock.0.fetch_add(waits, Ordering::SeqCst);
    }
    server.change("/feed", |r| r.status = None).unwrap();
    assert_eq!(world.poll(&instance).await.outcome, Some(Outcome::Completed));
    let now = world.now(&instance);
    assert_eq!((now.last_error, now.throttled, now.health.as_str()), (None, None, "active"));
    let told: Vec<_> = told(&world.store);
    assert_eq!(
        told,
        [
            "corpus.created",
            "connector.created",
            "connector.health_changed",
            "record.accepted",
            "connector.health_changed"
        ]
    );
}

#[tokio::test]
async fn a_kind_that_is_not_pinned_keeps_its_instances_and_goes_on_when_it_is_again() {
    let server = serving(&[("a", "A")]).await;
    let world = World::new("unpinned").await;
    let instance = world.add("feed", &server.url("/feed"));
    world.poll(&instance).await;
    let store = Arc::clone(&world.store) as _;
    let clock = Arc::clone(&world.clock) as _;
    let without = Service::new(store, Pins::default(), client(), clock, SETTINGS, None);
    let run = without.poll_now("con_feed").await.unwrap();
    assert_eq!(run.code.as_deref(), Some("unsupported_connector_kind"));
    let run = world.poll(&instance).await;
    assert_eq!((run.outcome, run.brought.new), (Some(Outcome::Completed), 0));
    assert!(server.requests()[1].header("if-none-match").is_some());
}

#[tokio::test]
async fn a_namespace_has_one_owner_and_its_records_outlive_it() {
    let server = serving(&[("a", "A"), ("b", "B")]).await;
    let world = World::new("namespaces").await;
    let first = world.add("feed", &server.url("/feed"));
    world.poll(&first).await;
    let second = NewInstance {
        connector_id: "con_2".into(),
        name: "2".into(),
        ..new("feed", "rss", json!({"url": server.url("/feed")}))
    };
    assert!(matches!(world.try_add("second", second.clone()), Err(StoreError::NamespaceInUse)));
    world.store.disable("con_feed", world.clock.now_ms()).unwrap();
    assert!(matches!(world.service.poll_now("con_feed").await, Err(StoreError::NotFound(_))));
    let second = world.try_add("again", second).unwrap();
    server.edit("/feed", ">B<", ">B2<").unwrap();
    let run = world.poll(&second).await;
    assert_eq!((run.brought.new, run.brought.changed), (0, 1));
    assert_eq!(world.records().len(), 2);
    assert_eq!((world.bodies("a"), world.bodies("b")), (vec!["A".to_owned()], vec!["B".to_owned(), "B2".to_owned()]));
    assert_eq!(world.versions("b")[1].connector_id, "con_2");
}

#[tokio::test]
async fn an_instance_may_go_on_from_a_checkpoint_of_another_deployment() {
    let server = serving(&[("b", "B"), ("a", "A")]).await;
    let world = World::new("moved").await;
    let k = &Digest::of(b"a").hex()[..16];
    let checkpoint = format!("{{\"seen\":[{{\"k\":\"{k}\",\"r\":\"0123456789abcdef\"}}]}}");
    let moved = NewInstance { checkpoint: Some(checkpoint), ..new("feed", "rss", json!({"url": server.url("/feed")})) };
    let instance = world.try_add("moved", moved).unwrap();
    assert_eq!(world.poll(&instance).await.brought.new, 1);
    assert_eq!(world.records()[0].record_key, "b");
}

#[tokio::test]
async fn a_thousand_items_are_four_pages_one_request_and_one_run() {
    let items: Vec<(String, &str)> = (0..1_000).map(|n| (format!("g{n}"), "x")).collect();
    let items: Vec<(&str, &str)> = items.iter().map(|(g, t)| (g.as_str(), *t)).collect();
    let server = serving(&items).await;
    let world = World::new("pages").await;
    let instance = world.add("feed", &server.url("/feed"));
    let run = world.poll(&instance).await;
    assert_eq!(run.brought.new, 1_000);
    let runs = world.store.runs("con_feed", None, 10).unwrap();
    assert_eq!((runs.len(), runs[0].pages, runs[0].figures.requests, runs[0].outcome.as_str()), (1, 4, 1, "completed"));
    assert_eq!(server.requests().len(), 1);
    assert_eq!(world.now(&instance).reads.1, 1);
}

fn ended(at: i64) -> RunEnd {
    RunEnd {
        outcome: Outcome::Completed,
        error: None,
        detail: None,
        next_run_at: at + 60_000,
        next_run_because: "interval",
        not_before: 0,
        body: None,
        figures: RunFigures::default(),
        at,
        plugin_digest: None,
        throttled_by: None,
        rest: None,
        is_full: false,
        moved: SawMoved::Nothing,
    }
}

#[tokio::test]
async fn the_longest_due_is_claimed_first_and_a_lost_claim_writes_nothing() {
    let world = World::new("claims").await;
    for (name, at) in [("z", 30), ("a", 10), ("b", 20)] {
        world.clock.0.store(START + at, Ordering::SeqCst);
        world.add(name, "http://x.example.org/");
    }
    let store = &world.store;
    assert_eq!(store.next_due(START).unwrap(), Some(START + 10));
    assert!(store.claim_due(START, START + 100, 10, &mut |_| Admission::Now).unwrap().is_empty());
    let claims = store.claim_due(START + 40, START + 100, 2, &mut |_| Admission::Now).unwrap();
    let names: Vec<_> = claims.iter().map(|c| c.instance.new.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    // What is claimed is nobody else's until the lease ends.
    assert_eq!(store.claim("con_a", START + 50, START + 100).unwrap(), None);
    assert_eq!(store.next_due(START + 50).unwrap(), Some(START + 30));
    let again = store.claim("con_a", START + 100, START + 200).unwrap().unwrap();
    assert!(again.fence > claims[0].fence);
    assert!(matches!(store.end_run(&claims[0], &ended(START + 101)), Err(StoreError::LostClaim)));
    // A run that is asked for while one is in flight comes after it.
    assert_eq!(store.pull_in("con_a", START + 150, "requested").unwrap(), START + 150);
    store.end_run(&again, &ended(START + 102)).unwrap();
    let next = store.instance("con_a").unwrap();
    assert_eq!((next.next_run_at, next.next_run_because.as_str()), (START + 150, "requested"));
    store.disable("con_b", START + 103).unwrap();
    assert!(matches!(store.end_run(&claims[1], &ended(START + 104)), Err(StoreError::LostClaim)));
    let outcomes: Vec<_> = store.runs("con_a", None, 10).unwrap().into_iter().map(|r| r.outcome).collect();
    assert_eq!(outcomes, ["completed", "abandoned"]);
}

#[tokio::test]
async fn what_a_dead_process_left_goes_on_an_interval_after_its_start() {
    let world = World::new("recover").await;
    world.add("a", "http://x.example.org/");
    let claim = world.store.claim_due(START, START + 300_000, 1, &mut |_| Admission::Now).unwrap().remove(0);
    assert_eq!(world.store.next_due(START + 1).unwrap(), None);
    assert_eq!(world.store.recover(START + 1).unwrap(), 1);
    assert_eq!(world.store.next_due(START + 1).unwrap(), Some(START + 60_000));
    let instance = world.store.instance("con_a").unwrap();
    assert_eq!((instance.next_run_because.as_str(), instance.due_at), ("cut_off", START + 60_000));
    let again = world.store.claim_due(START + 60_000, START + 300_000, 1, &mut |_| Admission::Now).unwrap();
    assert_eq!(again[0].fence, claim.fence + 2);
}

#[tokio::test]
async fn a_store_of_a_newer_program_is_refused() {
    let world = World::new("newer").await;
    let connection = rusqlite::Connection::open(world.folder.join(FILE)).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Sqlite::open(&world.folder), Err(StoreError::NewerSchema { found: 99, .. })));
}

#[tokio::test]
async fn a_second_reader_sees_whole_pages_while_they_are_written() {
    let server = serving(&[]).await;
    let world = World::new("reader").await;
    let instance = world.add("feed", &server.url("/feed"));
    let reader =
        rusqlite::Connection::open_with_flags(world.folder.join(FILE), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
            .unwrap();
    for round in 1..=5 {
        let items: Vec<(String, String)> = (0..20).map(|n| (format!("g{n}"), format!("text {round}"))).collect();
        let items: Vec<(&str, &str)> = items.iter().map(|(g, t)| (g.as_str(), t.as_str())).collect();
        server.change("/feed", |r| r.replace(rss(&items))).unwrap();
        world.poll(&instance).await;
        let (versions, texts): (i64, i64) = reader
            .query_row("SELECT count(*), count(DISTINCT revision) FROM record", [], |r| Ok((r.get(0)?, r.get(1)?)))
            .unwrap();
        assert_eq!((versions, texts), (20, 20));
        let all: i64 = reader.query_row("SELECT count(*) FROM version", [], |r| r.get(0)).unwrap();
        assert_eq!(all, 20 * round);
    }
}

#[derive(Debug)]
struct Machine;

impl Clock for Machine {
    fn now_ms(&self) -> i64 {
        host_shim::corpus::clock::System.now_ms()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_feeds_go_on_while_components_spin() {
    let server = serving(&[("a", "A")]).await;
    let folder = folder("fair");
    let store = Arc::new(Sqlite::open(&folder).unwrap());
    let pins = pins(&["connector.rss.wasm", "hostile.wasm"]).await;
    let service = Service::new(Arc::clone(&store) as _, pins, client(), Arc::new(Machine), SETTINGS, None);
    let now = Machine.now_ms();
    store.create_corpus(Corpus { corpus_id: "c_1".into(), name: "one".into(), created_at: now }, &once("c")).unwrap();
    let add = |name: String, kind: &str, config: Value| {
        let new = NewInstance { interval_seconds: 1, ..new(&name, kind, config) };
        store.create_instance(new, &once(&name), now).unwrap();
    };
    for n in 0..2 {
        add(format!("spin{n}"), "hostile", json!({"mode": "spin"}));
    }
    for n in 0..20 {
        server.serve(&format!("/{n}"), Route::new(rss(&[("a", "A")]), "application/rss+xml"));
        add(format!("feed{n}"), "rss", json!({"url": server.url(&format!("/{n}"))}));
    }
    let scheduler = tokio::spawn(Arc::clone(&service).schedule());
    let ended = |name: &str, outcome: &str| {
        let runs = store.runs(&format!("con_{name}"), None, 100).unwrap();
        runs.iter().filter(|r| r.outcome == outcome).count()
    };
    let done = async {
        while !(0..20).all(|n| ended(&format!("feed{n}"), "completed") >= 3)
            || !(0..2).all(|n| ended(&format!("spin{n}"), "failed") >= 2)
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), done).await.unwrap();
    service.stop();
    scheduler.await.unwrap();
    // Never two runs of one instance at once, and each poll after the first was conditional.
    for n in 0..20 {
        let runs = store.runs(&format!("con_feed{n}"), None, 100).unwrap();
        assert!(runs.windows(2).all(|pair| pair[1].ended_at.unwrap() <= pair[0].started_at));
        assert!(server.requests_for(&format!("/{n}"))[1..].iter().all(|r| r.header("if-none-match").is_some()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_poll_now_run_one_after_the_other() {
    let server = serving(&[("a", "A")]).await;
    server.change("/feed", |r| r.delay = Duration::from_millis(100)).unwrap();
    let world = World::new("together").await;
    let instance = world.add("feed", &server.url("/feed"));
    let polls = (0..3).map(|_| {
        let (service, id) = (Arc::clone(&world.service), instance.new.connector_id.clone());
        tokio::spawn(async move { service.poll_now(&id).await.unwrap() })
    });
    let mut brought = Vec::new();
    for poll in polls.collect::<Vec<_>>() {
        brought.push(poll.await.unwrap().brought.new);
    }
    brought.sort_unstable();
    assert_eq!(brought, [0, 0, 1]);
}

#[tokio::test]
async fn the_newest_runs_are_kept() {
    let world = World::new("runs").await;
    world.add("a", "http://x.example.org/");
    for n in 0..510 {
        let at = START + n * 60_000;
        let claim = world.store.claim("con_a", at, at + 1_000).unwrap().unwrap();
        world.store.end_run(&claim, &ended(at + 500)).unwrap();
    }
    let mut seen = 0;
    let mut before: Option<String> = None;
    loop {
        let page = world.store.runs("con_a", before.as_deref(), 100).unwrap();
        let Some(last) = page.last() else { break };
        (seen, before) = (seen + page.len(), Some(last.run_id.clone()));
    }
    assert_eq!(seen, 500);
    assert_eq!(world.store.runs("con_a", None, 1).unwrap()[0].started_at, START + 509 * 60_000);
}
