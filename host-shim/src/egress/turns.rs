//! Turns: at most so many requests at a time to one host, and a gap between two, whoever makes them.
//!
//! Owns the count and the last start for each host. A turn is held while one hop is exchanged and given back when that
//! is over. Turns are taken in the order in which they were asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// Requests at a time to one host: what a browser of the past would make (RFC 2616, section 8.1.4), and what publishers
/// do not notice.
pub const REQUESTS_PER_HOST: u32 = 2;

/// Hosts after which those that nobody asks are forgotten.
const MANY_HOSTS: usize = 1_024;

/// What a host is spared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Politeness {
    /// Requests at a time.
    pub at_once: u32,
    /// Time between two requests. Redirects of one request do not wait for each other.
    pub gap: Duration,
}

impl Politeness {
    /// For one request by hand: nobody else is there to wait for.
    pub const ALONE: Self = Self { at_once: REQUESTS_PER_HOST, gap: Duration::ZERO };
}

#[derive(Debug)]
struct Host {
    permits: Arc<Semaphore>,
    /// When the next request may start.
    free_at: Instant,
}

/// The turns of all hosts.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    politeness: Politeness,
    hosts: Arc<Mutex<HashMap<String, Host>>>,
}

/// A turn at one host.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Turns {
    pub(super) fn new(politeness: Politeness) -> Self {
        Self { politeness, hosts: Arc::default() }
    }

    /// Waits for a turn at a host, and for the gap since the last request there unless this one follows a redirect of a
    /// request to the same host.
    pub(super) async fn at(&self, host: &str, follows_itself: bool) -> Turn {
        let semaphore = self.semaphore(host);
        // It is never closed.
        let permit = semaphore.acquire_owned().await.ok();
        if !self.politeness.gap.is_zero() && !follows_itself {
            sleep_until(self.start(host)).await;
        }
        Turn { _permit: permit }
    }

    /// The next start at a host, which is taken by asking.
    fn start(&self, host: &str) -> Instant {
        let now = Instant::now();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = hosts.get_mut(host) else { return now };
        let start = known.free_at.max(now);
        known.free_at = start + self.politeness.gap;
        start
    }

    fn semaphore(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host) {
            return Arc::clone(&known.permits);
        }
        let now = Instant::now();
        if hosts.len() >= MANY_HOSTS {
            hosts.retain(|_, host| Arc::strong_count(&host.permits) > 1 || host.free_at > now);
        }
        let permits = Arc::new(Semaphore::new(self.politeness.at_once.max(1) as usize));
        hosts.insert(host.to_owned(), Host { permits: Arc::clone(&permits), free_at: now });
        permits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a future that is ready at once.
    fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn two_have_a_turn_and_the_third_waits_until_one_is_done() {
        let turns = Turns::new(Politeness::ALONE);
        let (first, _second) = (turns.at("a.example", false).await, turns.at("a.example", false).await);
        let mut third = Box::pin(turns.at("a.example", false));
        assert!(futures_now(&mut third).is_none());
        // Another host does not wait.
        assert!(futures_now(&mut Box::pin(turns.at("b.example", false))).is_some());
        drop(first);
        assert!(futures_now(&mut third).is_some());
    }

    #[tokio::test]
    async fn two_requests_are_a_gap_apart_unless_one_follows_itself() {
        let gap = Duration::from_millis(40);
        let turns = Turns::new(Politeness { gap, ..Politeness::ALONE });
        let begun = Instant::now();
        drop(turns.at("a.example", false).await);
        drop(turns.at("a.example", true).await);
        drop(turns.at("b.example", false).await);
        drop(turns.at("a.example", false).await);
        drop(turns.at("a.example", false).await);
        assert!(begun.elapsed() >= gap * 2, "the second and the third of a waited");
    }

    #[tokio::test]
    async fn hosts_that_nobody_asks_are_forgotten() {
        let turns = Turns::new(Politeness::ALONE);
        for n in 0..=MANY_HOSTS {
            drop(turns.at(&format!("{n}.example"), false).await);
        }
        assert_eq!(turns.hosts.lock().unwrap().len(), 1);
    }
}
