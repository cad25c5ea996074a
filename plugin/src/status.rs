//! What an answer means: statuses and failures of a request as classes and codes.
//!
//! Owns both tables, those of Quivr's plugin. Messages say what an operator can do and quote nothing.

use crate::contract::{Failure, HttpFailure, HttpResponse};
use crate::hints;

/// What to do with a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Read the body.
    Document,
    /// Nothing changed (304).
    NotModified,
}

/// The table of statuses.
///
/// # Errors
/// The class and code of a status that brings no document.
pub fn outcome(response: &HttpResponse, now: i64) -> Result<Outcome, Failure> {
    let refused = match response.status {
        200..=299 => return Ok(Outcome::Document),
        304 => return Ok(Outcome::NotModified),
        401 => Failure::access("unauthorized", "The feed asks for a login; deposit or rotate the credential"),
        403 => {
            Failure::access("forbidden", "The publisher refuses this reader; check the credential or ask the publisher")
        }
        404 => Failure::source("not_found", "There is nothing at the address of the feed; check it"),
        410 => Failure::access("gone", "The publisher has taken the feed down for good; disable the instance"),
        429 => Failure::transient("rate_limited", "The publisher asks for fewer requests; the next ones come later"),
        500..=599 => Failure::transient("server_error", "The publisher's server has an error; it is asked again later"),
        other => Failure::source(
            "http_status",
            format!("The publisher's server answered with status {other}, which brings no feed"),
        ),
    };
    let retry = matches!(response.status, 429 | 500..=599).then(|| hints::retry_after(response, now)).flatten();
    Err(Failure { retry_after_seconds: retry, ..refused })
}

/// The table of requests without a response.
#[must_use]
pub fn no_response(failure: &HttpFailure) -> Failure {
    match failure {
        HttpFailure::AddressNotAllowed => Failure::source(
            "address_not_allowed",
            "The address of the feed, or one it redirects to, is not allowed by the host's network policy",
        ),
        HttpFailure::Dns => Failure::transient("dns_error", "The host name of the feed could not be resolved"),
        HttpFailure::Tls => {
            Failure::transient("tls_error", "No secure connection to the publisher's server; check its certificate")
        }
        HttpFailure::Connection => Failure::transient(
            "connection_error",
            "No connection to the publisher's server, or it broke before the end",
        ),
        HttpFailure::Timeout => Failure::transient("timeout", "The publisher's server took too long"),
        HttpFailure::ResponseTooLarge => {
            Failure::source("response_too_large", "The document is larger than a feed may be")
        }
        HttpFailure::TooManyRedirects => {
            Failure::source("too_many_redirects", "The address redirects too often or in a circle; check it")
        }
        HttpFailure::InsecureRedirect => {
            Failure::source("insecure_redirect", "The address redirects from https to http, which is refused")
        }
        HttpFailure::InvalidUrl => Failure::source(
            "invalid_url",
            "The address of the feed, or one it redirects to, cannot be requested; check it",
        ),
        HttpFailure::UnsupportedEncoding => {
            Failure::source("unsupported_encoding", "The document comes in a content coding that was not asked for")
        }
        HttpFailure::Other(_) => Failure::transient("request_failed", "The host could not make the request"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{FailureClass, Header};

    #[test]
    fn every_status_has_its_class_and_code() {
        use FailureClass::{Access, Source, Transient};
        for (status, class, code, retries) in [
            (401, Access, "unauthorized", false),
            (403, Access, "forbidden", false),
            (404, Source, "not_found", false),
            (410, Access, "gone", false),
            (418, Source, "http_status", false),
            (302, Source, "http_status", false),
            (429, Transient, "rate_limited", true),
            (500, Transient, "server_error", true),
            (503, Transient, "server_error", true),
            (599, Transient, "server_error", true),
            (600, Source, "http_status", false),
        ] {
            let headers = vec![Header { name: "retry-after".into(), value: b"7".to_vec() }];
            let response = HttpResponse { status, headers, ..HttpResponse::default() };
            let failure = outcome(&response, 0).unwrap_err();
            assert_eq!((failure.class, failure.code), (class, code), "{status}");
            assert_eq!(failure.retry_after_seconds, retries.then_some(7), "{status}");
        }
        for status in [200, 204, 226] {
            assert_eq!(outcome(&HttpResponse { status, ..HttpResponse::default() }, 0), Ok(Outcome::Document));
        }
        assert_eq!(outcome(&HttpResponse { status: 304, ..HttpResponse::default() }, 0), Ok(Outcome::NotModified));
    }

    #[test]
    fn every_failure_has_its_class_and_code() {
        use FailureClass::{Source, Transient};
        for (failure, class, code) in [
            (HttpFailure::AddressNotAllowed, Source, "address_not_allowed"),
            (HttpFailure::Dns, Transient, "dns_error"),
            (HttpFailure::Tls, Transient, "tls_error"),
            (HttpFailure::Connection, Transient, "connection_error"),
            (HttpFailure::Timeout, Transient, "timeout"),
            (HttpFailure::ResponseTooLarge, Source, "response_too_large"),
            (HttpFailure::TooManyRedirects, Source, "too_many_redirects"),
            (HttpFailure::InsecureRedirect, Source, "insecure_redirect"),
            (HttpFailure::InvalidUrl, Source, "invalid_url"),
            (HttpFailure::UnsupportedEncoding, Source, "unsupported_encoding"),
            (HttpFailure::Other("x".into()), Transient, "request_failed"),
        ] {
            let made = no_response(&failure);
            assert_eq!((made.class, made.code), (class, code));
        }
    }
}
