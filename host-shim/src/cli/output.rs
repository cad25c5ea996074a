//! Lines on standard output and complaints on standard error.

use std::io::{self, Write};
use std::path::Path;

use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::answer::Item;
use crate::engine::error::{CallError, PinError};
use crate::runner::RunError;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The component.
    #[error("{0}")]
    Pin(#[from] PinError),
    /// A call of it.
    #[error("{0}")]
    Call(#[from] CallError),
    /// The way out.
    #[error("{0}")]
    Egress(#[from] crate::egress::error::Failure),
    /// The service.
    #[error("{0}")]
    Start(#[from] crate::server::StartError),
    /// The store.
    #[error("{0}")]
    Store(#[from] crate::store::StoreError),
    /// The service's answer.
    #[error("{message} ({code})")]
    Refused {
        /// Stable code.
        code: String,
        /// Sentence.
        message: String,
    },
    /// No service there.
    #[error("cannot call {server}: {why}")]
    Unreachable {
        /// Its address.
        server: String,
        /// Why.
        why: String,
    },
    /// An answer that this program does not know.
    #[error("the answer is not that of this service; check --server")]
    NotOurs,
    /// A service runs on the data folder.
    #[error("a service runs on {folder}: call it with --server http://{listen} and its key in HOST_SHIM_KEY")]
    InUse {
        /// The folder.
        folder: std::path::PathBuf,
        /// Where its configuration says that it listens.
        listen: std::net::SocketAddr,
    },
    /// A file.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A file beyond its bound.
    #[error("{path} is longer than {bound} bytes")]
    TooLong {
        /// File.
        path: String,
        /// Bound in bytes.
        bound: u64,
    },
    /// An argument.
    #[error("{0}")]
    Usage(String),
    /// Standard output is closed.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    pub(super) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { action, path: path.display().to_string(), source }
    }
}

/// Writes one line.
pub(super) fn line(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(())
}

/// Hands what was written to whoever reads it.
pub(super) fn flush() -> Result<(), CliError> {
    io::stdout().lock().flush()?;
    Ok(())
}

/// A bar on standard error for work that takes long; none where that is no terminal.
pub(super) fn progress(steps: usize) -> ProgressBar {
    // Little work needs no bar.
    if steps < 2 { ProgressBar::hidden() } else { ProgressBar::new(steps as u64) }
}

/// Writes one JSON object as a line.
pub(super) fn json_line(value: &impl Serialize) -> Result<(), CliError> {
    line(&serde_json::to_string(value).map_err(io::Error::other)?)
}

/// Says on standard error why the work failed.
pub(super) fn complain(error: &dyn std::fmt::Display) {
    // There is nobody to tell when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "host-shim: {error}");
}

/// An error of a run as JSON.
pub(super) fn run_error(error: &RunError) -> Value {
    let mut value = json!({"class": error.class(), "code": error.code(), "message": error.to_string()});
    if let (Some(object), Some(seconds)) = (value.as_object_mut(), error.retry_after_seconds()) {
        object.insert("retry_after_seconds".to_owned(), seconds.into());
    }
    if let (Some(object), RunError::Component(error)) = (value.as_object_mut(), error)
        && let Some(reason) = error.reason()
    {
        object.insert("reason".to_owned(), reason.into());
    }
    value
}

/// A text cut to a width in characters, control characters shown as blanks.
pub(super) fn fit(text: &str, width: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= width {
        return clean;
    }
    clean.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// Items as a table for people: key, revision, title, published.
pub(super) fn table(items: &[Item]) -> Result<(), CliError> {
    line(&format!("  {:<44} {:<12} {:<40} PUBLISHED", "KEY", "REVISION", "TITLE"))?;
    for item in items {
        let title = item.parts.iter().find(|p| p.key == "title").map_or("", |p| p.text.as_str());
        let published = item
            .extensions
            .values()
            .find_map(|e| e.data.pointer("/item/published").and_then(Value::as_str))
            .unwrap_or("-");
        let revision = item.revision.strip_prefix("sha256:").unwrap_or(&item.revision);
        line(&format!(
            "  {:<44} {:<12} {:<40} {published}",
            fit(&item.record_key, 44),
            fit(revision, 12),
            fit(title, 40)
        ))?;
    }
    Ok(())
}
