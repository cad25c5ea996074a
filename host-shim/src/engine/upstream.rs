//! What a guest's request goes to: the network with its policy, or a document at hand.
//!
//! Owns the types of the `http` interface in plain Rust and the trait. Knows nothing of how a request is made.

use std::future::Future;
use std::pin::Pin;

/// What the guest asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Address as the guest wrote it.
    pub url: String,
    /// Header fields.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Whether the credential may be attached.
    pub authenticate: bool,
    /// A tighter bound on the body.
    pub max_body_bytes: Option<u64>,
    /// A tighter bound on time, in milliseconds.
    pub timeout_ms: Option<u32>,
}

/// What it gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// Status.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Decoded body.
    pub body: Vec<u8>,
    /// Address that answered.
    pub final_url: String,
    /// Redirects on the way: status and address.
    pub hops: Vec<(u16, String)>,
    /// The body was processed whole before, by this very component.
    pub unchanged: bool,
}

/// Why it gets nothing; the kinds of `wit/http.wit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
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
    /// Anything else, as a sentence without addresses.
    Other(String),
}

/// The future of a response.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send + 'a>>;

/// Answers requests of one run.
pub trait Upstream: Send + Sync {
    /// Makes one request.
    fn send(&self, request: Request) -> Sending<'_>;
}

/// An upstream that has nothing: for calls that need no request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Upstream for Nowhere {
    fn send(&self, _request: Request) -> Sending<'_> {
        Box::pin(async { Err(Failure::Other("no request may be made here".to_owned())) })
    }
}
