//! What the tests share: the components, a runtime, a client that may reach loopback.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use host_shim::egress::client::{Client, Rules};
use host_shim::egress::credential::Credential;
use host_shim::egress::dial::Tls;
use host_shim::egress::resolver::Dns;
use host_shim::engine::answer::{Item, Page};
use host_shim::engine::image::Cache;
use host_shim::engine::limits::Limits;
use host_shim::engine::pin::{Digest, Pin};
use host_shim::engine::plugin::{Invocation, Plugin};
use host_shim::engine::runtime::Runtime;
use host_shim::engine::upstream::Upstream;
use host_shim::runner::network::Network;
use host_shim::runner::{RunError, Session};
use tokio::sync::OnceCell;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_host-shim");

/// A clock that stands still.
pub const NOW: &str = "2026-09-28T12:00:00Z";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new(Limits::DEFAULT).unwrap());
static CONNECTOR: OnceCell<Plugin> = OnceCell::const_new();

/// A component that the build put beside the program.
pub fn component(name: &str) -> PathBuf {
    let path = Path::new(PROGRAM).with_file_name(name);
    assert!(path.exists(), "{} is not built; run `make plugin` first", path.display());
    path
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

pub fn pin(name: &str) -> Pin {
    Pin { path: component(name), sha256: None, configuration: "{}".to_owned() }
}

/// Images of the test run, beside the program.
pub fn cache() -> Option<Cache> {
    Cache::open(&Path::new(PROGRAM).with_file_name("test-images"))
}

pub async fn connector() -> Plugin {
    CONNECTOR
        .get_or_init(|| async { Plugin::load(&RUNTIME, &pin("connector.rss.wasm"), cache().as_ref()).await.unwrap() })
        .await
        .clone()
}

pub fn client() -> Client {
    Client::new(Arc::new(Dns::system().unwrap()), Tls::new(&[]).unwrap(), "host-shim-tests (nobody@example.org)")
        .unwrap()
}

pub fn call(config: serde_json::Value, checkpoint: Option<String>) -> Invocation {
    Invocation {
        instance_id: "instance".into(),
        kind: "rss".into(),
        corpus_id: "corpus".into(),
        source_namespace: "namespace".into(),
        config: config.to_string(),
        checkpoint,
        now: NOW.into(),
        ..Invocation::default()
    }
}

/// What a whole run brought.
#[derive(Debug, Default)]
pub struct Run {
    pub items: Vec<Item>,
    pub pages: usize,
    pub last: Option<Page>,
}

impl Run {
    pub fn keys(&self) -> Vec<&str> {
        self.items.iter().map(|i| i.record_key.as_str()).collect()
    }

    pub fn checkpoint(&self) -> Option<String> {
        self.last.as_ref().map(|p| p.checkpoint.clone())
    }
}

pub async fn run_with(plugin: Plugin, upstream: Arc<dyn Upstream>, call: Invocation) -> Result<Run, RunError> {
    let mut session = Session::new(plugin, upstream, call);
    let mut run = Run::default();
    while let Some(page) = session.next().await {
        let page = page?;
        run.items.extend(page.items.iter().cloned());
        run.pages += 1;
        run.last = Some(page);
    }
    Ok(run)
}

/// One run over the network, loopback allowed.
pub async fn poll(url: &str, checkpoint: Option<String>) -> (Result<Run, RunError>, Arc<Network>) {
    poll_with(serde_json::json!({"url": url}), checkpoint, None, None).await
}

pub async fn poll_with(
    config: serde_json::Value,
    checkpoint: Option<String>,
    credential: Option<Credential>,
    last_body: Option<Digest>,
) -> (Result<Run, RunError>, Arc<Network>) {
    let plugin = connector().await;
    let invocation = Invocation { has_credential: credential.is_some(), ..call(config, checkpoint) };
    let network = Arc::new(Network::new(client(), Rules::open(), credential, last_body));
    (run_with(plugin, Arc::clone(&network) as _, invocation).await, network)
}
