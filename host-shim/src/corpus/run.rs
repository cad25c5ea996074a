//! One run, from its claim to its end.

use std::sync::Arc;

use serde_json::Value;
use tracing::Instrument;

use super::clock::rfc3339;
use super::pace::{DAY_MS, Pace};
use super::pins::Pinned;
use super::schedule::{Ended, MAX_NAMED_MS, Next, Rules, UNNAMED_LIMIT_MS};
use super::{Service, health, pace, schedule};
use crate::egress::client::Resting;
use crate::egress::credential::Credential;
use crate::egress::error as egress;
use crate::egress::url::for_log;
use crate::engine::answer::{Class, Page};
use crate::engine::pin::Digest;
use crate::engine::plugin::Invocation;
use crate::runner::network::{Moved, Network, Report};
use crate::runner::{RunError, Session};
use crate::store::StoreError;
use crate::store::model::{Claim, LastError, Outcome, PageCommit, PageOutcome, Producer, RunEnd, RunFigures, SawMoved};

/// What a run brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run_id: String,
    /// How it ended; `None` where it lost its claim or the store failed.
    pub outcome: Option<Outcome>,
    /// The failure's code.
    pub code: Option<String>,
    /// The source asked to be left alone for a while.
    pub throttled: bool,
    /// New and changed records.
    pub brought: PageOutcome,
}

/// Time of nothing but 304 after which a whole document is asked for once: some servers say it whatever they have.
const UNPROVEN_AFTER_MS: i64 = 7 * DAY_MS;

/// Days on which a permanent redirect must be seen before its target is asked directly: a maintenance page lasts hours.
const MOVED_DAYS: u32 = 3;

impl Service {
    /// Runs a claimed instance to its end and tells its health.
    pub(super) async fn run(self: &Arc<Self>, claim: Claim) -> RunSummary {
        let mut summary = RunSummary {
            run_id: claim.run_id.clone(),
            outcome: None,
            code: None,
            throttled: false,
            brought: PageOutcome::default(),
        };
        self.metrics.began(claim.started_at - claim.instance.due_at);
        let span = self.span(&claim);
        let driven = self.drive(&claim, &mut summary).instrument(span.clone()).await;
        if let Err(error) = driven {
            // The claim was lost or the store failed: the next claim starts from the stored checkpoint.
            tracing::warn!(parent: &span, %error, "a run ended without being recorded");
            if !matches!(error, StoreError::LostClaim) {
                self.strand(claim.clone());
            }
        }
        self.metrics.ended(
            summary.outcome,
            summary.code.as_deref(),
            summary.throttled,
            summary.brought.new,
            summary.brought.changed,
        );
        span.record("duration_ms", self.now_ms() - claim.started_at);
        let outcome = summary.outcome.map_or("lost", Outcome::name);
        let (new, changed) = (summary.brought.new, summary.brought.changed);
        tracing::info!(parent: &span, outcome, code = summary.code, new, changed, "run");
        self.tell_health(&claim.instance.new.connector_id).await;
        self.ended.notify_waiters();
        self.wake();
        summary
    }

    /// The span of a run. Addresses of feeds are no part of it.
    fn span(&self, claim: &Claim) -> tracing::Span {
        let digest = self.pins.get(&claim.instance.new.kind).map(|p| p.plugin.digest().to_string());
        tracing::info_span!(
            "run",
            run = claim.run_id,
            instance = claim.instance.new.connector_id,
            digest,
            status = tracing::field::Empty,
            bytes = tracing::field::Empty,
            items = tracing::field::Empty,
            notes = tracing::field::Empty,
            duration_ms = tracing::field::Empty,
        )
    }

    /// Tells a change of an instance's health, if there is one.
    pub(super) async fn tell_health(&self, connector_id: &str) {
        let (id, now) = (connector_id.to_owned(), self.now_ms());
        let told = self
            .store(move |store| {
                let instance = store.instance(&id)?;
                store.tell_health(&id, health::evaluate(&instance, now).name(), now)
            })
            .await;
        match told {
            Ok(_) => self.changed(),
            Err(error) => tracing::warn!(%error, "health could not be recorded"),
        }
    }

    async fn drive(self: &Arc<Self>, claim: &Claim, summary: &mut RunSummary) -> Result<(), StoreError> {
        let Some(pinned) = self.pins.get(&claim.instance.new.kind).cloned() else {
            let error = LastError {
                class: Class::Source.name().to_owned(),
                code: "unsupported_connector_kind".to_owned(),
                message: "No pinned component serves this kind; pin it again and the instance goes on where it was"
                    .to_owned(),
                at: self.now_ms(),
            };
            return self.fail(claim, summary, error, None, &Report::default(), None).await;
        };
        let digest = pinned.plugin.digest();
        let last_body =
            claim.body.filter(|(_, plugin)| *plugin == digest.bytes()).map(|(body, _)| Digest::from_bytes(body));
        let credential = match self.credential(claim, &pinned).await? {
            Ok(credential) => credential,
            Err(error) => return self.fail(claim, summary, error, None, &Report::default(), None).await,
        };
        let call = Invocation { has_credential: credential.is_some(), ..self.invocation(claim) };
        let network = Network::new(self.client.clone(), pinned.rules.clone(), credential, last_body);
        let service = Arc::clone(self);
        let resting = Resting(Arc::new(move |host| service.hosts().resting(host, service.now_ms()).is_some()));
        let network = network.leaving_alone(resting);
        let network = Arc::new(match moved(claim) {
            Some(moved) => network.moving(moved),
            None => network,
        });
        let result = self.pages(claim, summary, &pinned, &network, call).await;
        let report = network.report();
        let span = tracing::Span::current();
        span.record("status", report.status);
        span.record("bytes", report.wire_bytes);
        result
    }

    async fn pages(
        &self,
        claim: &Claim,
        summary: &mut RunSummary,
        pinned: &Pinned,
        network: &Arc<Network>,
        call: Invocation,
    ) -> Result<(), StoreError> {
        if is_unproven(claim) {
            let refused = match pinned.plugin.check_credential(&call, Arc::clone(network) as _).await {
                Ok(Ok(_)) => None,
                Ok(Err(failure)) => Some(RunError::Source(failure)),
                Err(error) => Some(RunError::Component(error)),
            };
            if let Some(error) = refused {
                return self.refused(claim, summary, &error, &network.report()).await;
            }
        }
        let mut session = Session::new(pinned.plugin.clone(), Arc::clone(network) as _, call);
        let mut items = 0;
        let result = loop {
            let Some(next) = session.next().await else { break Ok(()) };
            match next {
                Ok(page) if page.not_due => {
                    break self.skip(claim, summary, pinned, &network.report()).await;
                }
                Ok(page) => {
                    let over = session.is_over();
                    items += page.items.len();
                    let notes = page.diagnostics.get("notes").and_then(|n| n.as_array()).map_or(0, Vec::len);
                    tracing::Span::current().record("notes", notes);
                    if let Err(error) = self.commit(claim, summary, pinned, page, &network.report(), over).await {
                        break Err(error);
                    }
                }
                Err(error) => break self.refused(claim, summary, &error, &network.report()).await,
            }
        };
        tracing::Span::current().record("items", items);
        self.metrics.used(&network.report(), session.usage.ticks, session.usage.peak_memory);
        result
    }

    /// Ends a run that its source or its component ended.
    async fn refused(
        &self,
        claim: &Claim,
        summary: &mut RunSummary,
        error: &RunError,
        report: &Report,
    ) -> Result<(), StoreError> {
        let last = LastError {
            class: error.class().name().to_owned(),
            code: error.code().to_owned(),
            message: error.to_string(),
            at: self.now_ms(),
        };
        self.fail(claim, summary, last, detail(error, report), report, error.retry_after_seconds()).await
    }

    /// The credential of a run, opened; or the failure that keeps it from being sent.
    async fn credential(
        &self,
        claim: &Claim,
        pinned: &Pinned,
    ) -> Result<Result<Option<Credential>, LastError>, StoreError> {
        let Some(info) = claim.instance.credential else { return Ok(Ok(None)) };
        let refused = |code: &str, message: &str| {
            let (code, message) = (code.to_owned(), message.to_owned());
            Ok(Err(LastError { class: Class::Access.name().to_owned(), code, message, at: self.now_ms() }))
        };
        if info.expires_at.is_some_and(|at| at <= claim.started_at) {
            return refused("credential_expired", "The credential has expired; deposit a new one");
        }
        let id = claim.instance.new.connector_id.clone();
        let stored = self.store(move |store| store.secret(&id)).await?;
        let (Some(vault), Some(stored)) = (&self.vault, stored) else {
            return refused(
                "credential_unreadable",
                "This host has no key for stored credentials; configure credential_key_file",
            );
        };
        let opened = match vault.open(&stored.connector_id, &stored.sealed) {
            Ok(opened) => String::from_utf8(opened).unwrap_or_default(),
            Err(error) => return refused("credential_unreadable", &error.to_string()),
        };
        let kind = pinned.plugin.descriptor().kind(&claim.instance.new.kind);
        match kind.map(|kind| Credential::new(&opened, &kind.credential_fields)) {
            Some(Ok(credential)) => Ok(Ok(Some(credential))),
            _ => refused("credential_unreadable", "The stored credential does not fit the component; deposit it again"),
        }
    }

    fn invocation(&self, claim: &Claim) -> Invocation {
        let instance = &claim.instance;
        let (day, reads) = instance.reads;
        Invocation {
            instance_id: instance.new.connector_id.clone(),
            kind: instance.new.kind.clone(),
            corpus_id: instance.new.corpus_id.clone(),
            source_namespace: instance.new.source_namespace.clone(),
            config: instance.new.config.to_string(),
            checkpoint: claim.checkpoint.clone(),
            now: rfc3339(claim.started_at.div_euclid(1_000) * 1_000),
            page_in_run: 0,
            reads_today: if day == claim.started_at.div_euclid(DAY_MS) { reads } else { 0 },
            has_credential: false,
            unconditional: instance.full_at.is_some_and(|at| claim.started_at - at > UNPROVEN_AFTER_MS),
        }
    }

    async fn commit(
        &self,
        claim: &Claim,
        summary: &mut RunSummary,
        pinned: &Pinned,
        page: Page,
        report: &Report,
        last: bool,
    ) -> Result<(), StoreError> {
        let now = self.now_ms();
        let descriptor = pinned.plugin.descriptor();
        let read_a_document = page.diagnostics.as_object().is_some_and(|d| !d.is_empty());
        let hints = serde_json::to_value(&page.hints).unwrap_or_default();
        let hints = pace::merged(claim.instance.hints.as_ref(), hints, read_a_document);
        let end = last.then(|| {
            let ended = if page.more { Ended::More } else { Ended::Done };
            let next = schedule::next(&self.rules(claim), &Pace::of(Some(&hints)), claim.started_at, now, ended);
            self.completed(pinned, page.more, report, now, next)
        });
        let commit = PageCommit {
            items: page.items,
            hints: Some(hints).filter(|_| report.requests > 0),
            checkpoint: page.checkpoint,
            window: page.window,
            diagnostics: Some(page.diagnostics).filter(|_| read_a_document),
            producer: Producer {
                plugin_id: descriptor.id.clone(),
                plugin_version: descriptor.version.clone(),
                plugin_digest: pinned.plugin.digest().to_string(),
            },
            at: now,
            figures: figures(report),
            end,
        };
        let claim = claim.clone();
        let brought = self.store(move |store| store.commit_page(&claim, &commit)).await?;
        self.changed();
        summary.brought.new += brought.new;
        summary.brought.changed += brought.changed;
        if last {
            summary.outcome = Some(Outcome::Completed);
        }
        Ok(())
    }

    /// What an instance's schedule goes by. Whether the declared pace counts is a member of its config.
    fn rules(&self, claim: &Claim) -> Rules {
        let new = &claim.instance.new;
        Rules {
            interval_ms: i64::from(new.interval_seconds) * 1_000,
            floor_ms: i64::from(self.settings.min_interval_seconds) * 1_000,
            max_pace_ms: i64::from(self.settings.max_pace_seconds) * 1_000,
            honors_pace: new.config.get("honor_ttl") != Some(&Value::Bool(false)),
            spread: schedule::spread(&new.connector_id),
        }
    }

    fn completed(&self, pinned: &Pinned, more: bool, report: &Report, now: i64, next: Next) -> RunEnd {
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
    async fn skip(
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

    async fn fail(
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
            Some(egress::Failure::Resting(_)) => LastError {
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
        (Some(egress::Failure::Resting(host)), _) => Some(TurnedAway::Resting(host.clone())),
        (Some(_), _) => None,
        (None, Some(429)) => report.host().map(TurnedAway::ByHost),
        (None, Some(403 | 503)) if report.retry_after.is_some() => report.host().map(TurnedAway::ByHost),
        // A component that knows another sign of it.
        (None, _) if error.code == "rate_limited" => report.host().map(TurnedAway::ByHost),
        (None, _) => None,
    }
}

/// The permanent redirect that is relied on.
fn moved(claim: &Claim) -> Option<Moved> {
    let seen = claim.instance.moved.as_ref().filter(|moved| moved.days >= MOVED_DAYS)?;
    let from = claim.instance.new.config.get("url")?.as_str()?;
    Some(Moved { from: from.to_owned(), to: seen.to.clone() })
}

/// Whether a credential came after the last success: then it is checked before it is used.
fn is_unproven(claim: &Claim) -> bool {
    let instance = &claim.instance;
    instance.credential.is_some_and(|c| instance.last_success_at.is_none_or(|at| c.deposited_at >= at))
}

fn figures(report: &Report) -> RunFigures {
    RunFigures {
        http_status: report.status,
        // The query may hold a credential, so only the rest of the address is kept.
        final_url: report.final_url.as_deref().and_then(|u| url::Url::parse(u).ok()).map(|u| for_log(&u)),
        requests: report.requests,
        wire_bytes: report.wire_bytes,
    }
}

/// What only the operator sees: the refused address, the hop, the broken rule.
fn detail(error: &RunError, report: &Report) -> Option<String> {
    match (error, report.detail()) {
        (_, Some(detail)) => Some(detail),
        (RunError::Component(call), None) => call.reason().map(str::to_owned),
        (RunError::Source(_), None) => None,
    }
}
