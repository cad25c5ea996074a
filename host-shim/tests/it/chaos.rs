//! Nothing is lost and nothing is doubled when the program is killed at any moment.
//!
//! `CHAOS_KILLS` sets how often; `make chaos` kills it often, `make verify` a few times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fake_feed_server::{FakeFeedServer, Route};
use host_shim::store::sqlite::FILE;
use rusqlite::{Connection, OpenFlags};

use crate::rest::{Program, add, corpus, prepared, until};

/// Feeds that change while the program is killed.
const FEEDS: usize = 4;
/// Items of each feed; more than one page.
const ITEMS: usize = 300;

/// A generator of numbers that is the same in every run (Numerical Recipes' constants).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A feed with every text that it ever served, by item.
struct Feed {
    path: String,
    items: Vec<String>,
    served: BTreeMap<String, BTreeSet<String>>,
}

impl Feed {
    fn new(number: usize) -> Self {
        let mut feed = Self { path: format!("/{number}"), items: Vec::new(), served: BTreeMap::new() };
        for n in 0..ITEMS {
            feed.items.push(format!("item {n} first"));
            feed.note(n);
        }
        feed
    }

    fn note(&mut self, n: usize) {
        self.served.entry(format!("g{n}")).or_default().insert(self.items[n].clone());
    }

    fn document(&self) -> String {
        let items: String = self
            .items
            .iter()
            .enumerate()
            .map(|(n, t)| format!("<item><guid isPermaLink=\"false\">g{n}</guid><description>{t}</description></item>"))
            .collect();
        format!("<rss version=\"2.0\"><channel><title>T</title>{items}</channel></rss>")
    }

    /// Edits some items and adds one.
    fn change(&mut self, round: usize, numbers: &mut Numbers) {
        for _ in 0..20 {
            let n = usize::try_from(numbers.below(self.items.len() as u64)).unwrap();
            // Sometimes an earlier text comes back.
            self.items[n] = format!("item {n} round {}", round / 2);
            self.note(n);
        }
        self.items.push(format!("item {} new in {round}", self.items.len()));
        self.note(self.items.len() - 1);
    }
}

fn reader(folder: &Path) -> Connection {
    Connection::open_with_flags(folder.join("data").join(FILE), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// Every version there is, by its identifier: namespace, key, ordinal, revision, body.
type Versions = BTreeMap<String, (String, String, i64, String, String)>;

fn versions(connection: &Connection) -> Versions {
    connection
        .prepare(
            "SELECT v.version_id, r.namespace, r.record_key, v.ordinal, v.revision, v.parts FROM version v \
             JOIN record r ON r.seq = v.record",
        )
        .unwrap()
        .query_map([], |row| {
            let parts: String = row.get(5)?;
            let parts: serde_json::Value = serde_json::from_str(&parts).unwrap();
            let body = parts[0]["text"].as_str().unwrap().to_owned();
            Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, body)))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_loses_nothing_and_doubles_nothing() {
    let kills: usize = std::env::var("CHAOS_KILLS").ok().and_then(|k| k.parse().ok()).unwrap_or(6);
    let mut numbers = Numbers(0x5EED);
    let server = FakeFeedServer::start().await;
    let mut feeds: Vec<Feed> = (0..FEEDS).map(Feed::new).collect();
    for feed in &feeds {
        server.serve(&feed.path, Route::new(feed.document(), "application/rss+xml"));
    }
    let folder = prepared("chaos");
    let mut program = Program::start(&folder, "");
    let corpus = corpus(&program.caller).await;
    let mut ids = Vec::new();
    for feed in &feeds {
        ids.push(add(&program.caller, &corpus, feed.path.trim_start_matches('/'), &server.url(&feed.path)).await);
    }
    let mut acknowledged = Versions::new();
    for round in 0..kills {
        for feed in &mut feeds {
            feed.change(round, &mut numbers);
            let document = feed.document();
            server.change(&feed.path, |r| r.replace(document)).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(numbers.below(1_500))).await;
        // What another process could read is acknowledged.
        let seen = versions(&reader(&folder));
        let key = program.kill();
        program = Program::start(&folder, &key);
        let now = versions(&reader(&folder));
        for (id, version) in acknowledged.iter().chain(&seen) {
            assert_eq!(now.get(id), Some(version), "a version was lost or changed by kill {round}");
        }
        acknowledged = now;
    }
    // Two more successful polls of each feed: the last document is in.
    for id in &ids {
        let last = server.requests().len();
        let path = format!("/v0/connectors/{id}/runs?limit=2");
        until(&program.caller, &path, |runs| {
            let runs = runs["items"].as_array().unwrap();
            runs.len() == 2 && runs.iter().all(|r| r["outcome"] == "completed" && r["http_status"] == 304)
        })
        .await;
        assert!(server.requests().len() >= last);
    }
    program.kill();
    check(&reader(&folder), &feeds);
}

/// A version: ordinal, revision, body.
type Stored = (i64, String, String);

/// Holds the store to what was served.
fn check(connection: &Connection, feeds: &[Feed]) {
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let mut by_record: BTreeMap<(String, String), Vec<Stored>> = BTreeMap::new();
    for (namespace, key, ordinal, revision, body) in versions(connection).into_values() {
        by_record.entry((namespace, key)).or_default().push((ordinal, revision, body));
    }
    assert_eq!(by_record.len(), feeds.iter().map(|f| f.items.len()).sum::<usize>(), "one record for each item");
    for feed in feeds {
        for (n, text) in feed.items.iter().enumerate() {
            let key = format!("g{n}");
            let mut list = by_record.remove(&(feed.path.trim_start_matches('/').to_owned(), key.clone())).unwrap();
            list.sort();
            assert_eq!(list.last().unwrap().2, *text, "the current version is what was served last");
            for (at, (ordinal, _, body)) in (1_i64..).zip(&list) {
                assert_eq!(at, *ordinal);
                assert!(feed.served[&key].contains(body), "a text that was never served");
            }
            assert!(list.windows(2).all(|pair| pair[0].1 != pair[1].1), "a version that repeats the one before");
        }
    }
    // Each version has its change, and the numbers rise without a gap in what was committed.
    let (accepted, all): (i64, i64) = connection
        .query_row(
            "SELECT (SELECT count(*) FROM change WHERE type = 'record.accepted'), (SELECT count(*) FROM version)",
            [],
            |r| Ok((r.get(0)?, r.get(1)?)),
        )
        .unwrap();
    assert_eq!(accepted, all);
}
