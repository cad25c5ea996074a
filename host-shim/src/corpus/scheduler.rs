//! The scheduler: claims what is due, the longest due first, and runs it within its bounds.
//!
//! Its cost does not grow with instances that are not due: it asks the store for what is due and for the next time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use super::address::host_of;
use super::hosts::Turn;
use super::schedule::spread;
use super::{CHANGES_RETENTION_MS, LEASE, Service};
use crate::store::model::{Admission, Claim};
use crate::store::{Store, StoreError};

/// The longest sleep between two looks: the clock may jump, and a second process may have written.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// The shortest sleep, so that a store that fails is not asked without end.
const MIN_SLEEP: Duration = Duration::from_millis(10);

/// How long runs in flight may take to end when the service stops.
const GRACE: Duration = Duration::from_secs(8);

/// Time between two looks for changes past their retention.
const PRUNE_EVERY_MS: i64 = 60_000;

/// Changes that are taken out in one transaction, so that writers wait for some milliseconds only.
const PRUNED_AT_ONCE: u32 = 10_000;

/// A clock that went back by less is slewed, not set.
const CLOCK_SLACK_MS: i64 = 60_000;

/// Claims that are remembered while the store fails.
const MAX_STRANDED: usize = 1_000;

/// Time over which the feeds of a host come back after its rest.
const AFTER_REST_MS: f64 = 60_000.0;

/// A scheduler that has not looked for so long is stuck.
const STUCK: Duration = Duration::from_secs(30);

impl Service {
    /// Runs what is due until the service stops; then waits for the runs in flight, for at most eight seconds.
    pub async fn schedule(self: Arc<Self>) {
        let mut stop = self.watch_stop();
        let mut running = JoinSet::new();
        while !*stop.borrow() {
            let sleep = self.look(&mut running).await;
            tokio::select! {
                () = tokio::time::sleep(sleep) => {}
                () = self.wake.notified() => {}
                changed = stop.changed() => if changed.is_err() { break },
            }
            while running.try_join_next().is_some() {}
        }
        let drained = tokio::time::timeout(GRACE, async { while running.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            tracing::warn!(
                runs = running.len(),
                "runs in flight were cut off; they start again from their checkpoints"
            );
        }
    }

    /// Starts what is due and what there is room for; returns how long to sleep.
    async fn look(self: &Arc<Self>, running: &mut JoinSet<()>) -> Duration {
        self.mind_the_clock().await;
        self.give_back_stranded().await;
        let mut permits: Vec<OwnedSemaphorePermit> = Vec::new();
        while let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            permits.push(permit);
        }
        if permits.is_empty() {
            // The end of a run wakes the scheduler.
            return MAX_SLEEP;
        }
        let (now, room) = (self.now_ms(), u32::try_from(permits.len()).unwrap_or(u32::MAX));
        let lease = now + i64::try_from(LEASE.as_millis()).unwrap_or(0);
        let service = Arc::clone(self);
        let claimed = self.store(move |store| service.claim_due(store, now, lease, room)).await;
        let claims = match claimed {
            Ok(claims) => claims,
            Err(error) => {
                tracing::error!(%error, "the store could not be asked for what is due");
                return MAX_SLEEP;
            }
        };
        for (claim, permit) in claims.into_iter().zip(permits) {
            self.start(running, claim, permit);
        }
        self.prune(now).await;
        match self.store(move |store| store.next_due(now)).await {
            Ok(Some(at)) => {
                self.metrics.overdue(now - at);
                Duration::from_millis(u64::try_from(at - self.now_ms()).unwrap_or(0)).clamp(MIN_SLEEP, MAX_SLEEP)
            }
            _ => MAX_SLEEP,
        }
    }

    /// Claims what is due and whose host has a turn; a turn is given back where the claim did not come about.
    fn claim_due(&self, store: &dyn Store, now: i64, lease: i64, room: u32) -> Result<Vec<Claim>, StoreError> {
        let mut taken = Vec::new();
        let claimed = store.claim_due(now, lease, room, &mut |instance| {
            let host = host_of(&instance.new);
            match self.hosts().ask(&host, now) {
                Turn::Now => {
                    taken.push(host);
                    Admission::Now
                }
                Turn::At(at) => Admission::Queued(at),
                // Not all of a host's feeds in the first second after its rest.
                Turn::Resting(until) => {
                    let place = f64::midpoint(spread(&instance.new.connector_id), 1.0);
                    #[expect(clippy::cast_possible_truncation, reason = "a part of a minute in milliseconds")]
                    let later = (place * AFTER_REST_MS) as i64;
                    Admission::Resting(until + later)
                }
            }
        });
        if claimed.is_err() {
            taken.iter().for_each(|host| self.hosts().done(host));
        }
        claimed
    }

    /// Remembers a claim whose end could not be written.
    pub(super) fn strand(&self, claim: Claim) {
        let mut stranded = self.stranded.lock().unwrap_or_else(PoisonError::into_inner);
        // Past that the lease gives them back.
        if stranded.len() < MAX_STRANDED {
            stranded.push(claim);
        }
    }

    /// Gives back what a failing store kept from ending, once it answers again. What it was doing comes an interval
    /// after it began.
    async fn give_back_stranded(&self) {
        let claims = std::mem::take(&mut *self.stranded.lock().unwrap_or_else(PoisonError::into_inner));
        for claim in claims {
            let now = self.now_ms();
            let at = now.max(claim.started_at + i64::from(claim.instance.new.interval_seconds) * 1_000);
            let given = claim.clone();
            if self.store(move |store| store.give_back(&given, now, at)).await.is_err() {
                self.strand(claim);
            }
        }
    }

    /// Remembers the look; where the clock was set back since the last one, what a clock ahead wrote is mended.
    async fn mind_the_clock(&self) {
        let now = self.now_ms();
        let before = self.looked_at.swap(now, Ordering::Relaxed);
        if before - now < CLOCK_SLACK_MS {
            return;
        }
        self.hosts().forget_rests();
        match self.store(move |store| store.settle(now)).await {
            Ok(count) => {
                tracing::warn!(count, back_ms = before - now, "the clock was set back; times ahead are mended")
            }
            Err(error) => tracing::error!(%error, "the clock was set back; times ahead could not be mended"),
        }
    }

    /// Takes out changes past their retention, once a minute.
    async fn prune(&self, now: i64) {
        if now.saturating_sub(self.pruned_at.load(Ordering::Relaxed)) < PRUNE_EVERY_MS {
            return;
        }
        self.pruned_at.store(now, Ordering::Relaxed);
        let pruned = self.store(move |store| store.prune_changes(now - CHANGES_RETENTION_MS, PRUNED_AT_ONCE)).await;
        match pruned {
            // There are more: go on with the next look.
            Ok(PRUNED_AT_ONCE) => self.pruned_at.store(0, Ordering::Relaxed),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "old changes could not be taken out"),
        }
    }

    fn start(self: &Arc<Self>, running: &mut JoinSet<()>, claim: Claim, permit: OwnedSemaphorePermit) {
        let service = Arc::clone(self);
        running.spawn(async move {
            let host = host_of(&claim.instance.new);
            service.run(claim).await;
            service.hosts().done(&host);
            drop(permit);
            service.wake();
        });
    }

    /// Whether the scheduler looks at its work.
    #[must_use]
    pub fn is_scheduling(&self) -> bool {
        let since = self.now_ms() - self.looked_at.load(Ordering::Relaxed);
        since < i64::try_from(STUCK.as_millis()).unwrap_or(i64::MAX)
    }
}
