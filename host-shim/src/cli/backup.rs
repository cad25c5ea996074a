//! `host-shim backup` and `host-shim restore`: copies of the store.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::output::{self, CliError};
use super::setup::Common;
use crate::server::lock;
use crate::store::sqlite::backup::{self, Contents};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The copy; its place must be free.
    file: PathBuf,
    /// Configuration (TOML) that names the data folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Copies the store while the service runs on.
pub(super) fn back_up(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let config = common.configuration(arguments.config.as_deref())?;
    let contents = backup::back_up(&config.data_dir, &arguments.file)?;
    said(common, "backed up", contents)
}

/// Puts a copy into a data folder without a store.
pub(super) fn restore(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let config = common.configuration(arguments.config.as_deref())?;
    let _lock = lock(&config.data_dir)?;
    let contents = backup::restore(&arguments.file, &config.data_dir)?;
    said(common, "restored", contents)
}

fn said(common: &Common, what: &str, contents: Contents) -> Result<ExitCode, CliError> {
    let Contents { schema, instances, records, bytes } = contents;
    if common.json {
        output::json_line(&json!({"schema": schema, "connectors": instances, "records": records, "bytes": bytes}))?;
    } else {
        output::line(&format!("{what}: {instances} connectors, {records} records, {bytes} bytes, schema {schema}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
