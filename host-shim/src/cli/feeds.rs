//! `host-shim feeds`: the feeds of a service, for whoever operates it.

mod poll;

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::operator::{Access, Operator, feed_path, once, text};
use super::output::{self, CliError, fit};
use super::setup::Common;
use crate::corpus::address::namespace;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    access: Access,
    /// The corpus, by identifier or name [default: the only one there is].
    #[arg(long, global = true, value_name = "CORPUS")]
    corpus: Option<String>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the feeds with their health.
    List {
        /// Those that were removed, too.
        #[arg(long)]
        all: bool,
    },
    /// Add feeds.
    Add(Add),
    /// Remove feeds: they are polled no more, their records stay.
    Remove {
        /// Identifier, name or address of each.
        #[arg(required = true, value_name = "FEED")]
        feeds: Vec<String>,
    },
    /// Poll feeds now, wait, and say what came of it.
    Poll(poll::Arguments),
    /// Show all that is known of a feed.
    Show {
        /// Its identifier, name or address.
        feed: String,
    },
}

#[derive(Debug, clap::Args)]
struct Add {
    /// Address of each.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// What people call it; for one feed [default: its address].
    #[arg(long)]
    name: Option<String>,
    /// Namespace of its records; for one feed [default: made of the address].
    #[arg(long)]
    namespace: Option<String>,
    /// Seconds between two polls [default: the component's].
    #[arg(long, value_name = "SECONDS")]
    interval: Option<u32>,
    /// A label.
    #[arg(long = "label", value_name = "NAME=TEXT", value_parser = label)]
    labels: Vec<(String, String)>,
}

fn label(given: &str) -> Result<(String, String), String> {
    given.split_once('=').map(|(n, t)| (n.to_owned(), t.to_owned())).ok_or_else(|| "NAME=TEXT".to_owned())
}

pub(super) async fn run(common: &Common, arguments: Arguments) -> Result<ExitCode, CliError> {
    let operator = Operator::open(common, &arguments.access).await?;
    let corpus = arguments.corpus.as_deref();
    match arguments.action {
        Action::List { all } => list(common, &operator, corpus, all).await?,
        Action::Add(add) => return self::add(common, &operator, corpus, &add).await,
        Action::Remove { feeds } => remove(common, &operator, &feeds).await?,
        Action::Poll(arguments) => return poll::run(common, &operator, corpus, &arguments).await,
        Action::Show { feed } => show(common, &operator.feed(&feed).await?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The filter of a list by corpus; a corpus that is not named leaves it open.
async fn filter(operator: &Operator, corpus: Option<&str>) -> Result<Option<String>, CliError> {
    match corpus {
        Some(named) => operator.corpus(Some(named)).await,
        None => Ok(None),
    }
}

async fn list(common: &Common, operator: &Operator, corpus: Option<&str>, all: bool) -> Result<(), CliError> {
    let corpus = filter(operator, corpus).await?;
    let query: Vec<(&str, &str)> = corpus.iter().map(|id| ("corpus_id", id.as_str())).collect();
    if !common.json {
        output::line(&format!("{:<40} {:<19} {:<20} {:<32} ADDRESS", "FEED", "STATE", "NEXT POLL", "NAME"))?;
    }
    operator
        .each("/v0/connectors", &query, |feed| {
            if !all && feed.get("enabled") == Some(&Value::Bool(false)) {
                return Ok(());
            }
            if common.json { output::json_line(&feed) } else { output::line(&row(&feed)) }
        })
        .await
}

/// A feed as a line.
fn row(feed: &Value) -> String {
    let error = text(feed, "/health/last_error/code");
    let state = text(feed, "/health/state");
    let state = match (feed.pointer("/health/throttled").is_some(), state, error) {
        (true, _, _) => "throttled".to_owned(),
        (false, "active", code) if !code.is_empty() => code.to_owned(),
        (false, state, _) => state.to_owned(),
    };
    let next = match text(feed, "/next_poll/at") {
        "" if feed.get("paused_at").is_some() => "paused",
        "" => "-",
        at => at,
    };
    format!(
        "{:<40} {:<19} {:<20} {:<32} {}",
        text(feed, "/connector_id"),
        fit(&state, 19),
        seconds(next),
        fit(text(feed, "/name"), 32),
        fit(text(feed, "/config/url"), 200),
    )
}

/// An instant without its fraction.
fn seconds(at: &str) -> String {
    match at.split_once('.') {
        Some((whole, _)) if at.ends_with('Z') => format!("{whole}Z"),
        _ => at.to_owned(),
    }
}

async fn add(common: &Common, operator: &Operator, corpus: Option<&str>, add: &Add) -> Result<ExitCode, CliError> {
    if add.urls.len() > 1 && (add.name.is_some() || add.namespace.is_some()) {
        return Err(CliError::Usage("--name and --namespace are for one feed".to_owned()));
    }
    let corpus_id = operator.corpus_for_more(corpus).await?;
    let labels: Map<String, Value> = add.labels.iter().map(|(n, t)| (n.clone(), Value::from(t.as_str()))).collect();
    let mut result = ExitCode::SUCCESS;
    for url in &add.urls {
        let mut body = json!({
            "idempotency_key": once(), "corpus_id": corpus_id, "kind": "rss", "config": {"url": url}, "labels": labels,
            "source_namespace": add.namespace.clone().unwrap_or_else(|| namespace(url)),
        });
        if let Some(object) = body.as_object_mut() {
            object.extend(add.name.as_ref().map(|name| ("name".to_owned(), name.as_str().into())));
            let schedule = add.interval.map(|seconds| json!({"interval_seconds": seconds}));
            object.extend(schedule.map(|schedule| ("schedule".to_owned(), schedule)));
        }
        match operator.post("/v0/connectors", &body).await {
            Ok(made) if common.json => output::json_line(&made)?,
            Ok(made) => {
                output::line(&format!("added  {}  {}", text(&made, "/connector_id"), text(&made, "/config/url")))?
            }
            // One address that is refused keeps no other from being added.
            Err(error @ CliError::Refused { .. }) if add.urls.len() > 1 => {
                output::complain(&format!("{}: {error}", fit(url, 200)));
                result = ExitCode::FAILURE;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(result)
}

async fn remove(common: &Common, operator: &Operator, feeds: &[String]) -> Result<(), CliError> {
    for named in feeds {
        let feed = operator.feed(named).await?;
        let path = format!("{}/disable", feed_path(text(&feed, "/connector_id")));
        let removed = operator.post(&path, &json!({"idempotency_key": once()})).await?;
        if common.json {
            output::json_line(&removed)?;
        } else {
            let (id, name) = (text(&removed, "/connector_id"), text(&removed, "/name"));
            output::line(&format!("removed  {id}  {}; its records stay", fit(name, 80)))?;
        }
    }
    Ok(())
}

fn show(common: &Common, feed: &Value) -> Result<(), CliError> {
    if common.json {
        return output::json_line(feed);
    }
    let count = |pointer: &str| feed.pointer(pointer).map(Value::to_string).unwrap_or_default();
    let both = |a: &str, b: &str, join: &str| if a.is_empty() { String::new() } else { format!("{a}{join}{b}") };
    let error = feed.pointer("/health/last_error");
    let in_error = |pointer: &str| error.map_or("", |e| text(e, pointer)).to_owned();
    let notes = feed.pointer("/health/diagnostics/notes").and_then(Value::as_array).map(|notes| {
        let each = notes
            .iter()
            .map(|n| format!("{} x{}", text(n, "/code"), n.get("count").map_or(1, |c| c.as_u64().unwrap_or(1))));
        each.collect::<Vec<_>>().join(", ")
    });
    let pace = feed.pointer("/health/declared_pace").filter(|p| !p.is_null()).map(Value::to_string);
    let rows = [
        ("feed", text(feed, "/connector_id").to_owned()),
        ("name", text(feed, "/name").to_owned()),
        ("address", text(feed, "/config/url").to_owned()),
        ("corpus", text(feed, "/corpus_id").to_owned()),
        ("namespace", text(feed, "/source_namespace").to_owned()),
        ("state", text(feed, "/health/state").to_owned()),
        ("paused since", text(feed, "/paused_at").to_owned()),
        ("removed at", text(feed, "/disabled_at").to_owned()),
        ("records", format!("{}, {} of them in the feed now", count("/counts/records"), count("/counts/listed"))),
        ("interval", format!("{} s", count("/schedule/interval_seconds"))),
        ("next poll", both(text(feed, "/next_poll/at"), text(feed, "/next_poll/because"), ", because of: ")),
        ("last poll", text(feed, "/last_run_at").to_owned()),
        ("last success", text(feed, "/health/last_success_at").to_owned()),
        ("last new item", text(feed, "/health/last_item_at").to_owned()),
        ("throttled", both(text(feed, "/health/throttled/since"), text(feed, "/health/throttled/by"), ", by ")),
        ("moved to", both(text(feed, "/health/moved/to"), text(feed, "/health/moved/since"), ", since ")),
        ("last error", both(&in_error("/code"), &in_error("/at"), ", at ")),
        ("", in_error("/message")),
        ("detail", in_error("/detail")),
        ("credential until", text(feed, "/credential/expires_at").to_owned()),
        ("says of its pace", pace.unwrap_or_default()),
        ("notes", notes.unwrap_or_default()),
    ];
    for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
        output::line(&format!("{name:<17} {}", fit(&value, 2_000)))?;
    }
    Ok(())
}
