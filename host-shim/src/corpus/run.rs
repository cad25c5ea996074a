//! One run, from its claim to its end.

use std::sync::Arc;

use tracing::Instrument;

use super::clock::rfc3339;
use super::ending::figures;
use super::pace::{DAY_MS, Pace};
use super::pins::Pinned;
use super::schedule::Ended;
use super::{Service, health, pace, schedule};
use crate::egress::client::Resting;
use crate::egress::credential::Credential;
use crate::engine::answer::{Class, Page};
use crate::engine::pin::Digest;
use crate::engine::plugin::Invocation;
use crate::runner::network::{Moved, Network, Report};
use crate::runner::{RunError, Session};
use crate::store::StoreError;
use crate::store::model::{Claim, LastError, Outcome, PageCommit, PageOutcome, Producer};

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

/// What only the operator sees: the refused address, the hop, the broken rule.
fn detail(error: &RunError, report: &Report) -> Option<String> {
    match (error, report.detail()) {
        (_, Some(detail)) => Some(detail),
        (RunError::Component(call), None) => call.reason().map(str::to_owned),
        (RunError::Source(_), None) => None,
    }
}
