//! What a source says of its pace, read back from what the store has of it. No I/O, no decision.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// Milliseconds of an hour.
pub(super) const HOUR_MS: i64 = 3_600_000;

/// Milliseconds of a day.
pub(super) const DAY_MS: i64 = 24 * HOUR_MS;

/// The days of a week in the contract's order.
const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The facts as the contract's `hints` have them; what has another form is as good as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// RSS `ttl`.
    pub ttl_seconds: Option<u64>,
    /// `max-age` less `Age`.
    pub max_age_seconds: Option<u64>,
    /// `Expires`, RFC 3339.
    pub expires: Option<String>,
    /// Period of the syndication module.
    pub update_period_seconds: Option<u64>,
    /// RSS `skipHours`, UTC.
    pub skip_hours: Vec<u8>,
    /// RSS `skipDays`, UTC.
    pub skip_days: Vec<String>,
}

impl Pace {
    /// Reads what was stored.
    #[must_use]
    pub fn of(hints: Option<&Value>) -> Self {
        // An array would pass for an object in serde's eyes.
        hints.filter(|h| h.is_object()).and_then(|h| Self::deserialize(h).ok()).unwrap_or_default()
    }

    /// When `Expires` says that the document is stale, in milliseconds since 1970.
    #[must_use]
    pub fn expires_ms(&self) -> Option<i64> {
        self.expires.as_deref()?.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
    }

    /// The element that asks not to be polled in that hour.
    #[must_use]
    pub fn skips(&self, at: i64) -> Option<&'static str> {
        let hour = u8::try_from(at.rem_euclid(DAY_MS) / HOUR_MS).unwrap_or(0);
        // 1970-01-01 was a Thursday.
        let day = usize::try_from((at.div_euclid(DAY_MS) + 3).rem_euclid(7)).unwrap_or(0);
        // 24 is what some write for midnight (RSS 0.91 counts from 1 to 24).
        if self.skip_hours.iter().any(|h| h % 24 == hour) {
            Some("skip_hours")
        } else if self.skip_days.iter().any(|name| DAYS.get(day).is_some_and(|d| d.eq_ignore_ascii_case(name))) {
            Some("skip_days")
        } else {
            None
        }
    }

    /// The start of the first hour at or after a time in which nothing keeps a poll away, and what kept the first one
    /// away; `None` where no hour of a week is left.
    #[must_use]
    pub fn allowed(&self, at: i64) -> Option<(i64, Option<&'static str>)> {
        let because = self.skips(at);
        if because.is_none() {
            return Some((at, None));
        }
        let next_hour = at.div_euclid(HOUR_MS) + 1;
        (next_hour..next_hour + 7 * 24)
            .map(|h| h * HOUR_MS)
            .find(|at| self.skips(*at).is_none())
            .map(|at| (at, because))
    }
}

/// What is known after an answer: the facts of a document hold until another one is read, those of the header fields
/// until other ones come (RFC 9111, section 4.3.4, for a 304).
#[must_use]
pub fn merged(before: Option<&Value>, new: Value, read_a_document: bool) -> Value {
    const OF_DOCUMENTS: [&str; 4] = ["ttl_seconds", "update_period_seconds", "skip_hours", "skip_days"];
    let (Value::Object(mut facts), Some(Value::Object(before)), false) = (new.clone(), before, read_a_document) else {
        return new;
    };
    for (name, value) in before {
        let still_holds = OF_DOCUMENTS.contains(&name.as_str()) || name == "max_age_seconds";
        if still_holds && !facts.contains_key(name) {
            facts.insert(name.clone(), value.clone());
        }
    }
    Value::Object(facts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    #[test]
    fn hours_and_days_are_those_of_utc() {
        let pace = Pace::of(Some(&json!({"skip_hours": [2, 3, 24], "skip_days": ["sunday"]})));
        // 2026-09-27 was a Sunday.
        assert_eq!(pace.skips(at("2026-09-28T02:59:59Z")), Some("skip_hours"));
        assert_eq!(pace.skips(at("2026-09-28T00:00:00Z")), Some("skip_hours"));
        assert_eq!(pace.skips(at("2026-09-28T04:00:00Z")), None);
        assert_eq!(pace.skips(at("2026-09-27T12:00:00Z")), Some("skip_days"));
        let monday = (at("2026-09-28T01:00:00Z"), Some("skip_days"));
        assert_eq!(pace.allowed(at("2026-09-27T12:30:00Z")), Some(monday));
        let four = (at("2026-09-28T04:00:00Z"), Some("skip_hours"));
        assert_eq!(pace.allowed(at("2026-09-28T02:10:00Z")), Some(four));
        let free = at("2026-09-28T05:10:00Z");
        assert_eq!(pace.allowed(free), Some((free, None)));
        let never = Pace { skip_hours: (0..24).collect(), ..Pace::default() };
        assert_eq!(never.allowed(free), None);
        // Before 1970 a week is a week, too: 1969-12-31 was a Wednesday.
        let wednesday = Pace { skip_days: vec!["Wednesday".into()], ..Pace::default() };
        assert_eq!(wednesday.skips(-1), Some("skip_days"));
    }

    #[test]
    fn facts_hold_until_others_come() {
        let before =
            json!({"ttl_seconds": 60, "max_age_seconds": 5, "expires": "2026-01-01T00:00:00Z", "skip_hours": [1]});
        let after_304 = merged(Some(&before), json!({"max_age_seconds": 9}), false);
        assert_eq!(after_304, json!({"ttl_seconds": 60, "max_age_seconds": 9, "skip_hours": [1]}));
        assert_eq!(merged(Some(&before), json!({}), true), json!({}));
        assert_eq!(merged(None, json!({"ttl_seconds": 1}), false), json!({"ttl_seconds": 1}));
    }

    #[test]
    fn what_has_another_form_is_absent() {
        assert_eq!(Pace::of(Some(&json!({"ttl_seconds": "soon"}))), Pace::default());
        assert_eq!(Pace::of(Some(&json!([1]))), Pace::default());
        assert_eq!(Pace { expires: Some("soon".into()), ..Pace::default() }.expires_ms(), None);
    }
}
