//! When an instance runs next, and why then: arithmetic without I/O.
//!
//! Owns every rule of pace: the interval, what a source declares, what it asks for when it turns a reader away, and what
//! follows a failure. Each time comes with the reason that won. `facts` of the standards: RSS 2.0 (`ttl`, `skipHours`,
//! `skipDays`), RFC 9111 (freshness), RFC 9110 and 6585 (`Retry-After`, 429), the RSS syndication module.

use sha2::{Digest, Sha256};

use super::pace::{HOUR_MS, Pace};

/// A feed that was turned away is not asked for half an hour, whatever its interval.
const THROTTLED_FEED_MS: i64 = HOUR_MS / 2;

/// A rate limit that names no wait is an hour.
pub const UNNAMED_LIMIT_MS: i64 = HOUR_MS;

/// The longest wait after failures in a row: a feed that comes back is seen within a day.
const MAX_BACKOFF_MS: i64 = 24 * HOUR_MS;

/// The longest wait that a source may name by `Retry-After`.
pub const MAX_NAMED_MS: i64 = 24 * HOUR_MS;

/// A time that never comes.
pub const NEVER: i64 = 253_402_300_799_000;

/// Every reason that a next run can have; `gone` and what is `running` among them.
pub const BECAUSE: [&str; 18] = [
    "created",
    "requested",
    "running",
    "more_pages",
    "interval",
    "ttl",
    "cache_control",
    "expires",
    "update_period",
    "skip_hours",
    "skip_days",
    "retry_after",
    "throttled",
    "host_throttled",
    "failures",
    "gone",
    "cut_off",
    "clock",
];

/// When, and why then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// Milliseconds since 1970; [`NEVER`] where a person has to act first.
    pub at: i64,
    /// Why.
    pub because: &'static str,
    /// The source is not asked before, whoever wants to.
    pub not_before: i64,
}

/// What an instance goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Time from start to start.
    pub interval_ms: i64,
    /// The shortest that it may be.
    pub floor_ms: i64,
    /// The longest of each declared wait that counts.
    pub max_pace_ms: i64,
    /// What the source declares counts.
    pub honors_pace: bool,
    /// Where the instance stands between the earliest and the latest of its kind: -1 to 1, always the same.
    pub spread: f64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It did its work.
    Done,
    /// It did its work and pages are left.
    More,
    /// The source turned the reader away, naming a wait or not.
    Throttled {
        /// `Retry-After`.
        named_ms: Option<i64>,
    },
    /// It failed; so many failures in a row came before it.
    Failed {
        /// Their number.
        before: u32,
        /// `Retry-After`.
        named_ms: Option<i64>,
    },
    /// The source took itself down for good (410).
    Gone,
}

/// Where an instance stands between -1 and 1: feeds that start together drift apart, and each keeps its place.
#[must_use]
pub fn spread(connector_id: &str) -> f64 {
    let digest = Sha256::digest(connector_id.as_bytes());
    let number = digest.iter().take(4).fold(0_u32, |n, b| (n << 8) | u32::from(*b));
    f64::from(number) / f64::from(u32::MAX) * 2.0 - 1.0
}

/// A part of a time.
fn part(ms: i64, of: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "days in milliseconds fit")]
    let part = (ms as f64 * of) as i64;
    part
}

/// A tenth of a time, earlier or later, by where the instance stands.
fn jitter(rules: &Rules, ms: i64) -> i64 {
    part(ms, rules.spread * 0.1)
}

/// Up to a tenth of a time, later only.
fn late(rules: &Rules, ms: i64) -> i64 {
    part(ms, f64::midpoint(rules.spread, 1.0) * 0.1)
}

/// The next run after one that started at `started` and ended at `now`.
#[must_use]
pub fn next(rules: &Rules, pace: &Pace, started: i64, now: i64, ended: Ended) -> Next {
    let healthy = regular(rules, pace, started, now);
    match ended {
        Ended::Done => healthy,
        // The floor holds for a component that always promises one more page, too.
        Ended::More => Next { at: now.max(started + rules.floor_ms), because: "more_pages", not_before: 0 },
        Ended::Gone => Next { at: NEVER, because: "gone", not_before: 0 },
        Ended::Throttled { named_ms } => {
            let named = named_ms.map(|ms| ms.min(MAX_NAMED_MS));
            let least = rules.interval_ms.max(THROTTLED_FEED_MS);
            let wait = named.unwrap_or(UNNAMED_LIMIT_MS).max(least);
            let because = if named.is_some_and(|ms| ms >= least) { "retry_after" } else { "throttled" };
            let at = now + wait;
            let next = later(rules, pace, healthy, at + late(rules, wait), because);
            Next { not_before: at, ..next }
        }
        Ended::Failed { before, named_ms } => {
            let named = named_ms.map_or(0, |ms| now + ms.min(MAX_NAMED_MS));
            let wait = backoff(rules.interval_ms, before);
            let because = if before > 0 { "failures" } else { "interval" };
            // The declared pace is that of documents; a source that fails gave none.
            let at = (started + wait + jitter(rules, wait)).max(now).max(started + rules.floor_ms);
            let (at, because) = if named > at { (named, "retry_after") } else { (at, because) };
            let (at, because) = skipped(rules, pace, at, because);
            Next { at, because, not_before: named }
        }
    }
}

/// The interval, twice as long for each failure before, up to a day.
fn backoff(interval_ms: i64, before: u32) -> i64 {
    let doubled = interval_ms.saturating_mul(1_i64.checked_shl(before.min(40)).unwrap_or(i64::MAX));
    doubled.min(MAX_BACKOFF_MS.max(interval_ms))
}

/// The later of two, never inside skipped hours.
fn later(rules: &Rules, pace: &Pace, healthy: Next, at: i64, because: &'static str) -> Next {
    if healthy.at > at {
        return healthy;
    }
    let (at, because) = skipped(rules, pace, at, because);
    Next { at, because, not_before: 0 }
}

/// The largest of the interval and of what the source declares, on the grid of the interval.
fn regular(rules: &Rules, pace: &Pace, started: i64, now: i64) -> Next {
    let (declared, because) =
        if rules.honors_pace { declared(rules, pace, started, now) } else { (started, "interval") };
    let interval = rules.interval_ms.max(1);
    let target = declared.max(now);
    let steps = ((target - started).max(1) + interval - 1) / interval;
    let on_grid = started + steps * interval;
    let because = if declared > started + interval { because } else { "interval" };
    let at = (on_grid + jitter(rules, interval)).max(declared).max(now).max(started + rules.floor_ms);
    let (at, because) = skipped(rules, pace, at, because);
    Next { at, because, not_before: 0 }
}

/// The latest instant that the source declares, and by what.
fn declared(rules: &Rules, pace: &Pace, started: i64, now: i64) -> (i64, &'static str) {
    let wait = |seconds: Option<u64>| {
        let ms = i64::try_from(seconds.unwrap_or(0).saturating_mul(1_000)).unwrap_or(i64::MAX);
        started + ms.min(rules.max_pace_ms)
    };
    // Where both are there max-age alone counts (RFC 9111, section 5.3).
    let expires = pace
        .expires_ms()
        .filter(|_| pace.max_age_seconds.is_none())
        .map_or(started, |at| at.min(now + rules.max_pace_ms));
    [
        (wait(pace.ttl_seconds), "ttl"),
        (wait(pace.max_age_seconds), "cache_control"),
        (expires, "expires"),
        (wait(pace.update_period_seconds), "update_period"),
    ]
    .into_iter()
    .fold((started, "interval"), |latest, one| if one.0 > latest.0 { one } else { latest })
}

/// Moved out of the hours and days in which the source does not want to be asked. Where it names all of them it means
/// none.
fn skipped(rules: &Rules, pace: &Pace, at: i64, because: &'static str) -> (i64, &'static str) {
    if !rules.honors_pace {
        return (at, because);
    }
    match pace.allowed(at) {
        // Not everybody at the first second of the hour.
        Some((hour, Some(reason))) => (hour + late(rules, rules.interval_ms.clamp(0, HOUR_MS - 1)), reason),
        _ => (at, because),
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
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const MINUTE: i64 = 60_000;
    /// 2026-09-28T12:00:00Z, a Monday.
    const T: i64 = 1_790_596_800_000;

    fn rules(minutes: i64) -> Rules {
        let interval_ms = minutes * MINUTE;
        Rules { interval_ms, floor_ms: 30_000, max_pace_ms: HOUR_MS, honors_pace: true, spread: 0.0 }
    }

    fn pace(hints: &Value) -> Pace {
        Pace::of(Some(hints))
    }

    fn after(rules: &Rules, hints: &Value, ended: Ended) -> (i64, &'static str) {
        let next = next(rules, &pace(hints), T, T + 2_000, ended);
        ((next.at - T) / MINUTE, next.because)
    }

    #[test]
    fn every_reason_is_explained() {
        let readme = include_str!("../../../README.md");
        let table = readme.split("## Pace").nth(1).unwrap().split("\n## ").next().unwrap();
        for because in BECAUSE {
            assert!(table.contains(&format!("`{because}`")), "{because}");
        }
    }

    #[test]
    fn the_largest_of_what_is_declared_wins_on_the_grid_of_the_interval() {
        for (hints, minutes, because) in [
            (json!({}), 10, "interval"),
            (json!({"ttl_seconds": 300}), 10, "interval"),
            (json!({"ttl_seconds": 600}), 10, "interval"),
            // 15 minutes are rounded up to the second run.
            (json!({"ttl_seconds": 900}), 20, "ttl"),
            (json!({"ttl_seconds": 86_400}), 60, "ttl"),
            (json!({"ttl_seconds": 900, "max_age_seconds": 2_400}), 40, "cache_control"),
            (json!({"max_age_seconds": u64::MAX}), 60, "cache_control"),
            (json!({"expires": "2026-09-28T12:30:00Z"}), 30, "expires"),
            (json!({"expires": "2020-01-01T00:00:00Z"}), 10, "interval"),
            (json!({"expires": "2026-09-28T12:30:00Z", "max_age_seconds": 0}), 10, "interval"),
            (json!({"update_period_seconds": 3_600, "ttl_seconds": 60}), 60, "update_period"),
        ] {
            assert_eq!(after(&rules(10), &hints, Ended::Done), (minutes, because), "{hints}");
        }
        // More than an hour counts where it is configured to.
        let patient = Rules { max_pace_ms: 24 * HOUR_MS, ..rules(10) };
        assert_eq!(after(&patient, &json!({"max_age_seconds": 7_200}), Ended::Done), (120, "cache_control"));
        // Expires is an instant, so a day is counted from the answer and rounded up on the grid.
        let far = json!({"expires": "2030-01-01T00:00:00Z"});
        assert_eq!(after(&patient, &far, Ended::Done), (24 * 60 + 10, "expires"));
        // A run longer than its interval is followed at once, never by two.
        assert_eq!(next(&rules(1), &Pace::default(), T, T + 5 * MINUTE, Ended::Done).at, T + 5 * MINUTE);
    }

    #[test]
    fn hours_and_days_to_skip_are_never_entered() {
        let late = Rules { interval_ms: 600 * MINUTE, ..rules(1) };
        // 22:00 and 23:00 are skipped; the start of the next hour, a twentieth of the bound later.
        let (minutes, because) = after(&late, &json!({"skip_hours": [22, 23]}), Ended::Done);
        assert_eq!(because, "skip_hours");
        assert!((720..723).contains(&minutes), "{minutes}");
        let (minutes, because) =
            after(&late, &json!({"skip_days": ["monday"]}), Ended::Failed { before: 0, named_ms: None });
        assert_eq!((because, minutes / 60), ("skip_days", 12));
        let all: Vec<u8> = (0..24).collect();
        assert_eq!(after(&late, &json!({"skip_hours": all}), Ended::Done), (600, "interval"));
    }

    #[test]
    fn nothing_that_is_declared_counts_where_it_is_not_honoured() {
        let deaf = Rules { honors_pace: false, ..rules(10) };
        let hints = json!({"ttl_seconds": 3_600, "max_age_seconds": 3_600, "expires": "2026-09-29T00:00:00Z",
            "update_period_seconds": 3_600, "skip_hours": [12]});
        assert_eq!(after(&deaf, &hints, Ended::Done), (10, "interval"));
        // A wait that was asked for does.
        assert_eq!(after(&deaf, &hints, Ended::Throttled { named_ms: Some(50 * MINUTE) }).1, "retry_after");
        assert_eq!(after(&deaf, &hints, Ended::Throttled { named_ms: Some(90 * MINUTE) }).0, 94);
    }

    #[test]
    fn being_turned_away_waits_for_the_largest_of_all() {
        let throttled = |rules: &Rules, named: Option<i64>| {
            let next = next(rules, &Pace::default(), T, T, Ended::Throttled { named_ms: named.map(|m| m * MINUTE) });
            (next.not_before - T, next.because)
        };
        for (interval, named, minutes, because) in [
            (10, None, 60, "throttled"),
            (10, Some(1), 30, "throttled"),
            (10, Some(45), 45, "retry_after"),
            (120, Some(45), 120, "throttled"),
            (120, None, 120, "throttled"),
            (10, Some(99_999), 24 * 60, "retry_after"),
        ] {
            assert_eq!(throttled(&rules(interval), named), (minutes * MINUTE, because), "{interval} {named:?}");
        }
        // Never sooner than a healthy feed.
        let (minutes, because) =
            after(&rules(10), &json!({"ttl_seconds": 3_600}), Ended::Throttled { named_ms: Some(1) });
        assert_eq!((minutes, because), (60, "ttl"));
    }

    #[test]
    fn failures_wait_twice_as_long_each_up_to_a_day() {
        let failed = |before| after(&rules(30), &json!({}), Ended::Failed { before, named_ms: None });
        assert_eq!(failed(0), (30, "interval"));
        assert_eq!(failed(1), (60, "failures"));
        assert_eq!(failed(4), (480, "failures"));
        assert_eq!(failed(10), (24 * 60, "failures"));
        assert_eq!(failed(u32::MAX), (24 * 60, "failures"));
        // A server error with a time named waits for it.
        let named = after(&rules(30), &json!({}), Ended::Failed { before: 0, named_ms: Some(90 * MINUTE) });
        assert_eq!(named, (90, "retry_after"));
        assert_eq!(next(&rules(30), &Pace::default(), T, T, Ended::Gone).at, NEVER);
    }

    #[test]
    fn pages_that_are_left_come_at_once_but_not_below_the_floor() {
        let more = |now| next(&rules(30), &Pace::default(), T, now, Ended::More).at - T;
        assert_eq!((more(T + 1), more(T + 40_000)), (30_000, 40_000));
    }

    #[test]
    fn a_request_respects_the_floor_and_the_named_time() {
        assert_eq!(on_request(10_000, None, 30, 0), 10_000);
        assert_eq!(on_request(10_000, Some(5_000), 30, 0), 35_000);
        assert_eq!(on_request(10_000, Some(5_000), 1, 90_000), 90_000);
    }

    #[test]
    fn instances_stand_apart_and_stay_there() {
        let places: Vec<f64> = (0..1_000).map(|n| spread(&format!("con_{n}"))).collect();
        assert!(places.iter().all(|p| (-1.0..=1.0).contains(p)));
        for tenth in -10..10 {
            let from = f64::from(tenth) / 10.0;
            let there = places.iter().filter(|p| (from..from + 0.1).contains(p)).count();
            assert!((20..90).contains(&there), "{from}: {there}");
        }
        assert!((spread("con_7") - places[7]).abs() < f64::EPSILON);
    }

    proptest! {
        #[test]
        fn no_rule_is_ever_broken(
            interval in 1_i64..1_440, spread in -1.0_f64..1.0, took in 0_i64..400_000, ttl in 0_u64..200_000,
            max_age in 0_u64..200_000, hours in proptest::collection::vec(0_u8..24, 0..6), kind in 0..4,
            named in 0_i64..200_000, before in 0_u32..50,
        ) {
            let rules = Rules { spread, ..rules(interval) };
            let pace = Pace { ttl_seconds: Some(ttl), max_age_seconds: Some(max_age), skip_hours: hours, ..Pace::default() };
            let now = T + took;
            let named_ms = (named > 0).then_some(named * 1_000);
            let ended = match kind {
                0 => Ended::Done,
                1 => Ended::Throttled { named_ms },
                2 => Ended::Failed { before, named_ms },
                _ => Ended::More,
            };
            let next = next(&rules, &pace, T, now, ended);
            prop_assert!(next.at >= now && next.at >= next.not_before && next.at >= T + rules.floor_ms);
            if kind == 3 {
                return Ok(());
            }
            prop_assert_eq!(pace.skips(next.at), None);
            // Never much before the interval: a tenth.
            prop_assert!(next.at - T >= rules.interval_ms - rules.interval_ms / 10 - 1);
            if kind == 0 {
                // Never before the wait that the component itself keeps.
                prop_assert!(next.at >= T + i64::try_from(ttl.min(3_600)).unwrap() * 1_000);
            }
            if kind == 1 {
                prop_assert!(next.at >= now + THROTTLED_FEED_MS);
                prop_assert!(next.at >= now + named_ms.unwrap_or(UNNAMED_LIMIT_MS).min(MAX_NAMED_MS));
            }
            // And never for ever: the longest wait, a grid step, a tenth, and what is skipped.
            prop_assert!(next.at <= now + (MAX_NAMED_MS.max(rules.interval_ms)) * 12 / 10 + rules.interval_ms * 2 + 25 * HOUR_MS);
        }
    }
}
