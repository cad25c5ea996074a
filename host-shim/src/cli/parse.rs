//! `host-shim parse`: stored documents through the component, without a network.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::egress::client::MAX_BODY_BYTES;
use crate::egress::coding::CodingError;
use crate::engine::answer::{Item, Page};
use crate::engine::plugin::{Invocation, Plugin};
use crate::engine::upstream::{Failure, Response};
use crate::runner::document::{Document, ResponseError, read_response};
use crate::runner::{RunError, Session};

/// Bytes of a stored response: a whole body and its header section.
const MAX_FILE_BYTES: u64 = MAX_BODY_BYTES as u64 + 64 * 1_024;

/// The address that stands for a document whose address is not known; nothing is ever requested from it.
const NO_ADDRESS: &str = "http://document.invalid/";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Content-Type of the documents.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Address that the documents came from.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The clock, RFC 3339 [default: the machine's].
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// Documents: a body, or with the ending .http a whole response.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// What a document became.
struct Parsed {
    items: Vec<Item>,
    last: Option<Page>,
}

pub(super) async fn run(common: &Common, arguments: Arguments) -> Result<ExitCode, CliError> {
    let plugin = common.load("{}").await?;
    let now = setup::now(arguments.now.as_deref())?;
    let mut all_read = true;
    for file in &arguments.files {
        let upstream = match response(file, &arguments) {
            Ok(upstream) => upstream,
            Err(why) => {
                all_read = false;
                unreadable(common, file, &why)?;
                continue;
            }
        };
        let outcome = document(&plugin, &now, upstream).await;
        show(common, file, &outcome)?;
    }
    Ok(if all_read { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What every request for the document gets: a response, or the failure that the network would give.
fn response(file: &Path, arguments: &Arguments) -> Result<Document, String> {
    let whole = file.extension().is_some_and(|e| e == "http");
    let bound = if whole { MAX_FILE_BYTES } else { MAX_BODY_BYTES as u64 };
    let bytes = match setup::read_bounded(file, bound) {
        Ok(bytes) => bytes,
        Err(CliError::TooLong { .. }) => return Ok(Document::failing(Failure::ResponseTooLarge)),
        Err(error) => return Err(error.to_string()),
    };
    let mut response = if whole {
        match read_response(&bytes) {
            Ok(response) => response,
            Err(ResponseError::Body(error)) => return Ok(Document::failing(coding(error))),
            Err(error) => return Err(error.to_string()),
        }
    } else {
        Response { status: 200, body: bytes, ..Response::default() }
    };
    if let Some(content_type) = &arguments.content_type {
        response.headers.retain(|(name, _)| name != "content-type");
        response.headers.push(("content-type".to_owned(), content_type.clone().into_bytes()));
    }
    if let Some(url) = &arguments.url {
        response.final_url.clone_from(url);
    }
    Ok(Document::new(response))
}

/// The kind of a body that cannot be decoded.
fn coding(error: CodingError) -> Failure {
    match error {
        CodingError::Unsupported => Failure::UnsupportedEncoding,
        CodingError::TooLarge | CodingError::Bomb => Failure::ResponseTooLarge,
        CodingError::Damaged => Failure::Connection,
    }
}

async fn document(plugin: &Plugin, now: &str, upstream: Document) -> Result<Parsed, RunError> {
    let kind = plugin.descriptor().kinds.first().map(|k| k.name.clone()).unwrap_or_default();
    let call = Invocation {
        instance_id: "command-line".to_owned(),
        kind,
        corpus_id: "command-line".to_owned(),
        source_namespace: "command-line".to_owned(),
        config: json!({"url": NO_ADDRESS}).to_string(),
        now: now.to_owned(),
        ..Invocation::default()
    };
    let mut session = Session::new(plugin.clone(), Arc::new(upstream), call);
    let mut parsed = Parsed { items: Vec::new(), last: None };
    while let Some(page) = session.next().await {
        let mut page = page?;
        parsed.items.append(&mut page.items);
        parsed.last = Some(page);
    }
    Ok(parsed)
}

fn unreadable(common: &Common, file: &Path, why: &str) -> Result<(), CliError> {
    output::complain(&format!("{}: {why}", file.display()));
    if common.json {
        output::json_line(&json!({
            "file": file.display().to_string(), "ok": false, "class": "source", "code": "unreadable_file", "message": why,
        }))?;
    }
    Ok(())
}

fn show(common: &Common, file: &Path, outcome: &Result<Parsed, RunError>) -> Result<(), CliError> {
    let name = file.display().to_string();
    match outcome {
        Ok(parsed) if common.json => {
            let page = parsed.last.as_ref();
            let window: Vec<&str> =
                page.and_then(|p| p.window.as_ref()).into_iter().flatten().map(|w| w.record_key.as_str()).collect();
            output::json_line(&json!({
                "file": name,
                "ok": true,
                "items": parsed.items,
                "window": window,
                "diagnostics": page.map_or(Value::Null, |p| p.diagnostics.clone()),
                "hints": page.map(|p| &p.hints),
            }))
        }
        Ok(parsed) => {
            output::line(&format!("{name}: {} items", parsed.items.len()))?;
            output::table(&parsed.items)
        }
        Err(error) if common.json => {
            let mut value = output::run_error(error);
            if let Some(object) = value.as_object_mut() {
                object.insert("file".to_owned(), name.into());
                object.insert("ok".to_owned(), false.into());
            }
            output::json_line(&value)
        }
        Err(error) => output::line(&format!("{name}: {} ({}): {error}", error.code(), error.class().name())),
    }
}
