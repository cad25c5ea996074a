//! Connections: to judged addresses only, in turn, secured where the target says so.
//!
//! Owns the race of addresses (RFC 8305) and the TLS client. There is no look-up behind this point.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error::{Failure, TlsProblem};
use super::resolver::Judged;
use super::url::{Target, TargetHost};

/// Time before the next address is tried beside one that does not answer (RFC 8305, section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// A connection, secured or not.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects to the first of the addresses that answers.
///
/// # Errors
/// The last failure, when none answers.
pub async fn connect(judged: &Judged) -> Result<TcpStream, Failure> {
    let mut attempts: JoinSet<io::Result<TcpStream>> = JoinSet::new();
    let mut waiting = judged.addresses().iter().copied();
    let mut last = io::Error::other("no address to connect to");
    let dial = |attempts: &mut JoinSet<_>, address: SocketAddr| {
        attempts.spawn(TcpStream::connect(address));
    };
    if let Some(first) = waiting.next() {
        dial(&mut attempts, first);
    }
    while !attempts.is_empty() {
        tokio::select! {
            Some(joined) = attempts.join_next() => match joined {
                Ok(Ok(stream)) => {
                    // Small requests should not wait for each other; a failure here costs only time.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => {
                    last = error;
                    if let Some(next) = waiting.next() {
                        dial(&mut attempts, next);
                    }
                }
                Err(error) => last = io::Error::other(error),
            },
            () = tokio::time::sleep(ATTEMPT_DELAY), if waiting.len() > 0 => {
                if let Some(next) = waiting.next() {
                    dial(&mut attempts, next);
                }
            }
        }
    }
    Err(Failure::Connection(last.kind().to_string()))
}

/// A handshake that TLS refused, or a connection that broke meanwhile.
fn handshake_failure(error: &io::Error) -> Failure {
    match error.get_ref().and_then(|e| e.downcast_ref::<tokio_rustls::rustls::Error>()) {
        Some(tls) => Failure::Tls { problem: problem(tls), detail: tls.to_string() },
        None => Failure::Connection(error.kind().to_string()),
    }
}

/// What a refusal of rustls means to an operator.
fn problem(error: &tokio_rustls::rustls::Error) -> TlsProblem {
    use tokio_rustls::rustls::{CertificateError as Certificate, Error};
    match error {
        Error::InvalidCertificate(certificate) => match certificate {
            Certificate::Expired | Certificate::ExpiredContext { .. } => TlsProblem::Expired,
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => TlsProblem::NotYetValid,
            Certificate::UnknownIssuer => TlsProblem::UnknownIssuer,
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => TlsProblem::NameMismatch,
            Certificate::Revoked => TlsProblem::Revoked,
            _ => TlsProblem::Certificate,
        },
        _ => TlsProblem::Protocol,
    }
}

/// The TLS client. There is no way to turn verification off.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// The certificates of a PEM text: an operator's own authorities.
///
/// # Errors
/// Where there is none, or one cannot be read.
pub fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(list) if list.is_empty() => Err(Failure::TlsSetUp("the file has no certificate in PEM form".to_owned())),
        Ok(list) => Ok(list),
        Err(e) => Err(Failure::TlsSetUp(e.to_string())),
    }
}

impl Tls {
    /// A client that trusts the authorities of the machine, else the bundled ones, and those given.
    ///
    /// # Errors
    /// Where the provider cannot be set up or an authority given is none.
    pub fn new(authorities: &[CertificateDer<'static>]) -> Result<Self, Failure> {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        for authority in authorities {
            roots.add(authority.clone()).map_err(|e| Failure::TlsSetUp(e.to_string()))?;
        }
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Failure::TlsSetUp(e.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)) })
    }

    /// Secures a connection for the target's host name.
    ///
    /// # Errors
    /// What the handshake says.
    pub async fn secure(&self, target: &Target, stream: TcpStream) -> Result<Box<dyn Stream>, Failure> {
        let name = match target.host() {
            TargetHost::Name(name) => {
                let unusable =
                    |e: InvalidDnsNameError| Failure::Tls { problem: TlsProblem::NameMismatch, detail: e.to_string() };
                ServerName::try_from(name.clone()).map_err(unusable)?
            }
            TargetHost::Address(address) => ServerName::from(*address),
        };
        self.secure_as(name, stream).await
    }

    /// Secures a connection for a name.
    ///
    /// # Errors
    /// What the handshake says.
    pub async fn secure_as(&self, name: ServerName<'static>, stream: TcpStream) -> Result<Box<dyn Stream>, Failure> {
        let secured = self.connector.connect(name, stream).await.map_err(|e| handshake_failure(&e))?;
        Ok(Box::new(secured))
    }
}
