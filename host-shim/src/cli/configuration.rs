//! `host-shim configuration`: the reference of the configuration file.

use std::process::ExitCode;

use super::output::{self, CliError};
use crate::config::reference;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// As a page instead of a file to start from.
    #[arg(long)]
    markdown: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let text = if arguments.markdown { reference::markdown() } else { reference::example() };
    output::line(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
