//! The contract in plain Rust: what comes into a call and what leaves it.
//!
//! Owns the types of `wit/` as the stages use them, so that the stages build and are tested without a
//! sandbox. Only `component` knows the generated bindings. Must not contain rules.

/// One header field; names are compared without case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Field name.
    pub name: String,
    /// Field value, as on the wire.
    pub value: Vec<u8>,
}

/// A request that the host is asked to make; the method is GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Absolute address.
    pub url: String,
    /// Header fields.
    pub headers: Vec<Header>,
    /// Whether the host may attach the credential.
    pub authenticate: bool,
}

/// A redirect that the host followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Status of the redirecting response.
    pub status: u16,
    /// Address that answered with it.
    pub url: String,
}

/// The last response of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<Header>,
    /// Decoded body, complete.
    pub body: Vec<u8>,
    /// Address that answered.
    pub final_url: String,
    /// Redirects on the way.
    pub hops: Vec<Hop>,
    /// The body equals the last one that this very component processed whole.
    pub unchanged: bool,
}

impl HttpResponse {
    /// The first field of that name, where it is valid UTF-8, without surrounding white space.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(&field.value).ok().map(str::trim)
    }
}

/// Why the host has no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpFailure {
    /// The address policy refused.
    AddressNotAllowed,
    /// The name was not resolved.
    Dns,
    /// The handshake failed.
    Tls,
    /// The connection failed or broke.
    Connection,
    /// Time was used up.
    Timeout,
    /// The body passed its bound.
    ResponseTooLarge,
    /// Too many redirects.
    TooManyRedirects,
    /// https to http.
    InsecureRedirect,
    /// Not an address that may be requested.
    InvalidUrl,
    /// A content coding that was not asked for.
    UnsupportedEncoding,
    /// Anything else.
    Other(String),
}

/// The host's `http` interface.
pub trait Http {
    /// Makes one request.
    ///
    /// # Errors
    /// The kind of failure; it carries no address and no detail.
    fn send(&mut self, request: &HttpRequest) -> Result<HttpResponse, HttpFailure>;
}

/// What a call is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Connector instance.
    pub instance_id: String,
    /// Kind of the instance.
    pub kind: String,
    /// Configuration of the pin, JSON.
    pub configuration: String,
    /// Config of the instance, JSON.
    pub config: String,
    /// What the last page returned.
    pub checkpoint: Option<String>,
    /// The host's clock, RFC 3339 in UTC.
    pub now: String,
    /// 0 for the first page of a run.
    pub page_in_run: u32,
    /// Whether the host holds a credential.
    pub has_credential: bool,
    /// One request without validators is wanted.
    pub unconditional: bool,
}

/// A piece of an item's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Name, unique in the item.
    pub key: &'static str,
    /// What it is for.
    pub role: &'static str,
    /// The part that this one belongs to.
    pub parent_key: Option<&'static str>,
    /// The text, not empty.
    pub text: String,
}

/// Structured data of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Namespace of the descriptor.
    pub namespace: &'static str,
    /// Schema version.
    pub schema_version: &'static str,
    /// JSON object.
    pub data: String,
}

/// A new or changed item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Identity within the source namespace.
    pub record_key: String,
    /// Hash of the item's own fields.
    pub revision: String,
    /// Key before the identity policy moved it.
    pub previous_key: Option<String>,
    /// Text.
    pub parts: Vec<Part>,
    /// Structured data.
    pub extensions: Vec<Extension>,
}

/// An item that the document lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowEntry {
    /// Record key.
    pub record_key: String,
    /// Place in document order, from 0.
    pub position: u32,
}

/// A day of the week in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// What the source said of its pace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// RSS `ttl`, in seconds.
    pub ttl_seconds: Option<u64>,
    /// `max-age` less `Age`, in seconds.
    pub max_age_seconds: Option<u64>,
    /// `Expires`, RFC 3339.
    pub expires: Option<String>,
    /// Period divided by frequency, in seconds.
    pub update_period_seconds: Option<u64>,
    /// Hours of the day, 0 to 23.
    pub skip_hours: Vec<u8>,
    /// Days of the week.
    pub skip_days: Vec<Weekday>,
    /// `Retry-After`, in seconds.
    pub retry_after_seconds: Option<u64>,
}

/// One page of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// New and changed items.
    pub items: Vec<Item>,
    /// What the next call gets.
    pub checkpoint: String,
    /// Another page follows.
    pub more: bool,
    /// Too early; nothing was done.
    pub not_due: bool,
    /// Requests made.
    pub reads: u32,
    /// What the document lists.
    pub window: Option<Vec<WindowEntry>>,
    /// What the source said of its pace.
    pub hints: Hints,
    /// JSON object.
    pub diagnostics: String,
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The source refuses this reader.
    Access,
    /// It may pass.
    Transient,
    /// The source or the configuration is at fault.
    Source,
}

/// Why a call gave no page. The message never quotes a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Class.
    pub class: FailureClass,
    /// Stable code.
    pub code: &'static str,
    /// A sentence that says what to do.
    pub message: String,
    /// When to ask again, in seconds, 1 to 86,400.
    pub retry_after_seconds: Option<u32>,
}

impl Failure {
    /// A failure of class `source`.
    #[must_use]
    pub fn source(code: &'static str, message: impl Into<String>) -> Self {
        Self { class: FailureClass::Source, code, message: message.into(), retry_after_seconds: None }
    }

    /// A failure of class `access`.
    #[must_use]
    pub fn access(code: &'static str, message: impl Into<String>) -> Self {
        Self { class: FailureClass::Access, code, message: message.into(), retry_after_seconds: None }
    }

    /// A failure of class `transient`.
    #[must_use]
    pub fn transient(code: &'static str, message: impl Into<String>) -> Self {
        Self { class: FailureClass::Transient, code, message: message.into(), retry_after_seconds: None }
    }
}
