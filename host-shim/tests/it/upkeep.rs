//! What an operator does over years: keys changed half way, old stores, probes, figures, backups.

use std::process::Command;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::Request;
use fake_feed_server::{FakeFeedServer, Route};
use host_shim::api::Api;
use host_shim::corpus::vault::Vault;
use host_shim::store::model::{Deposit, NewInstance};
use host_shim::store::sqlite::{FILE, Sqlite, backup};
use host_shim::store::{Store, StoreError};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::rest::{Program, add, corpus, feeds, prepared, until};
use crate::service::{START, World, folder, new, serving};
use crate::support::{PROGRAM, fixtures};

#[tokio::test]
async fn a_rotation_that_is_cut_off_half_way_loses_no_secret() {
    const SECRETS: usize = 40;
    let world = World::new("rotation").await;
    let (old, fresh) = ("1".repeat(64).into_bytes(), "2".repeat(64).into_bytes());
    let before = Vault::new(&old, &[]).unwrap();
    let secret = |n: usize| format!("secret-{n}");
    for n in 0..SECRETS {
        let id = format!("con_{n}");
        let deposit = Deposit { sealed: before.seal(&id, secret(n).as_bytes()).unwrap(), expires_at: None };
        let made = NewInstance { credential: Some(deposit), ..new(&n.to_string(), "rss", json!({"url": "x"})) };
        world.try_add(&id, made).unwrap();
    }
    // Cut off after each number of secrets: what was sealed anew stays so, and the service opens both.
    let both = Vault::new(&fresh, std::slice::from_ref(&old)).unwrap();
    for done in [1, 7, 13] {
        for stored in world.store.secrets_not_under(both.key_id(), 0, done).unwrap() {
            let opened = both.open(&stored.connector_id, &stored.sealed).unwrap();
            assert!(world.store.reseal(&stored, &both.seal(&stored.connector_id, &opened).unwrap()).unwrap());
        }
        // A new process, as after a kill.
        let store = Sqlite::open(&world.folder).unwrap();
        for n in 0..SECRETS {
            let stored = store.secret(&format!("con_{n}")).unwrap().unwrap();
            assert_eq!(both.open(&stored.connector_id, &stored.sealed).unwrap(), secret(n).as_bytes());
        }
    }
    // A credential that was replaced meanwhile is not overwritten with the old one.
    let stale = world.store.secrets_not_under(both.key_id(), 0, 1).unwrap().remove(0);
    let deposit = Deposit { sealed: both.seal(&stale.connector_id, b"replaced").unwrap(), expires_at: None };
    world.store.deposit(&stale.connector_id, &deposit, &crate::service::once("replace"), START).unwrap();
    assert!(!world.store.reseal(&stale, &both.seal(&stale.connector_id, b"old").unwrap()).unwrap());
    let left = u32::try_from(SECRETS - 1 - 7 - 13 - 1).unwrap();
    assert_eq!(both.reseal(&*world.store).unwrap(), (left, Vec::new()));
    assert_eq!(both.reseal(&*world.store).unwrap(), (0, Vec::new()));
    // Nothing needs the old key any longer, and it opens nothing.
    let only = Vault::new(&fresh, &[]).unwrap();
    for n in 0..SECRETS {
        let stored = world.store.secret(&format!("con_{n}")).unwrap().unwrap();
        let expected = if stored.connector_id == stale.connector_id { "replaced".to_owned() } else { secret(n) };
        assert_eq!(only.open(&stored.connector_id, &stored.sealed).unwrap(), expected.as_bytes());
        assert!(before.open(&stored.connector_id, &stored.sealed).is_err());
    }
}

#[test]
fn a_store_of_the_first_schema_is_brought_up_with_all_it_has() {
    let folder = folder("schema-1");
    let first = rusqlite::Connection::open(folder.join(FILE)).unwrap();
    first.execute_batch(include_str!("../../src/store/migrations/0001_start.sql")).unwrap();
    first
        .execute_batch(
            "INSERT INTO corpus VALUES ('c_1', 'one', 1);
             INSERT INTO instance (connector_id, corpus_id, source_namespace, name, labels, kind, config,
               interval_seconds, silent_after_seconds, credential_warning_seconds, created_at, checkpoint, next_run_at,
               next_run_because, health, last_run_at)
             VALUES ('con_1', 'c_1', 'ns', 'harbour', '{}', 'rss', '{\"url\": \"https://example.org/\"}', 60, 60, 60, 5,
               '{\"etag\": \"1\"}', 99, 'interval', 'active', 39);
             INSERT INTO record VALUES (1, 'rec_1', 'c_1', 'ns', 'k', 7, 7, 'first-seen', 8, 2, 'r2', 2, 0);
             INSERT INTO version VALUES (1, 'v_1', 1, 1, 'r1', '[{\"key\": \"title\", \"role\": \"title\", \"text\": \"Fog\"}]',
               '{}', 0, 7, 'con_1', 'run_1', 'connector.rss', '0.1.0', 'sha256:0');
             INSERT INTO version VALUES (2, 'v_2', 1, 2, 'r2', '[{\"key\": \"title\", \"role\": \"title\", \"text\": \"Tide\"}]',
               '{}', 0, 8, 'con_1', 'run_1', 'connector.rss', '0.1.0', 'sha256:0');
             INSERT INTO change (at, type, corpus_id, resource_kind, resource_id, data)
             VALUES (5, 'connector.created', 'c_1', 'connector', 'con_1', '{}');
             INSERT INTO api_key VALUES ('key_1', zeroblob(32), 3);
             PRAGMA user_version = 1;",
        )
        .unwrap();
    drop(first);
    let store = Sqlite::open(&folder).unwrap();
    let instance = store.instance("con_1").unwrap();
    assert_eq!((instance.next_run_at, instance.new.name.as_str(), instance.failures), (99, "harbour", 0));
    assert_eq!(store.claim("con_1", 100, 200).unwrap().unwrap().checkpoint.as_deref(), Some("{\"etag\": \"1\"}"));
    assert_eq!(store.versions("rec_1", 0, 10).unwrap().len(), 2);
    // A key from before may do all that it could.
    let key = store.api_keys().unwrap().remove(0);
    assert_eq!((key.scopes.as_str(), key.corpora), ("connectors:admin content:read changes:read", None));
    // The search knows the texts of current versions, and of those alone.
    let found = |text: &str| store.records(&crate::service::search(text)).unwrap().len();
    assert_eq!((found("tide"), found("fog")), (1, 0));
    // A second start finds nothing to do.
    drop(store);
    assert_eq!(backup::check(&folder.join(FILE)).unwrap().records, 1);
    Sqlite::open(&folder).unwrap();
}

async fn ask(api: &axum::Router, path: &str) -> (u16, String) {
    let response = api.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_scheduler_that_does_not_look_is_told() {
    let world = World::new("stuck").await;
    let api = Api::new(world.service.clone()).router();
    assert_eq!(ask(&api, "/readyz").await.0, 200);
    // Half a minute in which nothing looked at the schedule.
    world.clock.0.fetch_add(30_000, Ordering::SeqCst);
    let (status, body) = ask(&api, "/readyz").await;
    assert!(status == 503 && body.contains("\"code\":\"connectors_unavailable\""), "{body}");
    assert_eq!(ask(&api, "/healthz").await.0, 200);
    // One look, and all is well.
    let scheduler = tokio::spawn(world.service.clone().schedule());
    let ready = async {
        while ask(&api, "/readyz").await.0 != 200 {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), ready).await.unwrap();
    world.service.stop();
    scheduler.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_count_what_happened_and_name_no_feed() {
    let world = World::new("metrics").await;
    let server = serving(&[("g", "text")]).await;
    server.serve("/gone-away", Route { status: Some(410), ..Route::new("", "text/plain") });
    server.serve("/busy-now", Route { status: Some(429), ..Route::new("", "text/plain") });
    let feed = world.add("feed", &server.url("/feed"));
    let gone = world.add("gone", &server.url("/gone-away"));
    let busy = world.add("busy", &server.url("/busy-now"));
    let metadata = world.add("metadata", "http://169.254.169.254/latest/meta-data");
    // Last the one after which the whole host is left alone.
    for instance in [&feed, &gone, &metadata, &feed, &busy] {
        world.poll(instance).await;
    }
    let (status, text) = ask(&Api::new(world.service.clone()).operator_router(), "/metrics").await;
    assert_eq!(status, 200);
    let value = |line: &str| {
        let found = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("{line} is not in {text}")).parse::<f64>().unwrap()
    };
    assert_eq!(value("host_shim_polls_total{outcome=\"completed\",code=\"\"}"), 2.0);
    assert_eq!(value("host_shim_polls_total{outcome=\"failed\",code=\"gone\"}"), 1.0);
    assert_eq!(value("host_shim_polls_total{outcome=\"throttled\",code=\"rate_limited\"}"), 1.0);
    assert_eq!(value("host_shim_polls_total{outcome=\"failed\",code=\"address_not_allowed\"}"), 1.0);
    assert_eq!(value("host_shim_items_total{what=\"new\"}"), 1.0);
    assert_eq!(value("host_shim_running"), 0.0);
    assert!(text.contains("host_shim_egress_refusals_total{rule=\"address\",range="), "{text}");
    for series in [
        "stage_seconds_count{stage=\"guest\"}",
        "guest_memory_bytes_count",
        "queue_lag_seconds_count",
        "store_seconds_count",
    ] {
        assert!(
            text.lines().any(|l| l.starts_with(&format!("host_shim_{}", series.trim_end_matches('}')))),
            "{series}: {text}"
        );
    }
    assert!(text.ends_with("# EOF\n"));
    let port = server.address().port().to_string();
    for word in ["127.0.0.1", &port, "169.254", "meta-data", "gone-away", "busy-now", "con_", "c_1", "/feed"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_running_service_is_restored_elsewhere() {
    let server = feeds().await;
    let program = Program::start(&prepared("backup"), "");
    let caller = &program.caller;
    let corpus = corpus(caller).await;
    let id = add(caller, &corpus, "harbour", &server.url("/rss-2.0.rss")).await;
    until(caller, &format!("/v0/connectors/{id}"), |c| !c["health"]["last_success_at"].is_null()).await;
    let records = caller.get(&format!("/v0/records?corpus_id={corpus}")).await.unwrap().body;
    let copy = program.folder.join("copy.sqlite3");
    let command = |folder: &std::path::Path, what: &str| {
        let config = folder.join("host-shim.toml");
        let output =
            Command::new(PROGRAM).args(["--json", what]).arg(&copy).arg("--config").arg(config).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    };
    let (ok, said) = command(&program.folder, "backup");
    let said_of: Value = serde_json::from_str(&said).unwrap();
    assert!(ok && said_of["connectors"] == 1 && said_of["records"] == 3, "{said}");
    // A second one does not overwrite the first, and a folder in use is not restored into.
    let (ok, said) = command(&program.folder, "backup");
    assert!(!ok && said.contains("exists already"), "{said}");
    let (ok, said) = command(&program.folder, "restore");
    assert!(!ok && said.contains("another process serves"), "{said}");
    let key = program.caller.key.clone();
    let stopped = program.folder.clone();
    drop(program);
    let (ok, said) = command(&stopped, "restore");
    assert!(!ok && said.contains("exists already"), "{said}");
    let other = prepared("restored");
    let (ok, said) = command(&other, "restore");
    assert!(ok, "{said}");
    let restored = Program::start(&other, &key);
    let after = restored.caller.get(&format!("/v0/records?corpus_id={corpus}")).await.unwrap().body;
    assert_eq!(after, records);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_neither_backed_up_nor_restored() {
    let world = World::new("damaged").await;
    let server = FakeFeedServer::start().await;
    server.serve_folder(&fixtures().join("feeds")).unwrap();
    for (n, path) in ["/rss-2.0.rss", "/podcast.rss", "/atom-1.0.atom"].iter().enumerate() {
        world.poll(&world.add(&n.to_string(), &server.url(path))).await;
    }
    let copy = world.folder.join("copy");
    backup::back_up(&world.folder, &copy).unwrap();
    // Every page but the first is overwritten in turn; each time the damage is found.
    let good = std::fs::read(&copy).unwrap();
    let page = usize::from(u16::from_be_bytes([good[16], good[17]]));
    let target = folder("damaged-target");
    for start in (page..good.len()).step_by(page * 7) {
        let mut bad = good.clone();
        bad[start..start + 200].fill(0xA5);
        std::fs::write(&copy, &bad).unwrap();
        let refused = backup::restore(&copy, &target).unwrap_err();
        assert!(matches!(refused, StoreError::Damaged(_) | StoreError::Engine(_)), "{start}: {refused}");
        assert!(!target.join(FILE).exists());
    }
    std::fs::write(&copy, "no store at all").unwrap();
    assert!(matches!(backup::restore(&copy, &target), Err(StoreError::Damaged(_))));
    assert!(backup::restore(&world.folder.join("nothing"), &target).is_err());
    std::fs::write(&copy, &good).unwrap();
    assert_eq!(backup::restore(&copy, &target).unwrap().instances, 3);
}
