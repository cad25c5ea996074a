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
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Dns => "resolving the name",
            Self::Connect => "connecting",
            Self::Tls => "securing the connection",
            Self::FirstByte => "waiting for the answer",
            Self::Body => "reading the answer",
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
    #[error("no secure connection: {0}")]
    Tls(String),
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
    /// A request beyond the bound of one run.
    #[error("more requests than one run may make")]
    TooManyRequests,
}

impl Failure {
    /// The kind that the guest learns.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            // A name that can only be local, and a port where no feeds are, are matters of policy, not of spelling.
            Self::Url(UrlRefusal::LocalName | UrlRefusal::Port | UrlRefusal::NumericHost) | Self::Address { .. } => {
                Kind::AddressNotAllowed
            }
            Self::Url(_) | Self::Redirect(RedirectRefusal::Location) => Kind::InvalidUrl,
            Self::Dns(_) => Kind::Dns,
            Self::Tls(_) => Kind::Tls,
            Self::Connection(_) | Self::Coding(CodingError::Damaged) => Kind::Connection,
            Self::Timeout(_) => Kind::Timeout,
            Self::Coding(CodingError::TooLarge) => Kind::ResponseTooLarge,
            Self::Coding(CodingError::Unsupported) => Kind::UnsupportedEncoding,
            Self::Redirect(RedirectRefusal::TooMany | RedirectRefusal::Loop) => Kind::TooManyRedirects,
            Self::Redirect(RedirectRefusal::Insecure) => Kind::InsecureRedirect,
            Self::Header(_) | Self::TooManyRequests => Kind::Other,
        }
    }
}
