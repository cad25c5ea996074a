//! What a source says of its pace, as facts for the host's schedule.
//!
//! Owns the reading of the header fields; the elements of a document are read in `parse`. Decides nothing.

use crate::contract::{Hints, HttpResponse};
use crate::date;
use crate::model::Pace;

/// The longest wait that `Retry-After` may name: one day.
pub const MAX_RETRY_AFTER_SECONDS: u64 = 86_400;

/// The hints of a response and, where one was read, of its document.
#[must_use]
pub fn hints(response: &HttpResponse, pace: Option<&Pace>, now: i64) -> Hints {
    Hints {
        ttl_seconds: pace.and_then(|p| p.ttl_minutes).map(|m| m.saturating_mul(60)),
        max_age_seconds: max_age(response),
        expires: response.header("expires").and_then(date::parse).map(date::rfc3339),
        update_period_seconds: pace.and_then(|p| p.update_period_seconds),
        skip_hours: pace.map(|p| p.skip_hours.clone()).unwrap_or_default(),
        skip_days: pace.map(|p| p.skip_days.clone()).unwrap_or_default(),
        retry_after_seconds: retry_after(response, now).map(u64::from),
    }
}

/// `max-age` less `Age` (RFC 9111, sections 5.2.2.1 and 5.1); a directive that is there twice or unreadable is none.
fn max_age(response: &HttpResponse) -> Option<u64> {
    let mut values = response
        .headers
        .iter()
        .filter(|h| h.name.eq_ignore_ascii_case("cache-control"))
        .filter_map(|h| std::str::from_utf8(&h.value).ok())
        .flat_map(|v| v.split(','))
        .filter_map(|directive| directive.trim().split_once('='))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("max-age"))
        .map(|(_, value)| value.trim().trim_matches('"').parse::<u64>().ok());
    let age: u64 = response.header("age").and_then(|a| a.parse().ok()).unwrap_or(0);
    match (values.next(), values.next()) {
        (Some(Some(seconds)), None) => Some(seconds.saturating_sub(age)),
        _ => None,
    }
}

/// `Retry-After` in seconds, from 1 to a day: delay-seconds or a date (RFC 9110, section 10.2.3).
#[must_use]
pub fn retry_after(response: &HttpResponse, now: i64) -> Option<u32> {
    let value = response.header("retry-after")?;
    let seconds = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit name a time beyond the bound anyway.
        value.parse::<u64>().unwrap_or(u64::MAX)
    } else {
        wait_until(date::parse(value)?, now, response.header("date").and_then(date::parse))?
    };
    (seconds > 0).then(|| u32::try_from(seconds.min(MAX_RETRY_AFTER_SECONDS)).unwrap_or(u32::MAX))
}

/// The wait until an instant by our clock and by the answer's own, whichever can be meant: with one clock wrong it is
/// over for the other, or days away. The longer of two that can.
fn wait_until(at: i64, now: i64, answered: Option<i64>) -> Option<u64> {
    let waits = [Some(now), answered].into_iter().flatten().filter_map(|from| u64::try_from(at - from).ok());
    let waits: Vec<u64> = waits.filter(|wait| *wait > 0).collect();
    let plausible = waits.iter().copied().filter(|wait| *wait <= MAX_RETRY_AFTER_SECONDS).max();
    plausible.or_else(|| waits.into_iter().min())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Header;

    fn with(headers: &[(&str, &str)]) -> HttpResponse {
        HttpResponse {
            headers: headers.iter().map(|(n, v)| Header { name: (*n).into(), value: v.as_bytes().to_vec() }).collect(),
            ..HttpResponse::default()
        }
    }

    #[test]
    fn retry_after_comes_in_two_forms_and_within_a_day() {
        let now = date::parse("2026-09-02T07:15:00Z").unwrap();
        for (value, expected) in [
            ("120", Some(120)),
            ("Wed, 02 Sep 2026 07:16:30 GMT", Some(90)),
            ("Wed, 02 Sep 2026 07:14:00 GMT", None),
            ("0", None),
            ("-5", None),
            ("soon", None),
            ("999999999999999999999999", Some(86_400)),
            ("86401", Some(86_400)),
        ] {
            assert_eq!(retry_after(&with(&[("Retry-After", value)]), now), expected, "{value}");
        }
        let dated =
            with(&[("Date", "Sun, 20 Sep 2026 12:00:00 GMT"), ("Retry-After", "Sun, 20 Sep 2026 14:30:00 GMT")]);
        assert_eq!(retry_after(&dated, now), Some(9_000));
        let at = |text: &str| date::parse(text).unwrap();
        // By our clock, where the other one is wrong; the longer one, where both may be right.
        assert_eq!(retry_after(&dated, at("2026-09-20T14:00:00Z")), Some(9_000));
        assert_eq!(retry_after(&dated, at("2026-09-20T11:00:00Z")), Some(12_600));
        assert_eq!(wait_until(100, 10, Some(500)), Some(90));
        assert_eq!(wait_until(1_000_000, 0, None), Some(1_000_000));
        assert_eq!(wait_until(5, 10, Some(10)), None);
    }

    #[test]
    fn max_age_is_less_the_age_and_ambiguous_ones_are_none() {
        for (headers, expected) in [
            (vec![("Cache-Control", "public, max-age=600")], Some(600)),
            (vec![("Cache-Control", "max-age=\"600\""), ("Age", "100")], Some(500)),
            (vec![("Cache-Control", "max-age=60"), ("Age", "100")], Some(0)),
            (vec![("Cache-Control", "max-age=1, max-age=2")], None),
            (vec![("Cache-Control", "s-maxage=1")], None),
            (vec![("Cache-Control", "max-age=x")], None),
        ] {
            assert_eq!(max_age(&with(&headers)), expected, "{headers:?}");
        }
    }
}
