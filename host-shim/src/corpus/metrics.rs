//! What the service counts, for whoever watches many feeds at once.
//!
//! Owns names, buckets and labels. Labels come from fixed lists alone: never an address of a feed, a host, a namespace,
//! or a text that a component or a source made up.

use std::sync::Mutex;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::egress::client::Stages;
use crate::egress::error::Failure;
use crate::engine::limits::TICK;
use crate::runner::network::Report;
use crate::store::model::Outcome;

/// The codes that are told apart; a component may make up others.
const CODES: &[&str] = &[
    "unauthorized",
    "forbidden",
    "gone",
    "credential_expired",
    "credential_unreadable",
    "not_found",
    "http_status",
    "invalid_url",
    "invalid_config",
    "invalid_configuration",
    "invalid_checkpoint",
    "rate_limited",
    "server_error",
    "timeout",
    "connection_error",
    "dns_error",
    "tls_error",
    "address_not_allowed",
    "too_many_redirects",
    "insecure_redirect",
    "response_too_large",
    "unsupported_encoding",
    "malformed_feed",
    "plugin_trap",
    "plugin_timeout",
    "plugin_memory",
    "plugin_invalid_response",
    "plugin_unavailable",
    "unsupported_connector_kind",
    "invalid_invocation",
];

type Labelled<M, const N: usize> = Family<[(&'static str, &'static str); N], M, fn() -> M>;

/// The counters of a service. Cheap to update; one lock while they are written out.
pub struct Metrics {
    registry: Mutex<Registry>,
    polls: Labelled<Counter, 2>,
    items: Labelled<Counter, 1>,
    wire_bytes: Counter,
    stages: Labelled<Histogram, 1>,
    guest_memory: Histogram,
    refusals: Labelled<Counter, 2>,
    lag: Histogram,
    overdue: Gauge<f64, std::sync::atomic::AtomicU64>,
    running: Gauge,
    store: Labelled<Histogram, 1>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// From a millisecond to a minute: what a poll may take.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.5, 13))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("host_shim");
        let counters: fn() -> Counter = Counter::default;
        let metrics = Self {
            registry: Mutex::default(),
            polls: Family::new_with_constructor(counters),
            items: Family::new_with_constructor(counters),
            wire_bytes: Counter::default(),
            stages: Family::new_with_constructor(seconds as fn() -> Histogram),
            // From 1 MiB to 256 MiB.
            guest_memory: Histogram::new(exponential_buckets(1_048_576.0, 2.0, 9)),
            refusals: Family::new_with_constructor(counters),
            // From a tenth of a second to some hours.
            lag: Histogram::new(exponential_buckets(0.1, 4.0, 9)),
            overdue: Gauge::default(),
            running: Gauge::default(),
            store: Family::new_with_constructor(seconds as fn() -> Histogram),
        };
        registry.register("polls", "Runs that ended, by outcome and code", metrics.polls.clone());
        registry.register("items", "Records that came and records that changed", metrics.items.clone());
        registry.register("wire_bytes", "Bytes of bodies as they were sent", metrics.wire_bytes.clone());
        registry.register("stage_seconds", "Time of each stage of a run", metrics.stages.clone());
        registry.register("guest_memory_bytes", "Peak memory of the component in a run", metrics.guest_memory.clone());
        registry.register(
            "egress_refusals",
            "Requests that were not answered, by rule and, for an address, by its range",
            metrics.refusals.clone(),
        );
        registry.register("queue_lag_seconds", "How late runs start", metrics.lag.clone());
        registry.register(
            "overdue_seconds",
            "How long the first instance in the queue has waited",
            metrics.overdue.clone(),
        );
        registry.register("running", "Runs in flight", metrics.running.clone());
        registry.register("store_seconds", "Time of calls of the store, waiting included", metrics.store.clone());
        Self { registry: Mutex::new(registry), ..metrics }
    }
}

impl Metrics {
    /// All of them in the text format of OpenMetrics 1.0.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        text
    }

    /// A run began, this late.
    pub(super) fn began(&self, lag_ms: i64) {
        #[expect(clippy::cast_precision_loss, reason = "a lag of years loses milliseconds")]
        self.lag.observe(lag_ms.max(0) as f64 / 1_000.0);
        self.running.inc();
    }

    /// How long the first in the queue has waited.
    pub(super) fn overdue(&self, ms: i64) {
        #[expect(clippy::cast_precision_loss, reason = "a lag of years loses milliseconds")]
        self.overdue.set(ms.max(0) as f64 / 1_000.0);
    }

    /// A run ended.
    pub(super) fn ended(&self, outcome: Option<Outcome>, code: Option<&str>, throttled: bool, new: u32, changed: u32) {
        self.running.dec();
        let outcome = match outcome {
            _ if throttled => "throttled",
            Some(outcome) => outcome.name(),
            None => "lost",
        };
        let code = code.map_or("", |code| CODES.iter().find(|known| **known == code).copied().unwrap_or("other"));
        self.polls.get_or_create(&[("outcome", outcome), ("code", code)]).inc();
        self.items.get_or_create(&[("what", "new")]).inc_by(u64::from(new));
        self.items.get_or_create(&[("what", "changed")]).inc_by(u64::from(changed));
    }

    /// What a run used up.
    pub(super) fn used(&self, report: &Report, ticks: u64, peak_memory: usize) {
        self.wire_bytes.inc_by(report.wire_bytes);
        let Stages { turn, resolve, connect, tls, first_byte, body } = report.stages;
        for (stage, time) in [
            ("turn", turn),
            ("resolve", resolve),
            ("connect", connect),
            ("tls", tls),
            ("first_byte", first_byte),
            ("body", body),
        ] {
            if let Some(time) = time {
                self.stage(stage, time);
            }
        }
        self.stage("guest", TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)));
        #[expect(clippy::cast_precision_loss, reason = "memory is bounded far below 2^52")]
        self.guest_memory.observe(peak_memory as f64);
        if let Some(failure) = &report.failure {
            let range = match failure {
                Failure::Address { range, .. } => range.name,
                _ => "",
            };
            self.refusals.get_or_create(&[("rule", failure.rule()), ("range", range)]).inc();
        }
    }

    fn stage(&self, stage: &'static str, time: Duration) {
        self.stages.get_or_create(&[("stage", stage)]).observe(time.as_secs_f64());
    }

    /// A call of the store took this long.
    pub(super) fn stored(&self, ok: bool, time: Duration) {
        let result = if ok { "ok" } else { "failed" };
        self.store.get_or_create(&[("result", result)]).observe(time.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_says_what_to_do_about_each_code() {
        let readme = include_str!("../../../README.md");
        let table = readme.split("Codes of a failed run:").nth(1).unwrap().split("## ").next().unwrap();
        for code in CODES {
            assert!(table.contains(&format!("`{code}`")), "{code}");
        }
    }

    #[test]
    fn counts_stand_in_the_text_and_made_up_codes_do_not() {
        let metrics = Metrics::default();
        metrics.began(2_000);
        metrics.ended(Some(Outcome::Failed), Some("https://secret.example/"), false, 0, 0);
        metrics.began(0);
        metrics.ended(Some(Outcome::Completed), None, false, 3, 1);
        metrics.ended(Some(Outcome::Failed), Some("rate_limited"), true, 0, 0);
        metrics.stored(true, Duration::from_millis(3));
        let text = metrics.text();
        for line in [
            "host_shim_polls_total{outcome=\"failed\",code=\"other\"} 1",
            "host_shim_polls_total{outcome=\"completed\",code=\"\"} 1",
            "host_shim_polls_total{outcome=\"throttled\",code=\"rate_limited\"} 1",
            "host_shim_items_total{what=\"new\"} 3",
            "host_shim_queue_lag_seconds_count 2",
            "host_shim_store_seconds_count{result=\"ok\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(!text.contains("secret") && text.ends_with("# EOF\n"));
    }
}
