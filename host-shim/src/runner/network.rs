//! Requests of one run over the network.
//!
//! Owns what a run remembers of its requests: the 200 that a repeated request is answered from, the hash of the body,
//! and the report for the operator. The guest learns kinds; the report has the detail.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::egress::client::{self, Client, Rules, Stages};
use crate::egress::credential::Credential;
use crate::egress::error::{Failure, Kind};
use crate::engine::pin::Digest;
use crate::engine::upstream::{self, Response, Sending, Upstream};

/// Requests of one run that reach the network; a connector needs one.
const MAX_REQUESTS: u32 = 8;

/// What became of the last request of a run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Requests made.
    pub requests: u32,
    /// Status of the last response.
    pub status: Option<u16>,
    /// Where it came from, as the guest saw it.
    pub final_url: Option<String>,
    /// Redirects of the last request.
    pub hops: Vec<(u16, String)>,
    /// `Retry-After` of the last response, whatever its status.
    pub retry_after: Option<Duration>,
    /// The address that was asked for is one that moved, so its place now was asked.
    pub was_moved: bool,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Where the time of the last answered request went.
    pub stages: Stages,
    /// Hash of the last whole body.
    pub body: Option<Digest>,
    /// Why there was no response, for the operator.
    pub failure: Option<Failure>,
    /// The addresses of the failed request in turn, without query and user-info; the last is where it failed.
    pub trail: Vec<String>,
}

impl Report {
    /// Where a redirect that is meant to last leads, followed hop by hop as long as each is one (RFC 9110, 15.4.2 and
    /// 15.4.9).
    #[must_use]
    pub fn moved_to(&self) -> Option<&str> {
        let lasting = self.hops.iter().take_while(|(status, _)| matches!(status, 301 | 308)).count();
        if lasting == 0 {
            return None;
        }
        self.hops.get(lasting).map(|(_, url)| url.as_str()).or(self.final_url.as_deref())
    }

    /// The host that answered last.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        let url = url::Url::parse(self.final_url.as_deref()?).ok()?;
        url.host_str().map(str::to_owned)
    }

    /// Why there was no response, and at which hop, for the operator.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        Some(match self.trail.as_slice() {
            [] => failure.to_string(),
            [only] => format!("{only}: {failure}"),
            [.., last] => format!("redirect {}, {last}: {failure}", self.trail.len() - 1),
        })
    }
}

/// An address that moved for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// As it is asked for.
    pub from: String,
    /// Where it is now.
    pub to: String,
}

/// A wait beyond that is a wrong clock's.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date, counted from this clock and from the response's own
/// `Date`, whichever can be meant: with one clock wrong it is over, or days away. Nothing where it is unreadable or over.
fn retry_after(headers: &[(String, Vec<u8>)], now: SystemTime) -> Option<Duration> {
    let field = |name: &str| {
        let value = headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_slice())?;
        std::str::from_utf8(value).ok().map(str::trim)
    };
    let value = field("retry-after")?;
    let wait = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit name a time beyond every bound anyway.
        Duration::from_secs(value.parse().unwrap_or(u64::from(u32::MAX)))
    } else {
        let at = httpdate::parse_http_date(value).ok()?;
        let answered = field("date").and_then(|d| httpdate::parse_http_date(d).ok());
        let waits = [Some(now), answered].into_iter().flatten().filter_map(|from| at.duration_since(from).ok());
        let waits: Vec<Duration> = waits.filter(|wait| !wait.is_zero()).collect();
        let plausible = waits.iter().copied().filter(|wait| *wait <= LONGEST_WAIT).max();
        plausible.or_else(|| waits.into_iter().min())?
    };
    Some(wait).filter(|w| !w.is_zero())
}

/// The network as one run sees it.
#[derive(Debug)]
pub struct Network {
    client: Client,
    rules: Rules,
    credential: Option<Credential>,
    last_body: Option<Digest>,
    resting: Option<client::Resting>,
    moved: Option<Moved>,
    held: Mutex<HashMap<(String, bool), Response>>,
    report: Mutex<Report>,
}

impl Network {
    /// The network of one run. `last_body` is the hash of the body that this component last processed whole.
    #[must_use]
    pub fn new(client: Client, rules: Rules, credential: Option<Credential>, last_body: Option<Digest>) -> Self {
        Self {
            client,
            rules,
            credential,
            last_body,
            resting: None,
            moved: None,
            held: Mutex::default(),
            report: Mutex::default(),
        }
    }

    /// The same network, in which hosts that asked for rest get it.
    #[must_use]
    pub fn leaving_alone(self, resting: client::Resting) -> Self {
        Self { resting: Some(resting), ..self }
    }

    /// The same network, in which an address that moved for good is asked for where it is now. The secret was given for
    /// the old place, so with one nothing is moved to another host.
    #[must_use]
    pub fn moving(self, moved: Moved) -> Self {
        let host = |url: &str| url::Url::parse(url).ok().map(|u| u.origin());
        let stays = host(&moved.from).is_some_and(|from| host(&moved.to) == Some(from));
        let moved = Some(moved).filter(|_| self.credential.is_none() || stays);
        let report = Mutex::new(Report { was_moved: moved.is_some(), ..Report::default() });
        Self { moved, report, ..self }
    }

    /// What became of the requests so far.
    #[must_use]
    pub fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn request(&self, request: upstream::Request) -> Result<Response, upstream::Failure> {
        let key = (request.url.clone(), request.authenticate);
        if let Some(held) = self.held.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(held.clone());
        }
        if self.report().requests >= MAX_REQUESTS {
            return Err(self.failed(Failure::TooManyRequests, Vec::new()));
        }
        let url = match &self.moved {
            Some(moved) if moved.from == request.url => moved.to.clone(),
            _ => request.url,
        };
        let wanted = client::Request {
            url,
            headers: request.headers,
            credential: self.credential.clone().filter(|_| request.authenticate),
            max_body_bytes: request.max_body_bytes,
            timeout: request.timeout_ms.map(|ms| Duration::from_millis(u64::from(ms))),
            resting: self.resting.clone(),
        };
        let mut trail = Vec::new();
        let sent = self.client.send_along(&wanted, &self.rules, &mut trail).await;
        let answer = sent.map_err(|e| self.failed(e, trail))?;
        let body = (answer.status == 200).then(|| Digest::of(&answer.body));
        let response = Response {
            status: answer.status,
            headers: answer.headers,
            unchanged: body.is_some() && body == self.last_body,
            body: answer.body,
            final_url: answer.final_url,
            hops: answer.hops.into_iter().map(|h| (h.status, h.url)).collect(),
        };
        {
            let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
            report.requests += 1;
            report.status = Some(response.status);
            report.final_url = Some(response.final_url.clone());
            report.hops.clone_from(&response.hops);
            report.retry_after = retry_after(&response.headers, SystemTime::now());
            report.wire_bytes += answer.wire_bytes as u64;
            report.stages = answer.stages;
            report.body = body.or(report.body);
        }
        if response.status == 200 {
            // Pages after the first read the same document: its publisher is asked once.
            self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(key, response.clone());
        }
        Ok(response)
    }

    /// Keeps the detail for the operator; only the kind goes on to the guest.
    fn failed(&self, failure: Failure, trail: Vec<String>) -> upstream::Failure {
        let kind = kind(&failure);
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.requests += 1;
        report.failure = Some(failure);
        report.trail = trail;
        if let Some(detail) = report.detail() {
            // The trail names the feed, so the line is for whoever asks for it.
            tracing::debug!(detail, "a request brought no response");
        }
        kind
    }
}

impl Upstream for Network {
    fn send(&self, request: upstream::Request) -> Sending<'_> {
        Box::pin(self.request(request))
    }
}

/// The kind of a failure, which is all that the guest learns.
fn kind(failure: &Failure) -> upstream::Failure {
    match failure.kind() {
        Kind::AddressNotAllowed => upstream::Failure::AddressNotAllowed,
        Kind::Dns => upstream::Failure::Dns,
        Kind::Tls => upstream::Failure::Tls,
        Kind::Connection => upstream::Failure::Connection,
        Kind::Timeout => upstream::Failure::Timeout,
        Kind::ResponseTooLarge => upstream::Failure::ResponseTooLarge,
        Kind::TooManyRedirects => upstream::Failure::TooManyRedirects,
        Kind::InsecureRedirect => upstream::Failure::InsecureRedirect,
        Kind::InvalidUrl => upstream::Failure::InvalidUrl,
        Kind::UnsupportedEncoding => upstream::Failure::UnsupportedEncoding,
        Kind::Other => upstream::Failure::Other("the request was not of a form that the host makes".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_comes_in_two_forms_and_counts_from_the_answer() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let wait = |fields: &[(&str, &str)]| {
            let fields: Vec<_> = fields.iter().map(|(n, v)| ((*n).to_owned(), v.as_bytes().to_vec())).collect();
            retry_after(&fields, now).map(|d| d.as_secs())
        };
        assert_eq!(wait(&[("Retry-After", "3600")]), Some(3_600));
        assert_eq!(wait(&[("retry-after", "99999999999999999999999")]), Some(u64::from(u32::MAX)));
        let later = ("retry-after", "Sun, 20 Sep 2026 14:30:00 GMT");
        assert_eq!(wait(&[("date", "Sun, 20 Sep 2026 12:00:00 GMT"), later]), Some(9_000));
        // 2001-09-09T01:46:40Z is now; the obsolete forms are read too.
        assert_eq!(wait(&[("retry-after", "Sun, 09 Sep 2001 01:47:40 GMT")]), Some(60));
        assert_eq!(wait(&[("retry-after", "Sunday, 09-Sep-01 01:47:40 GMT")]), Some(60));
        assert_eq!(wait(&[("retry-after", "Sun Sep  9 01:47:40 2001")]), Some(60));
        for none in ["soon", "", "-5", "0", "1.5", "Sun, 09 Sep 2001 01:00:00 GMT"] {
            assert_eq!(wait(&[("retry-after", none)]), None, "{none}");
        }
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn only_what_lasts_from_the_first_hop_on_moves_an_address() {
        let moved = |hops: &[(u16, &str)]| {
            let hops = hops.iter().map(|(s, u)| (*s, (*u).to_owned())).collect();
            let report = Report { hops, final_url: Some("https://end.example/".into()), ..Report::default() };
            report.moved_to().map(str::to_owned)
        };
        assert_eq!(moved(&[]), None);
        assert_eq!(moved(&[(301, "https://a.example/")]).as_deref(), Some("https://end.example/"));
        assert_eq!(moved(&[(302, "https://a.example/"), (301, "https://b.example/")]), None);
        let mixed = moved(&[(308, "https://a.example/"), (302, "https://b.example/")]);
        assert_eq!(mixed.as_deref(), Some("https://b.example/"));
    }
}
