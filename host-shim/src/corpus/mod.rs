//! The corpus service: instances, runs, records, health, and the schedule over them.
//!
//! Owns the rules: what a run does with a page, when an instance runs next, what its health is. No SQL and no HTTP in
//! it: the store is a trait, the API sits above.

pub mod clock;
pub mod health;
pub mod pins;
mod run;
pub mod schedule;
mod scheduler;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};

use crate::egress::client::Client;
use crate::store::model::Instance;
use crate::store::{Store, StoreError};

pub use run::RunSummary;

use clock::Clock;
use health::State;
use pins::Pins;

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
    /// When the scheduler last looked, in milliseconds since 1970.
    looked_at: std::sync::atomic::AtomicI64,
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
            looked_at: now.into(),
        })
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
        tokio::task::spawn_blocking(move || call(&*store)).await.map_err(|e| StoreError::Engine(e.to_string()))?
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
        let at = self
            .store(move |store| {
                let instance = store.instance(&id)?;
                let at = schedule::on_request(now, instance.last_run_at, floor, instance.not_before);
                store.pull_in(&id, at, "requested").map(|due| due.max(now))
            })
            .await?;
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
