//! What happens when the world under the service fails: a full disk, a locked or damaged store, a stop in the middle.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fake_feed_server::{FakeFeedServer, Route};
use host_shim::store::sqlite::{FILE, Sqlite};
use host_shim::store::{Store, StoreError};
use rusqlite::Connection;
use serde_json::json;

use crate::rest::{Program, add, code, corpus, prepared, until};
use crate::service::{World, rss, serving};
use crate::support::PROGRAM;

fn limit(program: &Program, bytes: &str) {
    let pid = program.id().to_string();
    let status = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:unlimited")]).status().unwrap();
    assert!(status.success());
}

fn sound(folder: &Path) {
    let connection = Connection::open(folder.join("data").join(FILE)).unwrap();
    let found: String = connection.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(found, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_costs_what_does_not_fit_and_nothing_else() {
    let server = serving(&[("a", "A")]).await;
    let folder = prepared("full");
    let program = Program::start(&folder, "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let id = add(caller, &corpus, "feed", &server.url("/feed")).await;
    let one = format!("/v0/connectors/{id}");
    until(caller, &one, |c| c["counts"]["records"] == 1).await;
    // No file may grow beyond what it is now: what a full disk is to whoever writes.
    limit(&program, "4096");
    let items: Vec<(String, String)> = (0..200).map(|n| (format!("new-{n}"), "text ".repeat(400))).collect();
    let items: Vec<(&str, &str)> = items.iter().map(|(k, t)| (k.as_str(), t.as_str())).collect();
    server.change("/feed", |r| r.replace(rss(&items))).unwrap();
    let mut number = 0;
    loop {
        number += 1;
        let body =
            json!({"idempotency_key": format!("k{number}"), "name": format!("corpus {number} {}", "x".repeat(150))});
        let answer = caller.post("/v0/corpora", &body).await.unwrap();
        if answer.status != 201 {
            assert_eq!((code(&answer), answer.body["retryable"].clone()), ((503, "storage_unavailable"), true.into()));
            assert!(!answer.text.contains("disk"), "no detail for callers: {}", answer.text);
            break;
        }
        assert!(number < 2_000, "the limit is never met");
    }
    // Reading goes on.
    assert_eq!(caller.get(&one).await.unwrap().body["counts"]["records"], 1);
    assert_eq!(caller.get("/healthz").await.unwrap().status, 200);
    limit(&program, "unlimited");
    // Everything that was told to be there is there, and the feed's items come.
    until(caller, &one, |c| c["counts"]["records"] == 201).await;
    let mut found = 0;
    let mut path = "/v0/corpora".to_owned();
    loop {
        let page = caller.get(&path).await.unwrap().body;
        found += page["items"].as_array().unwrap().len();
        let Some(cursor) = page["next_page_cursor"].as_str() else { break };
        path = format!("/v0/corpora?page_cursor={cursor}");
    }
    // The one of the feed, and those that were answered with 201.
    assert_eq!(found, number);
    program.kill();
    sound(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_another_program_locks_is_waited_for_and_then_said() {
    let program = Program::start(&prepared("locked"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let other = Connection::open(program.folder.join("data").join(FILE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = json!({"idempotency_key": "other", "name": "other"});
    let refused = caller.post("/v0/corpora", &body).await.unwrap();
    assert_eq!((code(&refused), refused.body["retryable"].clone()), ((503, "storage_unavailable"), true.into()));
    assert_eq!(caller.get(&format!("/v0/records?corpus_id={corpus}")).await.unwrap().status, 200);
    other.execute_batch("ROLLBACK").unwrap();
    // The same call again, and it is made once.
    assert_eq!(caller.post("/v0/corpora", &body).await.unwrap().status, 201);
    assert_eq!(caller.get("/v0/corpora").await.unwrap().body["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_run_whose_end_cannot_be_written_is_given_back() {
    let server = serving(&[("a", "A")]).await;
    let world = World::new("stranded").await;
    let instance = world.add("feed", &server.url("/feed"));
    // The store refuses the run's end: a trigger stands in for a disk that fails just then.
    let other = Connection::open(world.folder.join(FILE)).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE UPDATE OF checkpoint ON instance BEGIN SELECT raise(FAIL, 'disk'); END",
        )
        .unwrap();
    let run = world.poll(&instance).await;
    assert_eq!(run.outcome, None);
    other.execute_batch("DROP TRIGGER refuse").unwrap();
    let scheduler = tokio::spawn(world.service.clone().schedule());
    let given = async {
        while world.now(&instance).next_run_because != "cut_off" {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(Duration::from_secs(30), given).await.unwrap();
    let now = world.now(&instance);
    assert_eq!(now.next_run_at, now.last_run_at.unwrap() + 60_000);
    world.service.stop();
    scheduler.await.unwrap();
    assert_eq!(world.store.runs("con_feed", None, 10).unwrap()[0].outcome, "abandoned");
    assert_eq!(world.poll(&instance).await.brought.new, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_is_told_and_not_served() {
    let marker = "a text that is found in the file again, since it is long enough to stand in one piece";
    let server = serving(&[("a", marker)]).await;
    let folder = prepared("damaged-page");
    let program = Program::start(&folder, "");
    let corpus = corpus(&program.caller).await;
    let id = add(&program.caller, &corpus, "feed", &server.url("/feed")).await;
    until(&program.caller, &format!("/v0/connectors/{id}"), |c| c["counts"]["records"] == 1).await;
    let key = program.kill();
    let path = folder.join("data").join(FILE);
    // Everything into the file, then one letter of a text is another one: no structure is hurt, so that SQLite itself
    // sees nothing.
    Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - marker.len()).filter(|at| bytes[*at..].starts_with(marker.as_bytes())).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = b'A';
    }
    std::fs::write(&path, &bytes).unwrap();
    let program = Program::start(&folder, &key);
    let caller = &program.caller;
    let list = caller.get(&format!("/v0/records?corpus_id={corpus}")).await.unwrap().body;
    let record = list["items"][0]["record_id"].as_str().unwrap();
    let refused = caller.get(&format!("/v0/records/{record}/versions")).await.unwrap();
    assert_eq!((code(&refused), refused.body["retryable"].clone()), ((503, "storage_damaged"), false.into()));
    assert!(!refused.text.contains("text that"), "{}", refused.text);
    assert_eq!(code(&caller.get("/readyz").await.unwrap()), (503, "storage_damaged"));
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    assert!(log.contains("the store is damaged") && !log.contains("text that"), "{log}");
}

#[tokio::test]
async fn a_page_of_noise_is_told() {
    let server = FakeFeedServer::start().await;
    let world = World::new("noise").await;
    let items: Vec<(String, String)> = (0..200).map(|n| (format!("k{n}"), "text ".repeat(300))).collect();
    let items: Vec<(&str, &str)> = items.iter().map(|(k, t)| (k.as_str(), t.as_str())).collect();
    server.serve("/feed", Route::new(rss(&items), "application/rss+xml"));
    let instance = world.add("feed", &server.url("/feed"));
    world.poll(&instance).await;
    let path = world.folder.join(FILE);
    drop(world);
    Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let start = bytes.len() / 4096 / 4 * 4096;
    let end = bytes.len() / 4096 / 4 * 3 * 4096;
    bytes[start..end].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    let folder = path.parent().unwrap();
    let read = Sqlite::open(folder).and_then(|store| {
        let all = store.records(&crate::service::search("text"))?;
        all.iter().try_for_each(|r| store.versions(&r.record_id, 0, 10).map(drop))
    });
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_written_is_named_at_start() {
    let folder = prepared("unwritable");
    std::fs::write(folder.join("data"), "a file where the folder should be").unwrap();
    let output = Command::new(PROGRAM).args(["serve", "--config"]).arg(folder.join("host-shim.toml")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("cannot use the data folder"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_runs_in_flight_or_cuts_them_off() {
    let server = serving(&[("a", "A")]).await;
    // One that ends soon after the stop, and one that would hold it for a minute.
    server.serve("/soon", Route { delay: Duration::from_secs(2), ..Route::new(rss(&[("b", "B")]), "text/xml") });
    server.serve("/never", Route { delay: Duration::from_secs(60), ..Route::new(rss(&[("c", "C")]), "text/xml") });
    let folder = prepared("stop");
    let mut program = Program::start(&folder, "");
    let corpus = corpus(&program.caller).await;
    for name in ["soon", "never"] {
        add(&program.caller, &corpus, name, &server.url(&format!("/{name}"))).await;
    }
    let asked = async {
        while server.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asked).await.unwrap();
    let pid = program.id().to_string();
    let terminated = Command::new("kill").args(["-TERM", &pid]).stdout(Stdio::null()).status().unwrap();
    assert!(terminated.success());
    let key = program.caller.key.clone();
    // It ends by itself; the hang of a minute would show here.
    let ended = tokio::task::spawn_blocking(move || program.wait());
    let status = tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap().unwrap();
    assert!(status.success());
    let program = Program::start(&folder, &key);
    let list = program.caller.get(&format!("/v0/records?corpus_id={corpus}")).await.unwrap().body;
    let keys: Vec<_> = list["items"].as_array().unwrap().iter().map(|r| r["source"]["record_key"].clone()).collect();
    assert_eq!(keys, ["b"]);
}
