//! Requests of one run over the network.
//!
//! Owns what a run remembers of its requests: the 200 that a repeated request is answered from, the hash of the body,
//! and the report for the operator. The guest learns kinds; the report has the detail.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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

/// The network as one run sees it.
#[derive(Debug)]
pub struct Network {
    client: Client,
    rules: Rules,
    credential: Option<Credential>,
    last_body: Option<Digest>,
    held: Mutex<HashMap<(String, bool), Response>>,
    report: Mutex<Report>,
}

impl Network {
    /// The network of one run. `last_body` is the hash of the body that this component last processed whole.
    #[must_use]
    pub fn new(client: Client, rules: Rules, credential: Option<Credential>, last_body: Option<Digest>) -> Self {
        Self { client, rules, credential, last_body, held: Mutex::default(), report: Mutex::default() }
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
        let wanted = client::Request {
            url: request.url,
            headers: request.headers,
            credential: self.credential.clone().filter(|_| request.authenticate),
            max_body_bytes: request.max_body_bytes,
            timeout: request.timeout_ms.map(|ms| Duration::from_millis(u64::from(ms))),
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
