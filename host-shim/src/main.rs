//! The program: reads the command line, sets up the log and hands over.

use std::process::ExitCode;

use clap::Parser;
use host_shim::cli::{Cli, LogFormat, run};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Audit lines of writes are always there; lines of the component, which may quote a feed, only when asked for.
    let filter = EnvFilter::try_from_env("HOST_SHIM_LOG").unwrap_or_else(|_| EnvFilter::new("warn,audit=info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match cli.log_format {
        LogFormat::Human => log.init(),
        LogFormat::Json => log.json().init(),
    }
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => {
            tracing::error!(%error, "the run time could not be started");
            ExitCode::FAILURE
        }
    }
}
