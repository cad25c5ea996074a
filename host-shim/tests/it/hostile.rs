//! Hostile components cost the one call that ran them, with a clear error, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use fake_feed_server::{FakeFeedServer, Route};
use host_shim::egress::client::Rules;
use host_shim::engine::error::CallError;
use host_shim::engine::limits::Limits;
use host_shim::engine::plugin::{Invocation, Plugin};
use host_shim::engine::runtime::Runtime;
use host_shim::engine::upstream::{Nowhere, Request, Sending, Upstream};
use host_shim::runner::RunError;
use host_shim::runner::network::Network;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::support::{cache, call, client, pin, poll, run_with};

static HOSTILE: OnceCell<Plugin> = OnceCell::const_new();

/// The hostile component under limits that keep the tests short.
pub async fn hostile() -> Plugin {
    let limits = Limits { cpu: Duration::from_millis(300), wall: Duration::from_secs(3), ..Limits::DEFAULT };
    HOSTILE
        .get_or_init(|| async {
            let runtime = Runtime::new(limits).unwrap();
            Plugin::load(&runtime, &pin("hostile.wasm"), cache().as_ref()).await.unwrap()
        })
        .await
        .clone()
}

async fn misbehave(mode: &str, url: &str, upstream: Arc<dyn Upstream>) -> Result<usize, RunError> {
    let invocation =
        Invocation { kind: "hostile".into(), ..call(json!({"mode": mode, "url": url}), Some("{}x".into())) };
    run_with(hostile().await, upstream, invocation).await.map(|r| r.items.len())
}

async fn error(mode: &str) -> RunError {
    misbehave(mode, "http://127.0.0.1:9/", Arc::new(Nowhere)).await.unwrap_err()
}

#[tokio::test]
async fn what_uses_up_time_or_memory_is_stopped() {
    for (mode, code) in [
        ("spin", "plugin_timeout"),
        ("log-loop", "plugin_timeout"),
        ("http-loop", "plugin_timeout"),
        ("allocate", "plugin_memory"),
        ("recurse", "plugin_trap"),
    ] {
        assert_eq!(error(mode).await.code(), code, "{mode}");
    }
}

#[tokio::test]
async fn a_panic_tells_its_place_and_not_its_text() {
    let RunError::Component(error) = error("panic").await else { panic!("not a trap") };
    assert_eq!(error.code(), "plugin_trap");
    let message = error.to_string();
    assert!(message.contains("component.rs:"), "{message}");
    assert!(!message.contains("secret"), "{message}");
}

#[tokio::test]
async fn too_much_handed_over_at_once_is_refused() {
    for mode in ["huge-answer", "huge-log", "large-page"] {
        let RunError::Component(error) = error(mode).await else { panic!("{mode}") };
        assert_eq!((error.code(), error.reason()), ("plugin_invalid_response", Some("response_too_large")), "{mode}");
    }
}

/// A host call that never ends.
struct Held;

impl Upstream for Held {
    fn send(&self, _request: Request) -> Sending<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_host_call_held_open_ends_by_the_wall_clock() {
    let error = misbehave("http-held", "http://127.0.0.1:9/", Arc::new(Held)).await.unwrap_err();
    assert!(matches!(error, RunError::Component(CallError::Wall(_))), "{error:?}");
}

#[tokio::test]
async fn every_lie_is_found_out_by_its_own_rule() {
    for (mode, reason) in [
        ("many-items", "too_many_items"),
        ("same-key", "duplicate_record_key"),
        ("empty-key", "invalid_item"),
        ("long-key", "invalid_item"),
        ("nul-key", "invalid_item"),
        ("empty-revision", "invalid_item"),
        ("long-revision", "invalid_item"),
        ("no-parts", "invalid_item"),
        ("withdrawn-with-parts", "invalid_item"),
        ("empty-text", "invalid_item"),
        ("many-parts", "too_many_parts"),
        ("same-part", "invalid_item"),
        ("orphan-part", "invalid_item"),
        ("circular-part", "invalid_item"),
        ("undeclared-namespace", "undeclared_namespace"),
        ("undeclared-version", "undeclared_schema_version"),
        ("extension-no-object", "invalid_extension"),
        ("extension-twice", "invalid_extension"),
        ("large-checkpoint", "checkpoint_too_large"),
        ("stalled", "stalled_checkpoint"),
        ("window-and-more", "invalid_window"),
        ("window-order", "invalid_window"),
        ("not-due-with-items", "invalid_not_due"),
        ("not-due-moved", "invalid_not_due"),
        ("bad-notice", "invalid_notice"),
        ("bad-hour", "invalid_hints"),
        ("bad-diagnostics", "invalid_diagnostics"),
        ("large-diagnostics", "diagnostics_too_large"),
        ("bad-code", "invalid_error"),
        ("empty-message", "invalid_error"),
        ("long-message", "invalid_error"),
        ("retry-of-source", "wrong_error_class"),
    ] {
        let RunError::Component(error) = error(mode).await else { panic!("{mode} went through") };
        assert_eq!((error.code(), error.reason()), ("plugin_invalid_response", Some(reason)), "{mode}");
    }
    assert_eq!(misbehave("honest", "", Arc::new(Nowhere)).await, Ok(1));
}

#[tokio::test]
async fn a_header_of_the_hosts_own_is_not_sent() {
    let server = FakeFeedServer::start().await;
    server.serve("/feed", Route::new("x", "text/plain"));
    let network = Network::new(client(), Rules::open(), None, None);
    assert_eq!(misbehave("own-header", &server.url("/feed"), Arc::new(network)).await, Ok(1));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_good_component_goes_on_beside_hostile_ones() {
    let server = FakeFeedServer::start().await;
    let feed = "<rss version=\"2.0\"><channel><item><guid>g</guid><title>t</title></item></channel></rss>";
    server.serve("/feed", Route::new(feed, "application/rss+xml"));
    let mut spinning = Vec::new();
    for _ in 0..4 {
        spinning.push(tokio::spawn(async { error("spin").await.code().to_owned() }));
    }
    for _ in 0..5 {
        assert_eq!(poll(&server.url("/feed"), None).await.0.unwrap().keys(), ["g"]);
    }
    for task in spinning {
        assert_eq!(task.await.unwrap(), "plugin_timeout");
    }
}
