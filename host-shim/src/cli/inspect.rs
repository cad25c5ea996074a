//! `host-shim inspect`: what a component is, before it is pinned.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::engine::inspect::surface;
use crate::engine::pin::{self, Pin};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The component's file.
    #[arg(value_name = "PLUGIN")]
    file: PathBuf,
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let pin = Pin { path: arguments.file.clone(), sha256: None, configuration: "{}".to_owned() };
    let (digest, bytes) = pin::read(&pin)?;
    let surface = surface(&bytes)?;
    // A component that would be refused is shown all the same, with the reason.
    let (descriptor, refusal) = match setup::load(&arguments.file, "{}").await {
        Ok(plugin) => (serde_json::to_value(plugin.descriptor()).unwrap_or(Value::Null), None),
        Err(error) => (Value::Null, Some(error)),
    };
    let shown = json!({
        "digest": digest.to_string(),
        "imports": surface.imports,
        "exports": surface.exports,
        "descriptor": descriptor,
    });
    if common.json {
        output::json_line(&shown)?;
    } else {
        output::line(&serde_json::to_string_pretty(&shown).unwrap_or_default())?;
    }
    match refusal {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(error),
    }
}
