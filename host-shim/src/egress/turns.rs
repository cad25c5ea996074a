//! Turns: at most two requests at a time to one host, whoever makes them.
//!
//! Owns the count for each host. A turn is held while one hop is exchanged and given back when that is over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests at a time to one host: what a browser of the past would make (RFC 2616, section 8.1.4), and what publishers
/// do not notice.
const REQUESTS_PER_HOST: usize = 2;

/// Hosts after which those that nobody asks are forgotten.
const MANY_HOSTS: usize = 1_024;

/// The turns of all hosts.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    hosts: Arc<Mutex<HashMap<String, Weak<Semaphore>>>>,
}

/// A turn at one host.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// Waits for a turn at a host.
    pub(super) async fn at(&self, host: &str) -> Turn {
        let semaphore = self.semaphore(host);
        // It is never closed.
        Turn { _permit: semaphore.acquire_owned().await.ok() }
    }

    fn semaphore(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host).and_then(Weak::upgrade) {
            return known;
        }
        if hosts.len() >= MANY_HOSTS {
            hosts.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let new = Arc::new(Semaphore::new(REQUESTS_PER_HOST));
        hosts.insert(host.to_owned(), Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_have_a_turn_and_the_third_waits_until_one_is_done() {
        let turns = Turns::default();
        let (first, _second) = (turns.at("a.example").await, turns.at("a.example").await);
        let mut third = Box::pin(turns.at("a.example"));
        assert!(futures_now(&mut third).is_none());
        // Another host does not wait.
        assert!(futures_now(&mut Box::pin(turns.at("b.example"))).is_some());
        drop(first);
        assert!(futures_now(&mut third).is_some());
    }

    /// The value of a future that is ready at once.
    fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn hosts_that_nobody_asks_are_forgotten() {
        let turns = Turns::default();
        for n in 0..=MANY_HOSTS {
            drop(turns.at(&format!("{n}.example")).await);
        }
        assert_eq!(turns.hosts.lock().unwrap().len(), 1);
    }
}
