//! `host-shim poll`: one run of one feed, all its pages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::egress::credential::Credential;
use crate::egress::url::normalise;
use crate::engine::plugin::{Invocation, Plugin};
use crate::runner::Session;
use crate::runner::network::Network;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Address of the feed.
    url: String,
    /// File with the checkpoint; read if it exists, written after the run.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The clock, RFC 3339 [default: the machine's].
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// Request private addresses too; for local tests.
    #[arg(long)]
    allow_private_addresses: bool,
    /// File with the config of the instance, a JSON object; the address comes from the command line.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What the host calls itself; name a contact.
    #[arg(long, value_name = "TEXT", default_value = setup::USER_AGENT)]
    user_agent: String,
    /// File with the pin's configuration, a JSON object: what is open beyond public addresses.
    #[arg(long, value_name = "FILE")]
    configuration: Option<PathBuf>,
    /// PEM file with authorities of your own that servers may be signed by.
    #[arg(long, value_name = "FILE")]
    tls_authority: Option<PathBuf>,
    /// File with the credential, a JSON object.
    #[arg(long, value_name = "FILE")]
    credential: Option<PathBuf>,
}

pub(super) async fn run(common: &Common, arguments: Arguments) -> Result<ExitCode, CliError> {
    let (rules, configuration) = setup::rules(arguments.configuration.as_deref(), arguments.allow_private_addresses)?;
    let plugin = common.load(&configuration).await?;
    let Some(kind) = plugin.descriptor().kinds.first().cloned() else {
        return Err(CliError::Usage("the component serves no kind".to_owned()));
    };
    let credential = match &arguments.credential {
        Some(path) => {
            let text = setup::read_text(path)?;
            let made = Credential::new(&text, &kind.credential_fields);
            Some(made.map_err(|e| CliError::Usage(format!("{}: {e}", path.display())))?)
        }
        None => None,
    };
    let call = Invocation {
        instance_id: "command-line".to_owned(),
        kind: kind.name,
        corpus_id: "command-line".to_owned(),
        source_namespace: "command-line".to_owned(),
        config: config(&arguments)?,
        checkpoint: read_checkpoint(arguments.checkpoint.as_deref())?,
        now: setup::now(arguments.now.as_deref())?,
        has_credential: credential.is_some(),
        ..Invocation::default()
    };
    let client = setup::client(&arguments.user_agent, arguments.tls_authority.as_deref())?;
    let network = Arc::new(Network::new(client, rules, credential, None));
    pages(common, &arguments, plugin, network, call).await
}

/// The config of the instance: the file's members, and the address.
fn config(arguments: &Arguments) -> Result<String, CliError> {
    let mut config = match &arguments.config {
        Some(path) => serde_json::from_str::<Map<String, Value>>(&setup::read_text(path)?)
            .map_err(|e| CliError::Usage(format!("{} is not a JSON object: {e}", path.display())))?,
        None => Map::new(),
    };
    config.insert("url".to_owned(), normalise(&arguments.url).into());
    Ok(Value::Object(config).to_string())
}

fn read_checkpoint(path: Option<&Path>) -> Result<Option<String>, CliError> {
    match path {
        Some(path) if path.exists() => Ok(Some(setup::read_text(path)?)),
        _ => Ok(None),
    }
}

async fn pages(
    common: &Common,
    arguments: &Arguments,
    plugin: Plugin,
    network: Arc<Network>,
    call: Invocation,
) -> Result<ExitCode, CliError> {
    let mut session = Session::new(plugin, Arc::clone(&network) as _, call);
    let mut last = None;
    while let Some(next) = session.next().await {
        let page = match next {
            Ok(page) => page,
            Err(error) => {
                if common.json {
                    output::json_line(&json!({"error": output::run_error(&error)}))?;
                }
                output::complain(&format!("{} ({}): {error}", error.code(), error.class().name()));
                if let Some(detail) = network.report().detail() {
                    output::complain(&detail);
                }
                return Ok(ExitCode::FAILURE);
            }
        };
        if common.json {
            for item in &page.items {
                output::json_line(item)?;
            }
        } else if !page.items.is_empty() {
            output::table(&page.items)?;
        }
        // Only now: whoever reads the items has them before the checkpoint says so.
        output::flush()?;
        if let Some(path) = &arguments.checkpoint {
            setup::write_whole(path, page.checkpoint.as_bytes())?;
        }
        last = Some(page);
    }
    let Some(page) = last else { return Ok(ExitCode::FAILURE) };
    if common.json {
        let window: Option<Vec<&str>> = page.window.as_ref().map(|w| w.iter().map(|e| e.record_key.as_str()).collect());
        output::json_line(&json!({"page": {
            "checkpoint": page.checkpoint,
            "more": page.more,
            "not_due": page.not_due,
            "window": window,
            "hints": page.hints,
            "diagnostics": page.diagnostics,
        }}))?;
    } else {
        let report = network.report();
        let status = report.status.map_or_else(|| "no request".to_owned(), |s| format!("status {s}"));
        let state = if page.not_due { "not due" } else { "done" };
        let listed = page.window.as_ref().map_or_else(String::new, |w| format!(", {} items in the document", w.len()));
        output::line(&format!("  {state}: {status}, {} requests{listed}", report.requests))?;
    }
    Ok(ExitCode::SUCCESS)
}
