//! The client: one request with its redirects, under every bound.
//!
//! Owns the loop over hops and the exchange over a connection that was dialed here. Each hop is judged afresh before a
//! byte is sent: the written address, then every resolved one. No proxy, no cookies, no pool, no cache, no Alt-Svc.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout, timeout_at};

use super::coding::{ACCEPT_ENCODING, Decoder};
use super::credential::Credential;
use super::dial::{self, Stream, Tls};
use super::error::{Failure, Stage};
use super::redirect::{Chain, Next};
use super::resolver::{self, Judged, Resolve};
pub use super::rules::Rules;
use super::turns::{Politeness, Turns};
use super::url::{self, Target};

/// Bytes of a decoded body: 10 MiB, as Quivr has it.
pub const MAX_BODY_BYTES: usize = 10 * 1_024 * 1_024;

/// How long each part of a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// A whole request with all its hops, from its first turn on.
    pub request: Duration,
    /// The wait for a turn at the host.
    pub turn: Duration,
    /// Resolving a name: two attempts of two seconds, and some air.
    pub dns: Duration,
    /// Connecting, to any of the addresses.
    pub connect: Duration,
    /// The TLS handshake.
    pub tls: Duration,
    /// From the request to the header fields of the answer: slow generators of feeds need most of it.
    pub first_byte: Duration,
    /// Time after which a body must have kept its pace.
    pub pace_grace: Duration,
    /// Bytes a second that a body must bring on average then. A modem of 1995 was faster.
    pub pace: u32,
}

impl Timings {
    /// What holds in the product.
    pub const DEFAULT: Self = Self {
        request: Duration::from_secs(20),
        turn: Duration::from_secs(60),
        dns: Duration::from_secs(5),
        connect: Duration::from_secs(6),
        tls: Duration::from_secs(6),
        first_byte: Duration::from_secs(15),
        pace_grace: Duration::from_secs(4),
        pace: 1_024,
    };
}

/// Header fields of a response. Real servers send some thirty.
const MAX_HEADERS: usize = 128;

/// Bytes of the header section of a response, and of what is buffered.
const MAX_HEADER_BYTES: usize = 64 * 1_024;

/// Bytes of one header value that the guest sets; validators may be long.
const MAX_VALUE_BYTES: usize = 8 * 1_024;

/// Names that the host sets by itself or that change how a message is read.
pub(super) const OWN_HEADERS: &[&str] = &[
    "host",
    "user-agent",
    "authorization",
    "cookie",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "expect",
    "accept-encoding",
    "range",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "referer",
    "origin",
];

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Address as written.
    pub url: String,
    /// Header fields of the guest.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The credential to attach, if any.
    pub credential: Option<Credential>,
    /// A tighter bound on the decoded body.
    pub max_body_bytes: Option<u64>,
    /// A tighter bound on time.
    pub timeout: Option<Duration>,
    /// Says whether a host is to be left alone; asked before each hop.
    pub resting: Option<Resting>,
}

/// Whether a host asked for rest.
#[derive(Clone)]
pub struct Resting(pub Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resting")
    }
}

/// A redirect that was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Status.
    pub status: u16,
    /// Address that answered, without the credential's query parameters.
    pub url: String,
}

/// Where the time of the last hop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stages {
    /// Waiting for other requests to the host.
    pub turn: Option<Duration>,
    /// Resolving the name.
    pub resolve: Option<Duration>,
    /// Connecting.
    pub connect: Option<Duration>,
    /// The TLS handshake.
    pub tls: Option<Duration>,
    /// Until the header fields were there.
    pub first_byte: Option<Duration>,
    /// Reading the body.
    pub body: Option<Duration>,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Header fields without Set-Cookie.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Decoded body, complete.
    pub body: Vec<u8>,
    /// Address that answered.
    pub final_url: String,
    /// Redirects on the way.
    pub hops: Vec<Hop>,
    /// Bytes of the body on the wire.
    pub wire_bytes: usize,
    /// Where the time of the last hop went.
    pub stages: Stages,
}

/// Makes requests. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    resolver: Arc<dyn Resolve>,
    tls: Tls,
    user_agent: HeaderValue,
    timings: Timings,
    turns: Turns,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("user_agent", &self.user_agent).finish_non_exhaustive()
    }
}

impl Client {
    /// A client with its resolver, its TLS client and the User-Agent of this host.
    ///
    /// # Errors
    /// Where the User-Agent is blank or cannot be sent.
    pub fn new(resolver: Arc<dyn Resolve>, tls: Tls, user_agent: &str) -> Result<Self, Failure> {
        let value = HeaderValue::from_str(user_agent.trim())
            .ok()
            .filter(|v| !v.is_empty())
            .ok_or_else(|| Failure::Header("user-agent".to_owned()))?;
        Ok(Self { resolver, tls, user_agent: value, timings: Timings::DEFAULT, turns: Turns::new(Politeness::ALONE) })
    }

    /// The same client with other times.
    #[must_use]
    pub fn with_timings(self, timings: Timings) -> Self {
        Self { timings, ..self }
    }

    /// The same client, which spares hosts.
    #[must_use]
    pub fn with_politeness(self, politeness: Politeness) -> Self {
        Self { turns: Turns::new(politeness), ..self }
    }

    /// The addresses of a target, judged under rules.
    ///
    /// # Errors
    /// What refuses them.
    pub async fn resolve(&self, target: &Target, rules: &Rules) -> Result<Judged, Failure> {
        timeout(self.timings.dns, resolver::resolve(&*self.resolver, target, rules))
            .await
            .map_err(|_| Failure::Timeout(Stage::Dns))?
    }

    /// Makes one request and follows its redirects.
    ///
    /// # Errors
    /// Why there is no response; never partial.
    pub async fn send(&self, request: &Request, rules: &Rules) -> Result<Response, Failure> {
        self.send_along(request, rules, &mut Vec::new()).await
    }

    /// The same; `trail` is told each address before it is judged, without query and user-info, so that an operator
    /// learns at which hop a request failed.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_along(
        &self,
        request: &Request,
        rules: &Rules,
        trail: &mut Vec<String>,
    ) -> Result<Response, Failure> {
        let bound =
            request.max_body_bytes.and_then(|b| usize::try_from(b).ok()).unwrap_or(MAX_BODY_BYTES).min(MAX_BODY_BYTES);
        let headers = guest_headers(&request.headers)?;
        trail.push(url::written_for_log(&request.url));
        let mut target = url::judge(&request.url, rules)?;
        let mut chain = Chain::new(target.url().clone());
        let mut hops = Vec::new();
        let rested = |target: &Target| match &request.resting {
            Some(Resting(ask)) if ask(target.host_text()) => Err(Failure::Resting(target.host_text().to_owned())),
            _ => Ok(()),
        };
        rested(&target)?;
        let waited = Instant::now();
        let mut turn = timeout(self.timings.turn, self.turns.at(target.host_text(), false))
            .await
            .map_err(|_| Failure::Timeout(Stage::Turn))?;
        let waited = waited.elapsed();
        // The wait for the first turn is the host's own doing and does not count.
        let deadline = Instant::now() + request.timeout.unwrap_or(self.timings.request).min(self.timings.request);
        loop {
            let hop = self.exchange(&target, &chain, request, &headers, rules, bound, deadline).await?;
            drop(turn);
            // A Location that is not text is no address; the backslash makes the policy say so.
            let location = hop.headers.get(hyper::header::LOCATION);
            let location = location.map(|v| std::str::from_utf8(v.as_bytes()).unwrap_or("\\"));
            match chain.next(hop.status, location)? {
                Next::Final => {
                    let answer = Response {
                        status: hop.status,
                        headers: visible_headers(&hop.headers),
                        body: hop.body,
                        final_url: target.url().to_string(),
                        hops,
                        wire_bytes: hop.wire_bytes,
                        stages: Stages { turn: Some(waited), ..hop.stages },
                    };
                    return Ok(match &request.credential {
                        Some(credential) => without_secrets(answer, credential),
                        None => answer,
                    });
                }
                Next::Follow(location) => {
                    trail.push(url::written_for_log(&location));
                    let next = url::judge(&location, rules)?;
                    chain.follow(next.url())?;
                    hops.push(Hop { status: hop.status, url: target.url().to_string() });
                    let follows_itself = next.host_text() == target.host_text();
                    target = next;
                    rested(&target)?;
                    turn = timeout_at(deadline, self.turns.at(target.host_text(), follows_itself))
                        .await
                        .map_err(|_| Failure::Timeout(Stage::Turn))?;
                }
            }
        }
    }

    /// One request to one address; the body of a redirect is not read.
    #[expect(clippy::too_many_arguments, reason = "the state of one hop, used once")]
    async fn exchange(
        &self,
        target: &Target,
        chain: &Chain,
        request: &Request,
        headers: &HeaderMap,
        rules: &Rules,
        bound: usize,
        deadline: Instant,
    ) -> Result<HopAnswer, Failure> {
        let within = |stage| move |_| Failure::Timeout(stage);
        let part = |time| deadline.min(Instant::now() + time);
        let mut stages = Stages::default();
        let mut since = Instant::now();
        let mut lap = move || {
            let now = Instant::now();
            Some(now - std::mem::replace(&mut since, now))
        };
        let judged = timeout_at(deadline, self.resolve(target, rules)).await.map_err(within(Stage::Dns))??;
        stages.resolve = lap();
        let tcp =
            timeout_at(part(self.timings.connect), dial::connect(&judged)).await.map_err(within(Stage::Connect))??;
        stages.connect = lap();
        let stream: Box<dyn Stream> = if target.is_https() {
            let secured = timeout_at(part(self.timings.tls), self.tls.secure(target, tcp)).await;
            let secured = secured.map_err(within(Stage::Tls))??;
            stages.tls = lap();
            secured
        } else {
            Box::new(tcp)
        };
        let message = self.message(target, chain, request, headers)?;
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|e| connection_failure(&e))?;
        // The connection ends with this exchange, however it ends.
        let driver = AbortOnDrop(tokio::spawn(connection));
        let answer = timeout_at(part(self.timings.first_byte), sender.send_request(message))
            .await
            .map_err(within(Stage::FirstByte))?
            .map_err(|e| connection_failure(&e))?;
        stages.first_byte = lap();
        let (parts, body) = answer.into_parts();
        let status = parts.status.as_u16();
        let redirects =
            matches!(status, 301 | 302 | 303 | 307 | 308) && parts.headers.contains_key(hyper::header::LOCATION);
        let mut wire_bytes = 0;
        let body = if redirects || status == 304 {
            Vec::new()
        } else {
            let encoding = parts.headers.get(hyper::header::CONTENT_ENCODING).map(|v| v.to_str().unwrap_or("?"));
            let decoder = Decoder::new(encoding, bound)?;
            let read = read_body(body, decoder, self.timings);
            let decoded = timeout_at(deadline, read).await.map_err(within(Stage::Body))??;
            wire_bytes = decoded.1;
            stages.body = lap();
            decoded.0
        };
        drop(driver);
        Ok(HopAnswer { status, headers: parts.headers, body, wire_bytes, stages })
    }

    fn message(
        &self,
        target: &Target,
        chain: &Chain,
        request: &Request,
        headers: &HeaderMap,
    ) -> Result<hyper::Request<Empty<Bytes>>, Failure> {
        // A credential in the query goes to the first address only and never follows a redirect.
        let credential = request.credential.as_ref().filter(|_| chain.keeps_credential());
        let url = match credential {
            Some(credential) if chain.is_first() => credential.with_query(target.url()),
            _ => target.url().clone(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let authority = match url.port() {
            Some(port) => format!("{}:{port}", target.host_text()),
            None => target.host_text().to_owned(),
        };
        let mut message =
            hyper::Request::get(path).body(Empty::new()).map_err(|_| Failure::Url(url::UrlRefusal::Characters))?;
        let fields = message.headers_mut();
        let host = HeaderValue::from_str(&authority).map_err(|_| Failure::Url(url::UrlRefusal::Host))?;
        fields.insert(hyper::header::HOST, host);
        fields.insert(hyper::header::USER_AGENT, self.user_agent.clone());
        fields.insert(hyper::header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPT_ENCODING));
        fields.insert(hyper::header::CONNECTION, HeaderValue::from_static("close"));
        for (name, value) in headers {
            fields.append(name.clone(), value.clone());
        }
        for (name, value) in credential.into_iter().flat_map(Credential::header_fields) {
            let bad = || Failure::Header(name.to_owned());
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| bad())?;
            value.set_sensitive(true);
            fields.insert(name, value);
        }
        Ok(message)
    }
}

struct HopAnswer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    wire_bytes: usize,
    stages: Stages,
}

/// Ends a task when the exchange that needed it is over.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn connection_failure(error: &hyper::Error) -> Failure {
    let what = if error.is_incomplete_message() {
        "the answer ended too early"
    } else if error.is_parse() {
        "the answer is not HTTP, or its header fields are too many or too long"
    } else {
        "the connection broke"
    };
    Failure::Connection(what.to_owned())
}

/// Reads a whole body; hyper reports one that is shorter than announced as an error. A body that falls behind its pace
/// is given up: it would hold a turn and a slot of the pool for nothing.
async fn read_body(
    mut body: hyper::body::Incoming,
    mut decoder: Decoder,
    timings: Timings,
) -> Result<(Vec<u8>, usize), Failure> {
    let started = Instant::now();
    loop {
        // By this time the next bytes must have come: what is here pays for so many seconds.
        let paid = decoder.received() as f64 / f64::from(timings.pace.max(1));
        let due = started + timings.pace_grace + Duration::from_secs_f64(paid.min(MAX_BODY_BYTES as f64));
        let next = timeout_at(due, body.frame()).await.map_err(|_| Failure::Timeout(Stage::Pace))?;
        let Some(frame) = next else { break };
        let frame = frame.map_err(|e| connection_failure(&e))?;
        if let Some(data) = frame.data_ref() {
            decoder.push(data)?;
        }
    }
    let received = decoder.received();
    Ok((decoder.finish()?, received))
}

/// Whether a field is the host's to set, by its name in lower case.
pub(crate) fn is_own(name: &str) -> bool {
    OWN_HEADERS.contains(&name) || name.starts_with("proxy-") || name.starts_with("sec-")
}

/// The guest's header fields, without any that is the host's own.
pub(crate) fn guest_headers(headers: &[(String, Vec<u8>)]) -> Result<HeaderMap, Failure> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        let own = is_own(&lower);
        let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value));
        match parsed {
            (Ok(name), Ok(value)) if !own && value.len() <= MAX_VALUE_BYTES && map.len() < MAX_HEADERS => {
                map.append(name, value);
            }
            _ => return Err(Failure::Header(lower.chars().filter(char::is_ascii_graphic).take(64).collect())),
        }
    }
    Ok(map)
}

/// A server may send the secret of a query back in an address; nobody behind the host is to see it.
fn without_secrets(mut answer: Response, credential: &Credential) -> Response {
    answer.final_url = credential.redact(&answer.final_url);
    for hop in &mut answer.hops {
        hop.url = credential.redact(&hop.url);
    }
    for (_, value) in &mut answer.headers {
        if let Ok(text) = std::str::from_utf8(value) {
            *value = credential.redact(text).into_bytes();
        }
    }
    answer
}

/// What the guest may see of a response.
fn visible_headers(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    headers
        .iter()
        .filter(|(name, _)| {
            !matches!(name.as_str(), "set-cookie" | "set-cookie2" | "www-authenticate" | "proxy-authenticate")
        })
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_that_are_the_hosts_own_are_refused() {
        for name in [
            "Host",
            "user-agent",
            "AUTHORIZATION",
            "Proxy-Authorization",
            "proxy-connection",
            "Cookie",
            "Connection",
            "Transfer-Encoding",
            "TE",
            "Upgrade",
            "Content-Length",
            "Accept-Encoding",
            "bad name",
            "",
        ] {
            assert!(guest_headers(&[(name.to_owned(), b"x".to_vec())]).is_err(), "{name}");
        }
        for name in ["Accept", "If-None-Match", "If-Modified-Since", "A-IM"] {
            assert!(guest_headers(&[(name.to_owned(), b"x".to_vec())]).is_ok(), "{name}");
        }
        assert!(guest_headers(&[("Accept".to_owned(), b"a\r\nHost: evil".to_vec())]).is_err());
    }
}
