//! `host-shim serve`: REST API, scheduler, embedded store, until it is interrupted.

use std::path::PathBuf;
use std::process::ExitCode;

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::server::Server;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Configuration (TOML); host-shim.example.toml documents every key.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) async fn run(common: &Common, arguments: Arguments) -> Result<ExitCode, CliError> {
    let config = common.configuration(arguments.config.as_deref())?;
    setup::survive_size_limits();
    let server = Server::start(&config).await?;
    for warning in &server.warnings {
        output::complain(warning);
    }
    for kind in &server.kinds {
        output::line(&format!("kind {kind}"))?;
    }
    if let Some(key) = &server.first_key {
        output::line(&format!("API key, shown this once: {key}"))?;
    }
    output::line(&format!("listening on http://{}", server.address))?;
    setup::wait_for_signal().await;
    output::line("stopping: runs in flight are finished")?;
    server.stop().await;
    Ok(ExitCode::SUCCESS)
}
