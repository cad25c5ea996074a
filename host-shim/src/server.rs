//! The whole service as one value: store, components, scheduler and API, started and stopped together.
//!
//! Owns the order of start and stop and the lock on the data folder. The command line prints what it says.

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::api::{Api, new_key};
use crate::config::Config;
use crate::corpus::access::Scope;
use crate::corpus::clock::System;
use crate::corpus::pins::Pins;
use crate::corpus::vault::{MAX_KEY_BYTES, Vault};
use crate::corpus::{Service, Settings};
use crate::egress::client::Client;
use crate::egress::dial::{self, Tls};
use crate::egress::error::Failure;
use crate::egress::resolver::Dns;
use crate::engine::error::PinError;
use crate::engine::image::Cache;
use crate::engine::limits::Limits;
use crate::engine::runtime::Runtime;
use crate::ids;
use crate::store::model::ApiKey;
use crate::store::sqlite::Sqlite;
use crate::store::{Store, StoreError};

/// Bytes of a file with authorities: a few hundred of them.
const MAX_AUTHORITY_BYTES: u64 = 1024 * 1024;

/// How long calls in flight may take to end once the runs are done.
const HTTP_GRACE: Duration = Duration::from_secs(1);

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder cannot be used.
    #[error("cannot use the data folder {path}: {source}")]
    Folder {
        /// Folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another process has it.
    #[error("another process serves {0}; stop it first")]
    Locked(PathBuf),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address with listen")]
    Listen {
        /// Address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// An operator's own authority.
    #[error("cannot read the authorities in {path}: {source}; check tls_authorities")]
    Authority {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The sandbox.
    #[error("{0}")]
    Sandbox(#[from] PinError),
    /// The way out.
    #[error("{0}")]
    Egress(#[from] Failure),
    /// The key for credentials.
    #[error("cannot read the credential key in {path}: {why}")]
    CredentialKey {
        /// File.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// No randomness.
    #[error("the machine has no randomness for a key: {0}")]
    Randomness(getrandom::Error),
}

/// A running service.
#[derive(Debug)]
pub struct Server {
    /// Where the API listens.
    pub address: SocketAddr,
    /// The key that the first start made; it is shown here and nowhere else.
    pub first_key: Option<String>,
    /// Kinds with the component that serves each.
    pub kinds: Vec<String>,
    /// What an operator should know: pins left out, what is open, what was cut off.
    pub warnings: Vec<String>,
    /// The service itself, for callers inside the process.
    pub service: Arc<Service>,
    scheduler: JoinHandle<()>,
    http: JoinHandle<std::io::Result<()>>,
    _lock: File,
}

impl Server {
    /// Starts the service: lock, store, components, scheduler, API.
    ///
    /// # Errors
    /// The first of these that fails. A component that cannot be used is a warning.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        let lock = lock(&config.data_dir)?;
        let store: Arc<dyn Store> = Arc::new(Sqlite::open(&config.data_dir)?);
        let mut warnings = Vec::new();
        let service = service(config, Arc::clone(&store), &mut warnings).await?;
        let failed = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        // Last of what may fail: a key that is made is shown.
        let first_key = first_key(&*store)?;
        let scheduler = tokio::spawn(Arc::clone(&service).schedule());
        let router = Api::new(Arc::clone(&service)).router();
        let mut until = service.watch_stop();
        let http = tokio::spawn(async move {
            let stopped = async move { while !*until.borrow() && until.changed().await.is_ok() {} };
            let router = router.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, router).with_graceful_shutdown(stopped).await
        });
        let kinds = service
            .pins()
            .iter()
            .map(|(kind, p)| format!("{kind}: {} {}", p.plugin.descriptor().id, p.plugin.digest()))
            .collect();
        Ok(Self { address, first_key, kinds, warnings, service, scheduler, http, _lock: lock })
    }

    /// Stops the service: no new runs and calls, those in flight end, within ten seconds.
    pub async fn stop(self) {
        self.service.stop();
        if let Err(error) = self.scheduler.await {
            tracing::error!(%error, "the scheduler ended badly");
        }
        // Calls in flight end too, but a caller that holds its connection open must not hold the process.
        let mut http = self.http;
        if tokio::time::timeout(HTTP_GRACE, &mut http).await.is_err() {
            http.abort();
        }
    }
}

/// A service that nobody serves and that runs nothing by itself: for commands on a data folder.
#[derive(Debug)]
pub struct Offline {
    /// The service.
    pub service: Arc<Service>,
    /// What an operator should know.
    pub warnings: Vec<String>,
    _lock: File,
}

impl Offline {
    /// Takes the data folder for this process.
    ///
    /// # Errors
    /// As [`Server::start`]; [`StartError::Locked`] where a service runs on it.
    pub async fn open(config: &Config) -> Result<Self, StartError> {
        let lock = lock(&config.data_dir)?;
        let store: Arc<dyn Store> = Arc::new(Sqlite::open(&config.data_dir)?);
        let mut warnings = Vec::new();
        let service = service(config, store, &mut warnings).await?;
        Ok(Self { service, warnings, _lock: lock })
    }
}

/// One process owns a data folder, for as long as it holds the file.
///
/// # Errors
/// [`StartError::Locked`] where another one does, [`StartError::Folder`] where it cannot be used.
pub fn lock(folder: &Path) -> Result<File, StartError> {
    let failed = |source| StartError::Folder { path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let file = File::options().create(true).truncate(false).write(true).open(folder.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::Locked(folder.to_owned())),
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

async fn service(
    config: &Config,
    store: Arc<dyn Store>,
    warnings: &mut Vec<String>,
) -> Result<Arc<Service>, StartError> {
    let runtime = Runtime::new(Limits::DEFAULT)?;
    let cache = Cache::open(&config.data_dir.join("images"));
    let (pins, refused) = Pins::load(&runtime, &config.plugins, cache.as_ref()).await;
    warnings.extend(refused.iter().map(|error| format!("a pin is left out: {error}")));
    for (kind, pinned) in pins.iter() {
        warnings.extend(pinned.rules.sentences().iter().map(|what| format!("kind {kind} may reach {what}")));
    }
    let dns = if config.dns_servers.is_empty() { Dns::system()? } else { Dns::servers(&config.dns_servers)? };
    let client = Client::new(Arc::new(dns), Tls::new(&authorities(&config.tls_authorities)?)?, &config.user_agent)?;
    let client = client.with_politeness(config.politeness());
    let settings = Settings {
        min_interval_seconds: config.min_interval_seconds,
        max_concurrent_runs: config.max_concurrent_runs,
        manners: config.manners(),
        max_pace_seconds: config.max_pace_seconds,
    };
    let service = Service::new(store, pins, client, Arc::new(System), settings, vault(config)?);
    let abandoned = service.recover().await?;
    if abandoned > 0 {
        warnings
            .push(format!("{abandoned} runs were cut off by the last stop; they go on from their checkpoints an interval after they began"));
    }
    Ok(service)
}

/// The operator's own authorities.
fn authorities(files: &[PathBuf]) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let mut all = Vec::new();
    for path in files {
        let failed = |source| StartError::Authority { path: path.clone(), source };
        let mut pem = Vec::new();
        File::open(path).map_err(failed)?.take(MAX_AUTHORITY_BYTES).read_to_end(&mut pem).map_err(failed)?;
        all.extend(dial::authorities(&pem)?);
    }
    Ok(all)
}

/// What seals credentials, where a key is configured.
///
/// # Errors
/// Where a file cannot be read or holds no key.
pub fn vault(config: &Config) -> Result<Option<Vault>, StartError> {
    let Some(current) = &config.credential_key_file else { return Ok(None) };
    let failed = |path: &Path, why: String| StartError::CredentialKey { path: path.to_owned(), why };
    let read = |path: &Path| -> Result<Vec<u8>, StartError> {
        let mut text = Vec::new();
        let file = File::open(path).map_err(|e| failed(path, e.to_string()))?;
        file.take(MAX_KEY_BYTES as u64 + 2).read_to_end(&mut text).map_err(|e| failed(path, e.to_string()))?;
        // Read once alone, so that the file that is wrong is named.
        Vault::new(&text, &[]).map_err(|e| failed(path, e.to_string()))?;
        Ok(text)
    };
    let old = config.old_credential_key_files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    Vault::new(&read(current)?, &old).map(Some).map_err(|e| failed(current, e.to_string()))
}

/// A key as the store has it, made now.
///
/// # Errors
/// No randomness.
pub fn make_key(name: &str, scopes: &[Scope], corpora: Option<Vec<String>>) -> Result<(String, ApiKey), StartError> {
    let (key, hash) = new_key().map_err(StartError::Randomness)?;
    let now = jiff::Timestamp::now().as_millisecond();
    let scopes: Vec<&str> = scopes.iter().map(|s| s.name()).collect();
    let stored = ApiKey {
        key_id: ids::new("key", now),
        name: name.to_owned(),
        hash,
        scopes: scopes.join(" "),
        corpora,
        created_at: now,
        revoked_at: None,
    };
    Ok((key, stored))
}

/// The key that the first start makes.
fn first_key(store: &dyn Store) -> Result<Option<String>, StartError> {
    if !store.api_keys()?.is_empty() {
        return Ok(None);
    }
    let scopes = [Scope::ConnectorsAdmin, Scope::ContentRead, Scope::ChangesRead];
    let (key, stored) = make_key("first", &scopes, None)?;
    store.add_api_key(&stored)?;
    Ok(Some(key))
}
