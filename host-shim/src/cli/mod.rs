//! The command line: arguments in, lines out.
//!
//! Owns what a person or a script types and reads. Each command is a file; each returns an exit code: 0 done, 1 the
//! work failed (reason on standard error), 2 usage.

mod backup;
mod certify;
mod check_url;
mod configuration;
mod credentials;
mod feeds;
mod inspect;
mod keys;
mod operator;
mod opml;
mod output;
mod parse;
mod poll;
mod remote;
mod render;
mod serve;
mod serve_plugin;
mod setup;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit code of a command whose work failed.
const FAILED: u8 = 1;
/// Exit code of a command that was called the wrong way.
const USAGE: u8 = 2;

/// Runs connector components: the only part with a network, a clock, a secret or a disk.
#[derive(Debug, Parser)]
#[command(name = "host-shim", version, propagate_version = true)]
pub struct Cli {
    /// The component [default: connector.rss.wasm beside this program].
    #[arg(long, global = true, env = "HOST_SHIM_PLUGIN", value_name = "FILE")]
    plugin: Option<PathBuf>,

    /// One JSON object a line.
    #[arg(long, global = true)]
    json: bool,

    /// How the log on standard error looks; HOST_SHIM_LOG says how much of it.
    #[arg(long, global = true, env = "HOST_SHIM_LOG_FORMAT", value_enum, default_value_t = LogFormat::Human)]
    pub log_format: LogFormat,

    #[command(subcommand)]
    command: Command,
}

/// Forms of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the REST API, with the schedule and the embedded store.
    Serve(serve::Arguments),
    /// List, add, remove, poll and show feeds.
    Feeds(feeds::Arguments),
    /// Import and export lists of feeds (OPML).
    Opml(opml::Arguments),
    /// Copy the store while the service runs.
    Backup(backup::Arguments),
    /// Put a copy of the store into a data folder that has none.
    Restore(backup::Arguments),
    /// Print the reference of the configuration file.
    Configuration(configuration::Arguments),
    /// Make, list and revoke the keys of the API.
    Keys(keys::Arguments),
    /// Change the key that seals deposited credentials.
    Credentials(credentials::Arguments),
    /// Poll one feed once, through the component.
    Poll(poll::Arguments),
    /// Read stored documents through the component, without a network.
    Parse(parse::Arguments),
    /// Render stored markup.
    Render(render::Arguments),
    /// Say whether an address may be requested, and why not; no connection is made.
    CheckUrl(check_url::Arguments),
    /// Show what a component is before it is pinned.
    Inspect(inspect::Arguments),
    /// Make the contract checks on a component.
    Certify(certify::Arguments),
    /// Serve Quivr's HTTP plugin protocol over the component.
    ServePlugin(serve_plugin::Arguments),
}

/// Runs a command.
pub async fn run(cli: Cli) -> ExitCode {
    let common = setup::Common { plugin: cli.plugin, json: cli.json };
    let result = match cli.command {
        Command::Serve(arguments) => serve::run(&common, arguments).await,
        Command::Feeds(arguments) => feeds::run(&common, arguments).await,
        Command::Opml(arguments) => opml::run(&common, arguments).await,
        Command::Backup(arguments) => backup::back_up(&common, &arguments),
        Command::Restore(arguments) => backup::restore(&common, &arguments),
        Command::Configuration(arguments) => configuration::run(&arguments),
        Command::Keys(arguments) => keys::run(&common, &arguments),
        Command::Credentials(arguments) => credentials::run(&common, &arguments),
        Command::Poll(arguments) => poll::run(&common, arguments).await,
        Command::Parse(arguments) => parse::run(&common, arguments).await,
        Command::Render(arguments) => render::run(&common, arguments).await,
        Command::CheckUrl(arguments) => check_url::run(&common, &arguments).await,
        Command::Inspect(arguments) => inspect::run(&common, &arguments).await,
        Command::Certify(arguments) => certify::run(&common, &arguments).await,
        Command::ServePlugin(arguments) => serve_plugin::run(&common, &arguments).await,
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(if matches!(error, output::CliError::Usage(_)) { USAGE } else { FAILED })
        }
    }
}
