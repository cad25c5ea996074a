//! The host's clock, which tests replace.

use std::fmt::Debug;

/// Tells the time.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since 1970 in UTC.
    fn now_ms(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Clock for System {
    fn now_ms(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }
}

/// RFC 3339 in UTC with milliseconds where there are any.
#[must_use]
pub fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_string()
}
