//! When an instance runs next, without I/O.

/// When, and why then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// Milliseconds since 1970.
    pub at: i64,
    /// Why.
    pub because: &'static str,
    /// The source is not asked before, whoever wants to.
    pub not_before: i64,
}

/// The next run after one that started at `started` and ended at `now`.
///
/// A source that named a time is waited for; where pages are left the next run comes at once.
#[must_use]
pub fn next(started: i64, now: i64, interval_seconds: u32, retry_after_seconds: Option<u32>, more: bool) -> Next {
    if more {
        return Next { at: now, because: "more_pages", not_before: 0 };
    }
    let regular = (started + i64::from(interval_seconds) * 1_000).max(now);
    match retry_after_seconds.map(|s| now + i64::from(s) * 1_000) {
        Some(named) if named > regular => Next { at: named, because: "retry_after", not_before: named },
        Some(named) => Next { at: regular, because: "interval", not_before: named },
        None => Next { at: regular, because: "interval", not_before: 0 },
    }
}

/// When a run that a person asks for may start: not before the floor since the last start, and not before the time
/// that the source named.
#[must_use]
pub fn on_request(now: i64, last_run_at: Option<i64>, floor_seconds: u32, not_before: i64) -> i64 {
    let floor = last_run_at.map_or(now, |at| at + i64::from(floor_seconds) * 1_000);
    now.max(floor).max(not_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_counts_from_start_to_start() {
        assert_eq!(next(1_000, 4_000, 60, None, false), Next { at: 61_000, because: "interval", not_before: 0 });
        // A run longer than its interval is followed at once, never by two.
        assert_eq!(next(1_000, 90_000, 60, None, false).at, 90_000);
    }

    #[test]
    fn a_named_time_is_waited_for_where_it_is_later() {
        let late = next(0, 1_000, 60, Some(120), false);
        assert_eq!(late, Next { at: 121_000, because: "retry_after", not_before: 121_000 });
        let early = next(0, 1_000, 60, Some(5), false);
        assert_eq!(early, Next { at: 60_000, because: "interval", not_before: 6_000 });
        assert_eq!(next(0, 1_000, 60, None, true).at, 1_000);
    }

    #[test]
    fn a_request_respects_the_floor_and_the_named_time() {
        assert_eq!(on_request(10_000, None, 30, 0), 10_000);
        assert_eq!(on_request(10_000, Some(5_000), 30, 0), 35_000);
        assert_eq!(on_request(10_000, Some(5_000), 1, 90_000), 90_000);
    }
}
