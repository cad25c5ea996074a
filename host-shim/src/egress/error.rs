//! What can go wrong on the way out: the kind that a guest may learn, and the detail that only the operator sees.
//!
//! Owns the split. A [`Failure`]'s `Display` is the operator's sentence; `kind` is all that crosses the sandbox.

use std::net::IpAddr;

use super::address::Range;
use super::coding::CodingError;
use super::redirect::RedirectRefusal;
use super::url::UrlRefusal;

/// The kinds of `wit/http.wit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The address policy refuses.
    AddressNotAllowed,
    /// No resolution.
    Dns,
    /// No acceptable handshake.
    Tls,
    /// No connection, or a broken one.
    Connection,
    /// Time used up.
    Timeout,
    /// Body past its bound.
    ResponseTooLarge,
    /// Too many redirects or a circle.
    TooManyRedirects,
    /// https to http.
    InsecureRedirect,
    /// Not an address to request.
    InvalidUrl,
    /// A coding that was not asked for.
    UnsupportedEncoding,
    /// A request that the host does not make.
    Other,
}

/// The stage at which time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Waiting until other requests to the same host are done.
    Turn,
    /// Resolving the name.
    Dns,
    /// Connecting.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Waiting for the status line and the header fields.
    FirstByte,
    /// Reading the body.
    Body,
    /// Reading a body that comes too slowly.
    Pace,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Turn => "waiting for other requests to the same host",
            Self::Dns => "resolving the name",
            Self::Connect => "connecting",
            Self::Tls => "securing the connection",
            Self::FirstByte => "waiting for the answer",
            Self::Body => "reading the answer",
            Self::Pace => "reading the answer, which comes too slowly",
        })
    }
}

/// What is wrong with a handshake. The guest only learns that there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsProblem {
    /// The certificate is past its time.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// No authority that this host trusts has signed it.
    UnknownIssuer,
    /// It was made for other names.
    NameMismatch,
    /// It was revoked.
    Revoked,
    /// It is wrong in another way.
    Certificate,
    /// The server speaks no TLS, or none that this host speaks.
    Protocol,
}

impl std::fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Expired => "the certificate has expired; tell the publisher",
            Self::NotYetValid => "the certificate is not valid yet; check this machine's clock",
            Self::UnknownIssuer => {
                "no authority that this host trusts has signed the certificate, or the server leaves out one between; \
                 an authority of your own goes into tls_authorities"
            }
            Self::NameMismatch => "the certificate was made for other names; check the address",
            Self::Revoked => "the certificate was revoked; tell the publisher",
            Self::Certificate => "the certificate is not valid; tell the publisher",
            Self::Protocol => "the server speaks no TLS there, or none newer than TLS 1.1; check scheme and port",
        })
    }
}

/// Why a request brought no response. For the operator's eyes; the guest gets [`Failure::kind`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The URL policy refuses the address.
    #[error("the address is refused: {0}")]
    Url(#[from] UrlRefusal),
    /// The address policy refuses an address of the host.
    #[error("address {address} is refused: {} {} ({})", .range.network, .range.name, .range.source)]
    Address {
        /// The address.
        address: IpAddr,
        /// The range it lies in.
        range: &'static Range,
    },
    /// The name was not resolved.
    #[error("the name could not be resolved: {0}")]
    Dns(String),
    /// The handshake failed.
    #[error("no secure connection: {problem} ({detail})")]
    Tls {
        /// What is wrong, and what to do.
        problem: TlsProblem,
        /// What TLS says.
        detail: String,
    },
    /// An authority of the operator's that is none, or a TLS client that cannot be set up.
    #[error("the TLS client cannot be set up: {0}")]
    TlsSetUp(String),
    /// No connection, or a broken one.
    #[error("connection failed: {0}")]
    Connection(String),
    /// Time used up.
    #[error("out of time while {0}")]
    Timeout(Stage),
    /// The body.
    #[error("{0}")]
    Coding(#[from] CodingError),
    /// A redirect.
    #[error("{0}")]
    Redirect(#[from] RedirectRefusal),
    /// A header field that the guest may not set, or that cannot be sent.
    #[error("header field {0} is the host's own or cannot be sent")]
    Header(String),
    /// The host asked for rest; nothing was sent.
    #[error("{0} asked for fewer requests; it is left alone for now and nothing was sent")]
    Resting(String),
    /// A request beyond the bound of one run.
    #[error("more requests than one run may make")]
    TooManyRequests,
}

impl Failure {
    /// The rule that refuses, by a stable name; `resolution` and `exchange` where no policy does.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Url(refusal) => refusal.rule(),
            Self::Address { .. } => "address",
            Self::Redirect(_) => "redirect",
            Self::Dns(_) | Self::Timeout(Stage::Dns) => "resolution",
            _ => "exchange",
        }
    }

    /// What an operator configures in the pin where the address is meant; `None` where nothing opens it.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Url(UrlRefusal::LocalName) => {
                Some("if it is meant: name the host in allow_hosts, and its network in allow_networks".to_owned())
            }
            Self::Url(UrlRefusal::Port) => Some("if it is meant: name the port in allow_ports".to_owned()),
            Self::Address { address, .. } => {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                Some(format!("if it is meant: \"{address}/{bits}\", or its network, in allow_networks"))
            }
            _ => None,
        }
    }

    /// The kind that the guest learns.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            // A name that can only be local, and a port where no feeds are, are matters of policy, not of spelling.
            Self::Url(UrlRefusal::LocalName | UrlRefusal::Port | UrlRefusal::NumericHost) | Self::Address { .. } => {
                Kind::AddressNotAllowed
            }
            Self::Url(_) | Self::Redirect(RedirectRefusal::Location) => Kind::InvalidUrl,
            Self::Dns(_) | Self::Timeout(Stage::Dns) => Kind::Dns,
            Self::Tls { .. } | Self::TlsSetUp(_) => Kind::Tls,
            Self::Connection(_) | Self::Coding(CodingError::Damaged) => Kind::Connection,
            Self::Timeout(_) => Kind::Timeout,
            Self::Coding(CodingError::TooLarge | CodingError::Bomb) => Kind::ResponseTooLarge,
            Self::Coding(CodingError::Unsupported) => Kind::UnsupportedEncoding,
            Self::Redirect(RedirectRefusal::TooMany | RedirectRefusal::Loop) => Kind::TooManyRedirects,
            Self::Redirect(RedirectRefusal::Insecure) => Kind::InsecureRedirect,
            Self::Header(_) | Self::TooManyRequests | Self::Resting(_) => Kind::Other,
        }
    }
}
