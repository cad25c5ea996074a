//! TLS in front of a server: an authority that is made at start, and certificates that are good or bad on purpose.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A certificate could not be made, or a front not started.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Certificates.
    #[error("the certificate cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// rustls.
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] tokio_rustls::rustls::Error),
    /// The key.
    #[error("the key cannot be used: {0}")]
    Key(&'static str),
    /// The listener.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// Nothing.
    Good,
    /// It ended in 2001.
    Expired,
    /// It begins in 3000.
    NotYetValid,
    /// It is for another name.
    OtherName,
}

/// An authority of its own.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// Makes one.
    ///
    /// # Errors
    /// Where keys or certificates cannot be made.
    pub fn new() -> Result<Self, TlsError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        // Two authorities of one name would pass for each other, with a signature that does not fit.
        let name: String = key.public_key_raw().iter().take(8).map(|b| format!("{b:02x}")).collect();
        params.distinguished_name.push(DnType::CommonName, format!("Test authority {name}"));
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    /// Its certificate, as clients are told to trust it.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Puts TLS in front of a server, for one name or address.
    ///
    /// # Errors
    /// Where the certificate cannot be made or the port not be listened on.
    pub async fn front(&self, backend: SocketAddr, name: &str, what: Certificate) -> Result<TlsFront, TlsError> {
        let name = if what == Certificate::OtherName { "other.example.org" } else { name };
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        if what == Certificate::Expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        if what == Certificate::NotYetValid {
            params.not_before = date_time_ymd(3000, 1, 1);
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(TlsError::Key)?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), backend));
        Ok(TlsFront { address, task })
    }
}

/// A TLS front; it ends when it is dropped.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl TlsFront {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, backend: SocketAddr) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A client that refuses the certificate ends the connection, as it should.
            let Ok(mut secured) = acceptor.accept(stream).await else { return };
            let Ok(mut plain) = TcpStream::connect(backend).await else { return };
            let _ = tokio::io::copy_bidirectional(&mut secured, &mut plain).await;
        });
    }
}
