//! One run of an instance: its pages, one after the other, under the bounds of a run.
//!
//! Owns the bounds of a run and what a run's error is. Stores nothing and schedules nothing; whoever drives a
//! [`Session`] does, page by page.

pub mod document;
pub mod network;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::answer::{Class, Failure, Page};
use crate::engine::error::CallError;
use crate::engine::plugin::{Invocation, Plugin, Usage};
use crate::engine::upstream::Upstream;

/// Pages of one run; with 250 items each they are more than a document may have.
pub const MAX_PAGES: u32 = 10;

/// Time after which no further page is begun.
pub const MAX_RUN_TIME: Duration = Duration::from_secs(120);

/// Why a run ended without its next page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The connector says why.
    #[error("{}", .0.message)]
    Source(Failure),
    /// The component failed.
    #[error(transparent)]
    Component(#[from] CallError),
}

impl RunError {
    /// Whose fault it is. A component that fails on a document may succeed on the next one.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Source(failure) => failure.class,
            Self::Component(_) => Class::Source,
        }
    }

    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Source(failure) => &failure.code,
            Self::Component(error) => error.code(),
        }
    }

    /// When the source wants to be asked again.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u32> {
        match self {
            Self::Source(failure) => failure.retry_after_seconds,
            Self::Component(_) => None,
        }
    }
}

/// The pages of one run.
pub struct Session {
    plugin: Plugin,
    upstream: Arc<dyn Upstream>,
    call: Invocation,
    begun: Instant,
    over: bool,
    /// What the run used up so far: guest time added, memory at its peak.
    pub usage: Usage,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("page", &self.call.page_in_run).finish_non_exhaustive()
    }
}

impl Session {
    /// Begins a run. `call` has the checkpoint to start from; its page number is set here.
    #[must_use]
    pub fn new(plugin: Plugin, upstream: Arc<dyn Upstream>, call: Invocation) -> Self {
        let call = Invocation { page_in_run: 0, ..call };
        Self { plugin, upstream, call, begun: Instant::now(), over: false, usage: Usage::default() }
    }

    /// Whether the page that came last was the last one.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over || self.call.page_in_run >= MAX_PAGES || self.begun.elapsed() >= MAX_RUN_TIME
    }

    /// The next page, or why there is none; `None` when the run is over.
    pub async fn next(&mut self) -> Option<Result<Page, RunError>> {
        if self.is_over() {
            return None;
        }
        let (result, usage) = self.plugin.fetch(&self.call, Arc::clone(&self.upstream)).await;
        self.usage.ticks += usage.ticks;
        self.usage.peak_memory = self.usage.peak_memory.max(usage.peak_memory);
        let page = match result {
            Ok(Ok(page)) => page,
            Ok(Err(failure)) => {
                self.over = true;
                return Some(Err(RunError::Source(failure)));
            }
            Err(error) => {
                self.over = true;
                return Some(Err(error.into()));
            }
        };
        self.over = !page.more || page.notice.is_some();
        self.call.checkpoint = Some(page.checkpoint.clone());
        self.call.page_in_run += 1;
        self.call.unconditional = false;
        Some(Ok(page))
    }
}
