//! `host-shim credentials`: the key that seals deposited secrets.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::output::{self, CliError};
use super::setup::Common;
use crate::server;
use crate::store::sqlite::Sqlite;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Configuration (TOML) that names the data folder and the keys.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Seal every stored secret with the key in credential_key_file; older keys stand in old_credential_key_files. It may
    /// be cut off and called again, also while the service runs.
    Rotate,
}

pub(super) fn run(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let config = common.configuration(arguments.config.as_deref())?;
    let Action::Rotate = arguments.action;
    let Some(vault) = server::vault(&config)? else {
        return Err(CliError::Usage("set credential_key_file in the configuration first".to_owned()));
    };
    let store = Sqlite::open(&config.data_dir)?;
    let (resealed, unreadable) = vault.reseal(&store)?;
    if common.json {
        output::json_line(&json!({"key_id": vault.key_id(), "resealed": resealed, "unreadable": unreadable}))?;
    } else {
        output::line(&format!("{resealed} secrets are now sealed with key {}", vault.key_id()))?;
    }
    if unreadable.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for id in &unreadable {
        output::complain(&format!(
            "the secret of {id} does not open with any key at hand; add its key to old_credential_key_files"
        ));
    }
    Ok(ExitCode::FAILURE)
}
