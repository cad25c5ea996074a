//! `host-shim serve`: REST API, scheduler, embedded store, until it is interrupted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::config::{self, Config};
use crate::engine::pin::Pin;
use crate::server::Server;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Configuration (TOML); host-shim.example.toml documents every key.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) async fn run(common: &Common, arguments: Arguments) -> Result<ExitCode, CliError> {
    let config = configuration(common, arguments.config.as_deref())?;
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

fn configuration(common: &Common, path: Option<&Path>) -> Result<Config, CliError> {
    let (text, base) = match path {
        Some(path) => (setup::read_text(path)?, path.parent().unwrap_or(Path::new(".")).to_owned()),
        None => (String::new(), PathBuf::from(".")),
    };
    let (mut config, warnings) =
        config::read(&text, &base, setup::USER_AGENT).map_err(|e| CliError::Usage(e.to_string()))?;
    for warning in warnings {
        output::complain(&warning);
    }
    if config.plugins.is_empty() {
        config.plugins.push(Pin { path: common.component()?, sha256: None, configuration: "{}".to_owned() });
    }
    Ok(config)
}
