//! One run, from its claim to its end.

use std::sync::Arc;

use super::clock::rfc3339;
use super::pins::Pinned;
use super::{Service, health, schedule};
use crate::egress::url::for_log;
use crate::engine::answer::{Class, Page};
use crate::engine::pin::Digest;
use crate::engine::plugin::Invocation;
use crate::runner::network::{Network, Report};
use crate::runner::{RunError, Session};
use crate::store::StoreError;
use crate::store::model::{Claim, LastError, Outcome, PageCommit, PageOutcome, Producer, RunEnd, RunFigures};

/// What a run brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run_id: String,
    /// How it ended; `None` where it lost its claim or the store failed.
    pub outcome: Option<Outcome>,
    /// The failure's code.
    pub code: Option<String>,
    /// New and changed records.
    pub brought: PageOutcome,
}

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3_600 * 1_000;

impl Service {
    /// Runs a claimed instance to its end and tells its health.
    pub(super) async fn run(self: &Arc<Self>, claim: Claim) -> RunSummary {
        let mut summary =
            RunSummary { run_id: claim.run_id.clone(), outcome: None, code: None, brought: PageOutcome::default() };
        if let Err(error) = self.drive(&claim, &mut summary).await {
            // The claim was lost or the store failed: the next claim starts from the stored checkpoint.
            tracing::warn!(run = claim.run_id, %error, "a run ended without being recorded");
        }
        let id = claim.instance.new.connector_id.clone();
        let now = self.now_ms();
        let told = self
            .store(move |store| {
                let instance = store.instance(&id)?;
                store.tell_health(&id, health::evaluate(&instance, now).name(), now)
            })
            .await;
        if let Err(error) = told {
            tracing::warn!(%error, "health could not be recorded");
        }
        self.ended.notify_waiters();
        self.wake();
        summary
    }

    async fn drive(&self, claim: &Claim, summary: &mut RunSummary) -> Result<(), StoreError> {
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
        let network = Arc::new(Network::new(self.client.clone(), pinned.rules.clone(), None, last_body));
        let mut session = Session::new(pinned.plugin.clone(), Arc::clone(&network) as _, self.invocation(claim));
        while let Some(next) = session.next().await {
            match next {
                Ok(page) if page.not_due => {
                    return self.skip(claim, summary, &pinned, &page, &network.report()).await;
                }
                Ok(page) => {
                    let over = session.is_over();
                    self.commit(claim, summary, &pinned, page, &network.report(), over).await?;
                }
                Err(error) => {
                    let report = network.report();
                    let last = LastError {
                        class: error.class().name().to_owned(),
                        code: error.code().to_owned(),
                        message: error.to_string(),
                        at: self.now_ms(),
                    };
                    let detail = detail(&error, &report);
                    let retry = error.retry_after_seconds();
                    return self.fail(claim, summary, last, detail, &report, retry).await;
                }
            }
        }
        Ok(())
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
            unconditional: false,
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
        let end = last.then(|| self.completed(claim, pinned, &page, report, now));
        let descriptor = pinned.plugin.descriptor();
        let read_a_document = page.diagnostics.as_object().is_some_and(|d| !d.is_empty());
        let commit = PageCommit {
            items: page.items,
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
        summary.brought.new += brought.new;
        summary.brought.changed += brought.changed;
        if last {
            summary.outcome = Some(Outcome::Completed);
        }
        Ok(())
    }

    fn completed(&self, claim: &Claim, pinned: &Pinned, page: &Page, report: &Report, now: i64) -> RunEnd {
        let next = schedule::next(claim.started_at, now, claim.instance.new.interval_seconds, None, page.more);
        let digest = pinned.plugin.digest();
        RunEnd {
            outcome: Outcome::Completed,
            error: None,
            detail: None,
            next_run_at: next.at,
            next_run_because: next.because,
            not_before: next.not_before,
            // A body counts as processed whole when no page of it is left.
            body: report.body.filter(|_| !page.more).map(|body| (body.bytes(), digest.bytes())),
            figures: figures(report),
            at: now,
            plugin_digest: Some(digest.to_string()),
        }
    }

    /// Ends a run that was too early; it touches nothing but the schedule.
    async fn skip(
        &self,
        claim: &Claim,
        summary: &mut RunSummary,
        pinned: &Pinned,
        page: &Page,
        report: &Report,
    ) -> Result<(), StoreError> {
        let now = self.now_ms();
        let end = RunEnd { outcome: Outcome::Skipped, body: None, ..self.completed(claim, pinned, page, report, now) };
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
        let interval = claim.instance.new.interval_seconds;
        let next = schedule::next(claim.started_at, now, interval, retry_after_seconds, false);
        summary.outcome = Some(Outcome::Failed);
        summary.code = Some(error.code.clone());
        let digest = self.pins.get(&claim.instance.new.kind).map(|p| p.plugin.digest().to_string());
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
        };
        let claim = claim.clone();
        self.store(move |store| store.end_run(&claim, &end)).await
    }
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
