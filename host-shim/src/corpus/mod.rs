//! The corpus service: instances, runs, records, health, and the schedule over them.
//!
//! Owns the rules: what a run does with a page, when an instance runs next, what its health is. No SQL and no HTTP in
//! it: the store is a trait, the API sits above.

pub mod access;
pub mod address;
pub mod clock;
mod ending;
pub mod health;
pub mod hosts;
pub mod metrics;
pub mod pace;
pub mod pins;
mod run;
pub mod schedule;
mod scheduler;
pub mod vault;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};

use crate::egress::client::Client;
use crate::store::model::{Claim, Instance};
use crate::store::{Store, StoreError};

pub use run::RunSummary;

use clock::Clock;
use health::State;
use hosts::{Hosts, Manners};
use metrics::Metrics;
use pins::Pins;
use vault::Vault;

/// How long a change can be read: seven days (Quivr's).
pub const CHANGES_RETENTION_MS: i64 = 7 * 24 * 3_600 * 1_000;

/// How long a claim lasts. A run ends after 2 minutes and one more call, and its process may be slow to write.
pub const LEASE: Duration = Duration::from_secs(300);

/// How long a poll waits for the end of another run before it looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What the service goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The shortest interval between two runs of an instance, in seconds.
    pub min_interval_seconds: u32,
    /// Runs at once.
    pub max_concurrent_runs: u32,
    /// How hosts are spared.
    pub manners: Manners,
    /// The longest of each wait that a source declares that counts, in seconds.
    pub max_pace_seconds: u32,
}

/// The service. Share it behind an [`Arc`].
pub struct Service {
    store: Arc<dyn Store>,
    pins: Pins,
    client: Client,
    clock: Arc<dyn Clock>,
    settings: Settings,
    permits: Arc<Semaphore>,
    /// Something may be due, or a run ended.
    wake: Notify,
    ended: Notify,
    hosts: Mutex<Hosts>,
    /// Claims whose end could not be written.
    stranded: Mutex<Vec<Claim>>,
    /// Something in the store was not what was written there.
    damaged: AtomicBool,
    /// When the scheduler last looked, in milliseconds since 1970.
    looked_at: std::sync::atomic::AtomicI64,
    /// When old changes were last taken out.
    pruned_at: std::sync::atomic::AtomicI64,
    /// Opens credentials; `None` where the host has no key for them.
    vault: Option<Vault>,
    metrics: Metrics,
    /// Moves on with each write that may have brought changes.
    changes: watch::Sender<u64>,
    /// Set once, when the service stops.
    stop: watch::Sender<bool>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Service {
    /// Puts the parts together. Nothing runs until [`Service::schedule`] does.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        pins: Pins,
        client: Client,
        clock: Arc<dyn Clock>,
        settings: Settings,
        vault: Option<Vault>,
    ) -> Arc<Self> {
        let now = clock.now_ms();
        Arc::new(Self {
            store,
            pins,
            client,
            clock,
            settings,
            permits: Arc::new(Semaphore::new(settings.max_concurrent_runs as usize)),
            wake: Notify::new(),
            ended: Notify::new(),
            hosts: Mutex::new(Hosts::new(settings.manners)),
            stranded: Mutex::default(),
            damaged: false.into(),
            looked_at: now.into(),
            pruned_at: 0.into(),
            vault,
            metrics: Metrics::default(),
            changes: watch::Sender::new(0),
            stop: watch::Sender::new(false),
        })
    }

    /// Takes up what the last process left: see [`Store::recover`].
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn recover(&self) -> Result<u32, StoreError> {
        let now = self.now_ms();
        let (abandoned, rests) = self.store(move |store| Ok((store.recover(now)?, store.rests(now)?))).await?;
        let mut hosts = self.hosts();
        for (host, until) in rests {
            hosts.rest(&host, until);
        }
        Ok(abandoned)
    }

    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The components.
    #[must_use]
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// What the service goes by.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Milliseconds since 1970 in UTC.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Makes a call of the store on a thread that may block.
    ///
    /// # Errors
    /// What the call says.
    pub async fn store<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.store);
        let begun = std::time::Instant::now();
        let result = tokio::task::spawn_blocking(move || call(&*store)).await;
        let result = result.map_err(|e| StoreError::Engine(e.to_string())).flatten();
        self.metrics.stored(!matches!(result, Err(StoreError::Engine(_) | StoreError::Damaged(_))), begun.elapsed());
        if let Err(error @ StoreError::Damaged(_)) = &result
            && !self.damaged.swap(true, Ordering::Relaxed)
        {
            tracing::error!(%error, "the store is damaged");
        }
        result
    }

    /// Whether something in the store was found damaged since the start.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// What seals credentials, where this host has a key.
    #[must_use]
    pub fn vault(&self) -> Option<&Vault> {
        self.vault.as_ref()
    }

    /// What the service counts.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Tells readers of the change log that there may be more of it.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Moves on when there may be more changes.
    #[must_use]
    pub fn watch_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Tells the scheduler and the streams to end.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether the service stops.
    #[must_use]
    pub fn watch_stop(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// After a write about an instance: tells its health, and readers and the scheduler that something moved.
    pub async fn touched(&self, connector_id: &str) {
        self.tell_health(connector_id).await;
        self.wake();
    }

    /// Tells the scheduler that something may be due.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Asks for a run as soon as the floor and the source allow; returns when.
    ///
    /// # Errors
    /// Where there is no such instance.
    pub async fn request_run(&self, connector_id: &str) -> Result<i64, StoreError> {
        let (id, now, floor) = (connector_id.to_owned(), self.now_ms(), self.settings.min_interval_seconds);
        let instance = self.store(move |store| store.instance(&id)).await?;
        // A host that asked for rest gets it, whoever asks.
        let rest = self.hosts().resting(&address::host_of(&instance.new), now).unwrap_or(0);
        let at = schedule::on_request(now, instance.last_run_at, floor, instance.not_before.max(rest));
        let id = instance.new.connector_id;
        let at = self.store(move |store| store.pull_in(&id, at, "requested").map(|due| due.max(now))).await?;
        self.wake();
        Ok(at)
    }

    /// Polls one instance now, under the budget of the schedule, and waits for the end of the run. Where a run of it is
    /// in flight, this waits for it first.
    ///
    /// # Errors
    /// Where there is no such instance or it is disabled.
    pub async fn poll_now(self: &Arc<Self>, connector_id: &str) -> Result<RunSummary, StoreError> {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            let permit =
                Arc::clone(&self.permits).acquire_owned().await.map_err(|e| StoreError::Engine(e.to_string()))?;
            let (id, now) = (connector_id.to_owned(), self.now_ms());
            let lease = now + i64::try_from(LEASE.as_millis()).unwrap_or(0);
            let (claim, disabled) = self
                .store(move |store| Ok((store.claim(&id, now, lease)?, store.instance(&id)?.disabled_at.is_some())))
                .await?;
            match claim {
                Some(claim) => {
                    let summary = self.run(claim).await;
                    drop(permit);
                    return Ok(summary);
                }
                None if disabled => return Err(StoreError::NotFound("an enabled connector of that identifier")),
                None => {
                    drop(permit);
                    // A run that ends without a word is only seen by looking again.
                    let _ = tokio::time::timeout(LOOK_AGAIN, ended).await;
                }
            }
        }
    }

    /// Health as of now.
    #[must_use]
    pub fn health(&self, instance: &Instance) -> State {
        health::evaluate(instance, self.now_ms())
    }
}
