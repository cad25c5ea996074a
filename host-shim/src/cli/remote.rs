//! Calls of a running service's API, for commands.
//!
//! Owns one HTTP exchange with an address that the operator named. It is no way out for components: those go through
//! `egress`, which judges every address.

use std::path::Path;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use url::{Host, Url};

use super::output::CliError;
use super::setup::{MAX_SMALL_FILE, read_bounded, read_text};
use crate::egress::dial::{self, Stream, Tls};

/// The variable with the API key: an argument could be read by every user of the machine.
const KEY: &str = "HOST_SHIM_KEY";

/// The longest wait for one answer: an import's part is checked feed by feed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of one answer: the list of a corpus with 100,000 feeds.
pub(super) const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A service on a network, with the key for it.
pub(super) struct Remote {
    base: Url,
    key: HeaderValue,
    tls: Option<Tls>,
}

impl Remote {
    /// What a person named; the key is the environment's, else the file's.
    pub(super) fn new(server: &str, key_file: Option<&Path>, authority: Option<&Path>) -> Result<Self, CliError> {
        let base = Url::parse(server).ok().filter(|u| matches!(u.scheme(), "http" | "https") && u.has_host());
        let Some(base) = base else {
            return Err(CliError::Usage(format!("--server {server:?} is no address such as http://127.0.0.1:8700")));
        };
        let key = match (key_file, std::env::var(KEY)) {
            (Some(path), _) => read_text(path)?,
            (None, Ok(key)) => key,
            (None, Err(_)) => {
                return Err(CliError::Usage(format!(
                    "a service is called with a key: set {KEY}, or name a file with --key-file"
                )));
            }
        };
        let mut key = HeaderValue::try_from(format!("Bearer {}", key.trim()))
            .map_err(|_| CliError::Usage("the API key is not a line of printable ASCII".to_owned()))?;
        key.set_sensitive(true);
        let tls = match base.scheme() {
            "https" => Some(Tls::new(&authorities(authority)?)?),
            _ => None,
        };
        if tls.is_none() && !is_here(&base) {
            super::output::complain(&"the key goes over the network in the clear: use https");
        }
        Ok(Self { base, key, tls })
    }

    /// One exchange.
    pub(super) async fn call(&self, mut request: Request<Body>) -> Result<(StatusCode, Bytes), CliError> {
        let failed =
            |why: &dyn std::fmt::Display| CliError::Unreachable { server: self.base.to_string(), why: why.to_string() };
        let host = self.base.host_str().unwrap_or_default();
        let authority = self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let authority = HeaderValue::try_from(authority).map_err(|e| failed(&e))?;
        request.headers_mut().insert(HOST, authority);
        request.headers_mut().insert(AUTHORIZATION, self.key.clone());
        let exchange = async {
            let stream = self.connect().await?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| failed(&e))?;
            let connection = tokio::spawn(connection);
            let response = sender.send_request(request).await.map_err(|e| failed(&e))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await.map_err(|e| failed(&e))?;
            connection.abort();
            Ok((status, body.to_bytes()))
        };
        tokio::time::timeout(TIMEOUT, exchange)
            .await
            .unwrap_or_else(|_| Err(failed(&format!("no answer in {} s", TIMEOUT.as_secs()))))
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, CliError> {
        let failed =
            |why: &dyn std::fmt::Display| CliError::Unreachable { server: self.base.to_string(), why: why.to_string() };
        let port = self.base.port_or_known_default().unwrap_or(80);
        let (stream, name) = match self.base.host() {
            Some(Host::Domain(name)) => {
                (TcpStream::connect((name, port)).await, ServerName::try_from(name.to_owned()).map_err(|e| failed(&e))?)
            }
            Some(Host::Ipv4(ip)) => (TcpStream::connect((ip, port)).await, std::net::IpAddr::V4(ip).into()),
            Some(Host::Ipv6(ip)) => (TcpStream::connect((ip, port)).await, std::net::IpAddr::V6(ip).into()),
            None => return Err(failed(&"it has no host")),
        };
        let stream = stream.map_err(|e| failed(&e))?;
        match &self.tls {
            Some(tls) => Ok(tls.secure_as(name, stream).await?),
            None => Ok(Box::new(stream)),
        }
    }
}

fn authorities(path: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, CliError> {
    Ok(path
        .map(|path| read_bounded(path, MAX_SMALL_FILE))
        .transpose()?
        .map(|pem| dial::authorities(&pem))
        .transpose()?
        .unwrap_or_default())
}

/// Whether what is sent there leaves the machine.
fn is_here(base: &Url) -> bool {
    match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
