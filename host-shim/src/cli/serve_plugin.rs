//! `host-shim serve-plugin`: Quivr's HTTP plugin protocol over the component.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use tokio::net::TcpListener;

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::quivr::QuivrPlugin;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Port; 0 takes a free one.
    #[arg(long, env = "QUIVR_PLUGIN_PORT", default_value_t = 8080)]
    port: u16,
    /// Address to listen on. The protocol has no keys, so it belongs on loopback or behind a door of its own.
    #[arg(long, env = "QUIVR_PLUGIN_HOST", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// What the host calls itself; name a contact.
    #[arg(long, value_name = "TEXT", default_value = setup::USER_AGENT)]
    user_agent: String,
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let plugin = common.load("{}").await?;
    let address = SocketAddr::new(arguments.host, arguments.port);
    let listener =
        TcpListener::bind(address).await.map_err(|e| CliError::Usage(format!("cannot listen on {address}: {e}")))?;
    let router = QuivrPlugin::new(plugin, setup::client(&arguments.user_agent, None)?).router();
    output::line(&format!("listening on http://{}", listener.local_addr()?))?;
    tokio::select! {
        served = axum::serve(listener, router) => served?,
        () = setup::wait_for_signal() => {}
    }
    Ok(ExitCode::SUCCESS)
}
