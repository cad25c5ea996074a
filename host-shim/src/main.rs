//! The program: reads the command line, sets up the log and hands over.

use std::process::ExitCode;

use clap::Parser;
use host_shim::cli::{Cli, run};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Lines of the component are the operator's only at warn and above, unless asked for.
    let filter = EnvFilter::try_from_env("HOST_SHIM_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => {
            tracing::error!(%error, "the run time could not be started");
            ExitCode::FAILURE
        }
    }
}
