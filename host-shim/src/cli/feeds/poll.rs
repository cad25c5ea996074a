//! `host-shim feeds poll`: runs on request, and what came of them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use super::filter;
use crate::cli::operator::{Operator, feed_path, once, text, with_query};
use crate::cli::output::{self, CliError, fit};
use crate::cli::setup::Common;
use crate::corpus::clock::rfc3339;
use crate::store::model::Outcome;

/// Feeds that are waited for at once.
const AT_ONCE: usize = 16;

/// Time between two looks whether a run has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Runs that one look reads: one that was in flight, the one asked for, and room.
const RUNS: &str = "5";

/// The reason of a run that waits for its host's rest.
const HOST: &str = "host_throttled";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Identifier, name or address of each.
    #[arg(value_name = "FEED", required_unless_present = "all", conflicts_with = "all")]
    feeds: Vec<String>,
    /// All feeds.
    #[arg(long)]
    all: bool,
    /// Seconds to wait for the end of each run.
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
}

/// What came of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Polled {
    /// It did its work; so many records are new and changed.
    Done { new: u64, changed: u64 },
    /// The component said that it is too early.
    Skipped,
    /// The host of the feed turned it away, now or before.
    Throttled(String),
    /// The floor of intervals, or the source, leaves it for later.
    TooEarly(String),
    /// It failed, with this code.
    Failed(String),
    /// No end was seen in time.
    Waiting,
}

impl Polled {
    fn name(&self) -> &'static str {
        match self {
            Self::Done { .. } => "completed",
            Self::Skipped => "skipped",
            Self::Throttled(_) => "throttled",
            Self::TooEarly(_) => "too_early",
            Self::Failed(_) => "failed",
            Self::Waiting => "waiting",
        }
    }

    fn detail(&self) -> String {
        match self {
            Self::Done { new, changed } => format!("{new} new, {changed} changed"),
            Self::Skipped => "the feed says that it is too early".to_owned(),
            Self::Throttled(why) | Self::TooEarly(why) | Self::Failed(why) => why.clone(),
            Self::Waiting => "no end was seen in time; `feeds show` tells later".to_owned(),
        }
    }

    fn is_success(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Skipped)
    }
}

pub(super) async fn run(
    common: &Common,
    operator: &Operator,
    corpus: Option<&str>,
    arguments: &Arguments,
) -> Result<ExitCode, CliError> {
    let feeds = if arguments.all { all(operator, corpus).await? } else { named(operator, &arguments.feeds).await? };
    let wait = Duration::from_secs(arguments.timeout);
    let progress = output::progress(feeds.len());
    let mut results = stream::iter(feeds.iter().map(|feed| async move { (feed, one(operator, &feed.0, wait).await) }))
        .buffered(AT_ONCE);
    let mut counts: Vec<(&'static str, u64)> = Vec::new();
    let mut succeeded = 0_usize;
    while let Some(((id, name), polled)) = results.next().await {
        let polled = polled?;
        progress.inc(1);
        succeeded += usize::from(polled.is_success());
        match counts.iter_mut().find(|(name, _)| *name == polled.name()) {
            Some((_, count)) => *count += 1,
            None => counts.push((polled.name(), 1)),
        }
        let shown = match common.json {
            true => json!({"connector_id": id, "outcome": polled.name(), "detail": polled.detail()}).to_string(),
            false => format!("{:<9}  {id}  {}: {}", polled.name(), fit(name, 60), polled.detail()),
        };
        progress.suspend(|| output::line(&shown))?;
    }
    progress.finish_and_clear();
    let sums: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if !common.json {
        output::line(&format!("{} polled: {}", feeds.len(), sums.join(", ")))?;
    }
    // One feed that was named and failed is a failure; of many, that none could be read.
    let is_well = if arguments.all { succeeded > 0 || feeds.is_empty() } else { succeeded == feeds.len() };
    if is_well {
        return Ok(ExitCode::SUCCESS);
    }
    let what = if arguments.all { "not one of the feeds could be polled" } else { "not every feed could be polled" };
    output::complain(&format!("{what}: {}", sums.join(", ")));
    Ok(ExitCode::FAILURE)
}

/// Identifier and name of each feed that is polled.
async fn all(operator: &Operator, corpus: Option<&str>) -> Result<Vec<(String, String)>, CliError> {
    let corpus = filter(operator, corpus).await?;
    let query: Vec<(&str, &str)> = corpus.iter().map(|id| ("corpus_id", id.as_str())).collect();
    let mut feeds = Vec::new();
    operator
        .each("/v0/connectors", &query, |feed| {
            if feed.get("enabled") == Some(&Value::Bool(true)) && feed.get("paused_at").is_none() {
                feeds.push(id_and_name(&feed));
            }
            Ok(())
        })
        .await?;
    Ok(feeds)
}

async fn named(operator: &Operator, names: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let mut feeds = Vec::new();
    for name in names {
        feeds.push(id_and_name(&operator.feed(name).await?));
    }
    Ok(feeds)
}

fn id_and_name(feed: &Value) -> (String, String) {
    (text(feed, "/connector_id").to_owned(), text(feed, "/name").to_owned())
}

async fn one(operator: &Operator, id: &str, wait: Duration) -> Result<Polled, CliError> {
    let asked = operator.post(&format!("{}/runs", feed_path(id)), &json!({"idempotency_key": once()})).await;
    let run_at = match asked {
        Ok(asked) => text(&asked, "/run_at").to_owned(),
        Err(CliError::Refused { code, .. }) => return Ok(Polled::Failed(code)),
        Err(error) => return Err(error),
    };
    let due = run_at.parse::<jiff::Timestamp>().unwrap_or_default();
    let early = due.duration_since(jiff::Timestamp::now());
    if early > jiff::SignedDuration::from_secs(1) {
        let feed = operator.get(&feed_path(id)).await?;
        let is_throttled = feed.pointer("/health/throttled").is_some() || text(&feed, "/next_poll/because") == HOST;
        let wait = format!("not before {run_at}");
        return Ok(if is_throttled { Polled::Throttled(wait) } else { Polled::TooEarly(wait) });
    }
    match operator.own() {
        Some(service) => {
            let summary = service.poll_now(id).await?;
            let brought = (u64::from(summary.brought.new), u64::from(summary.brought.changed));
            Ok(of_run(summary.outcome.map_or("lost", Outcome::name), summary.code, summary.throttled, brought))
        }
        None => watch(operator, id, due, wait).await,
    }
}

/// Waits for the end of the first run that started when this one was asked for, or later.
async fn watch(operator: &Operator, id: &str, due: jiff::Timestamp, wait: Duration) -> Result<Polled, CliError> {
    let begun = Instant::now();
    let due = rfc3339(due.as_millisecond());
    let path = with_query(&format!("{}/runs", feed_path(id)), &[("limit", RUNS)]);
    let is_later = |run: &&Value| {
        let at = |text: &str| text.parse::<jiff::Timestamp>().ok();
        at(text(run, "/started_at")) >= at(&due) && !text(run, "/ended_at").is_empty()
    };
    while begun.elapsed() < wait {
        let runs = operator.get(&path).await?;
        let ended =
            runs.get("items").and_then(Value::as_array).and_then(|all| all.iter().rev().find(is_later).cloned());
        if let Some(run) = ended {
            let throttled = operator.get(&feed_path(id)).await?.pointer("/health/throttled").is_some();
            let number = |name: &str| run.get(name).and_then(Value::as_u64).unwrap_or(0);
            let code = run.pointer("/error/code").and_then(Value::as_str).map(str::to_owned);
            return Ok(of_run(text(&run, "/outcome"), code, throttled, (number("items_new"), number("items_changed"))));
        }
        // Its host may have asked for rest meanwhile.
        let feed = operator.get(&feed_path(id)).await?;
        if text(&feed, "/next_poll/because") == HOST {
            return Ok(Polled::Throttled(format!("not before {}", text(&feed, "/next_poll/at"))));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(Polled::Waiting)
}

fn of_run(outcome: &str, code: Option<String>, throttled: bool, (new, changed): (u64, u64)) -> Polled {
    match (outcome, code) {
        ("completed", _) => Polled::Done { new, changed },
        ("skipped", _) => Polled::Skipped,
        (_, code) if throttled => Polled::Throttled(code.unwrap_or_default()),
        (outcome, code) => Polled::Failed(code.unwrap_or_else(|| outcome.to_owned())),
    }
}
