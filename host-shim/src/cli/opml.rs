//! `host-shim opml`: lists of feeds in and out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::operator::{Access, Operator, text, with_query};
use super::output::{self, CliError, fit};
use super::setup::{Common, read_bounded, write_whole};
use crate::opml::{self, MAX_BYTES};

/// Feeds of one call: some seconds of work, so that progress shows and no call times out.
const PART: usize = 250;

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
    /// Add the feeds of a file, in its order; what is there already is skipped and said.
    Import {
        /// The file; a broken one changes nothing.
        file: PathBuf,
        /// Seconds between two polls [default: the component's].
        #[arg(long, value_name = "SECONDS")]
        interval: Option<u32>,
    },
    /// Write the feeds of a corpus.
    Export {
        /// Where to [default: standard output].
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

pub(super) async fn run(common: &Common, arguments: Arguments) -> Result<ExitCode, CliError> {
    let corpus = arguments.corpus.as_deref();
    match &arguments.action {
        Action::Import { file, interval } => {
            // Read whole before anything is asked of the service.
            let feeds = opml::read(&read_bounded(file, MAX_BYTES as u64)?).map_err(|e| CliError::Refused {
                code: e.code().to_owned(),
                message: format!("{}: {e}", file.display()),
            })?;
            let operator = Operator::open(common, &arguments.access).await?;
            import(common, &operator, corpus, &feeds, *interval).await
        }
        Action::Export { output } => {
            let operator = Operator::open(common, &arguments.access).await?;
            export(&operator, corpus, output.as_deref()).await
        }
    }
}

async fn import(
    common: &Common,
    operator: &Operator,
    corpus: Option<&str>,
    feeds: &[opml::Feed],
    interval: Option<u32>,
) -> Result<ExitCode, CliError> {
    let corpus_id = operator.corpus_for_more(corpus).await?;
    let seconds = interval.map(|s| s.to_string());
    let mut query = vec![("corpus_id", corpus_id.as_str())];
    query.extend(seconds.as_deref().map(|s| ("interval_seconds", s)));
    let path = with_query("/v0/opml", &query);
    let progress = output::progress(feeds.len());
    let (mut added, mut skipped) = (0, 0);
    for part in feeds.chunks(PART) {
        let answer = operator.post_opml(&path, opml::write("import", part)).await.inspect_err(|_| {
            output::complain(&format!("{added} feeds were added before this; import the file again for the rest"));
        })?;
        let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        added += list("added").len();
        skipped += list("skipped").len();
        progress.inc(part.len() as u64);
        progress.suspend(|| said(common, &list("added"), &list("skipped")))?;
    }
    progress.finish_and_clear();
    if common.json {
        output::json_line(&json!({"added": added, "skipped": skipped}))?;
    } else {
        output::line(&format!("{added} added, {skipped} skipped"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of a part: for programs each feed, for people those that were skipped.
fn said(common: &Common, added: &[Value], skipped: &[Value]) -> Result<(), CliError> {
    if common.json {
        added.iter().try_for_each(|feed| output::json_line(&json!({"feed": feed})))?;
        return skipped.iter().try_for_each(|feed| output::json_line(&json!({"skipped_feed": feed})));
    }
    skipped.iter().try_for_each(|feed| {
        let (name, url) = (fit(text(feed, "/name"), 60), fit(text(feed, "/url"), 200));
        output::line(&format!("skipped ({}): {name}  {url}  {}", text(feed, "/because"), text(feed, "/message")))
    })
}

async fn export(operator: &Operator, corpus: Option<&str>, file: Option<&Path>) -> Result<ExitCode, CliError> {
    let Some(corpus_id) = operator.corpus(corpus).await? else {
        return Err(CliError::Usage("there is no corpus yet".to_owned()));
    };
    let list = operator.text(&with_query("/v0/opml", &[("corpus_id", &corpus_id)])).await?;
    match file {
        Some(path) => write_whole(path, list.as_bytes())?,
        None => output::line(list.trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}
