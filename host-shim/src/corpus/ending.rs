//! How a run ends: what is written of it, and when the instance runs next.
//!
//! Owns the reading of an outcome: what counts as being turned away, as gone, as a failure. The arithmetic of times is
//! `schedule`'s.

use serde_json::Value;

use super::pace::Pace;
use super::pins::Pinned;
use super::schedule::{self, Ended, MAX_NAMED_MS, Next, Rules, UNNAMED_LIMIT_MS};
use super::{RunSummary, Service};
use crate::egress::error::Failure;
use crate::egress::url::for_log;
use crate::engine::answer::Class;
use crate::runner::network::Report;
use crate::store::StoreError;
use crate::store::model::{Claim, LastError, Outcome, RunEnd, RunFigures, SawMoved};

impl Service {
    /// What an instance's schedule goes by. Whether the declared pace counts is a member of its config.
    pub(super) fn rules(&self, claim: &Claim) -> Rules {
        let new = &claim.instance.new;
        Rules {
            interval_ms: i64::from(new.interval_seconds) * 1_000,
            floor_ms: i64::from(self.settings.min_interval_seconds) * 1_000,
            max_pace_ms: i64::from(self.settings.max_pace_seconds) * 1_000,
            honors_pace: new.config.get("honor_ttl") != Some(&Value::Bool(false)),
            spread: schedule::spread(&new.connector_id),
        }
    }

    pub(super) fn completed(&self, pinned: &Pinned, more: bool, report: &Report, now: i64, next: Next) -> RunEnd {
        let digest = pinned.plugin.digest();
        RunEnd {
            outcome: Outcome::Completed,
            error: None,
            detail: None,
            next_run_at: next.at,
            next_run_because: next.because,
            not_before: next.not_before,
            // A body counts as processed whole when no page of it is left.
            body: report.body.filter(|_| !more).map(|body| (body.bytes(), digest.bytes())),
            figures: figures(report),
            at: now,
            plugin_digest: Some(digest.to_string()),
            throttled_by: None,
            rest: None,
            is_full: report.status == Some(200),
            moved: match (report.status, report.moved_to()) {
                (None, _) => SawMoved::Nothing,
                (Some(_), Some(url)) => SawMoved::To(url.to_owned()),
                // Asked where it is now, and there it is.
                (Some(_), None) if report.was_moved => SawMoved::Nothing,
                (Some(_), None) => SawMoved::No,
            },
        }
    }

    /// Ends a run that was too early; it touches nothing but the schedule.
    pub(super) async fn skip(
        &self,
        claim: &Claim,
        summary: &mut RunSummary,
        pinned: &Pinned,
        report: &Report,
    ) -> Result<(), StoreError> {
        let now = self.now_ms();
        let instance = &claim.instance;
        // Back to where it stood before somebody asked: the pace counts from the last run that did something.
        let since = instance.last_success_at.unwrap_or(claim.started_at);
        let pace = Pace::of(instance.hints.as_ref());
        let next = schedule::next(&self.rules(claim), &pace, since, now, Ended::Done);
        let floor = claim.started_at + i64::from(self.settings.min_interval_seconds) * 1_000;
        let next = Next { at: next.at.max(floor).max(instance.not_before), not_before: instance.not_before, ..next };
        let end = RunEnd { outcome: Outcome::Skipped, body: None, ..self.completed(pinned, false, report, now, next) };
        summary.outcome = Some(Outcome::Skipped);
        let claim = claim.clone();
        self.store(move |store| store.end_run(&claim, &end)).await
    }

    pub(super) async fn fail(
        &self,
        claim: &Claim,
        summary: &mut RunSummary,
        error: LastError,
        detail: Option<String>,
        report: &Report,
        retry_after_seconds: Option<u32>,
    ) -> Result<(), StoreError> {
        let now = self.now_ms();
        let turned_away = turned_away(&error, report);
        let error = match &report.failure {
            Some(Failure::Resting(_)) => LastError {
                class: Class::Transient.name().to_owned(),
                code: "rate_limited".to_owned(),
                message: "The host of the feed asked for fewer requests; nothing was sent, it is left alone for now"
                    .to_owned(),
                at: error.at,
            },
            _ => error,
        };
        let named_ms = retry_after_seconds
            .map(|s| i64::from(s) * 1_000)
            .max(report.retry_after.and_then(|d| i64::try_from(d.as_millis()).ok()));
        let ended = if turned_away.is_some() {
            Ended::Throttled { named_ms }
        } else if report.failure.is_none() && report.status == Some(410) {
            Ended::Gone
        } else {
            Ended::Failed { before: claim.instance.failures, named_ms }
        };
        let pace = Pace::of(claim.instance.hints.as_ref());
        let mut next = schedule::next(&self.rules(claim), &pace, claim.started_at, now, ended);
        let mut rest = None;
        match &turned_away {
            Some(TurnedAway::ByHost(host)) => {
                let until = now + named_ms.map_or(UNNAMED_LIMIT_MS, |ms| ms.min(MAX_NAMED_MS));
                self.hosts().rest(host, until);
                rest = Some((host.clone(), until));
            }
            // The host asked another feed's run for the wait, and that time is known.
            Some(TurnedAway::Resting(host)) => {
                let until = self.hosts().resting(host, now).unwrap_or(now);
                let apart = next.at.saturating_sub(next.not_before).max(0);
                next = Next { at: until + apart, because: "host_throttled", not_before: until };
            }
            None => {}
        }
        summary.throttled = turned_away.is_some();
        summary.outcome = Some(Outcome::Failed);
        summary.code = Some(error.code.clone());
        let digest = self.pins.get(&claim.instance.new.kind).map(|p| p.plugin.digest().to_string());
        let forgets = report.was_moved && turned_away.is_none();
        let end = RunEnd {
            outcome: Outcome::Failed,
            error: Some(error),
            detail,
            next_run_at: next.at,
            next_run_because: next.because,
            not_before: next.not_before,
            body: None,
            figures: figures(report),
            at: now,
            plugin_digest: digest,
            throttled_by: turned_away.map(TurnedAway::host),
            rest,
            is_full: false,
            // A target that fails is no better than the address itself.
            moved: if forgets { SawMoved::No } else { SawMoved::Nothing },
        };
        let claim = claim.clone();
        self.store(move |store| store.end_run(&claim, &end)).await
    }
}

/// Who turned a run away.
enum TurnedAway {
    /// The host, just now.
    ByHost(String),
    /// The host, before; nothing was sent.
    Resting(String),
}

impl TurnedAway {
    fn host(self) -> String {
        match self {
            Self::ByHost(host) | Self::Resting(host) => host,
        }
    }
}

/// Being turned away is no failure of the feed: 429, and 503 or 403 that name a wait (RFC 6585, section 4; RFC 9110,
/// section 10.2.3).
fn turned_away(error: &LastError, report: &Report) -> Option<TurnedAway> {
    match (&report.failure, report.status) {
        (Some(Failure::Resting(host)), _) => Some(TurnedAway::Resting(host.clone())),
        (Some(_), _) => None,
        (None, Some(429)) => report.host().map(TurnedAway::ByHost),
        (None, Some(403 | 503)) if report.retry_after.is_some() => report.host().map(TurnedAway::ByHost),
        // A component that knows another sign of it.
        (None, _) if error.code == "rate_limited" => report.host().map(TurnedAway::ByHost),
        (None, _) => None,
    }
}

pub(super) fn figures(report: &Report) -> RunFigures {
    RunFigures {
        http_status: report.status,
        // The query may hold a credential, so only the rest of the address is kept.
        final_url: report.final_url.as_deref().and_then(|u| url::Url::parse(u).ok()).map(|u| for_log(&u)),
        requests: report.requests,
        wire_bytes: report.wire_bytes,
    }
}
