//! The fake feed server for people: serves a folder of feeds until it is interrupted.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line talks to people")]

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fake_feed_server::FakeFeedServer;

/// Serves a folder of feeds over HTTP on loopback, with validators, scripts and a log of requests.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Folder whose files are served under their names.
    folder: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)) {
        Ok(listener) => listener,
        Err(e) => {
            eprintln!("cannot listen on port {}: {e}", arguments.port);
            return ExitCode::FAILURE;
        }
    };
    let server = FakeFeedServer::start_on(listener).await;
    match server.serve_folder(&arguments.folder) {
        Ok(paths) => {
            println!("listening on http://{}", server.address());
            for path in paths {
                println!("  {}", server.url(&path));
            }
        }
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    }
    match tokio::signal::ctrl_c().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
