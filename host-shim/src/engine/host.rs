//! The host's side of the imports: `http` and `log`, bounded.
//!
//! Owns the state of one store. What a guest logs is cut, counted and handed to the operator's log with its level.

use std::sync::Arc;

use super::bindings::corpus::connector::{http, log};
use super::limits::{Limits, Meter};
use super::upstream::{self, Upstream};

/// Bytes of one line of a guest's log.
const MAX_LINE_BYTES: usize = 2_048;

/// State of one store.
pub(super) struct State {
    pub(super) meter: Meter,
    pub(super) limits: Limits,
    upstream: Arc<dyn Upstream>,
    requests: u32,
    lines: usize,
    dropped_lines: usize,
    /// Place of a panic, as the guest told it.
    pub(super) panic_place: Option<String>,
}

impl State {
    pub(super) fn new(limits: Limits, upstream: Arc<dyn Upstream>) -> Self {
        Self { meter: Meter::new(limits), limits, upstream, requests: 0, lines: 0, dropped_lines: 0, panic_place: None }
    }

    /// Says how many lines were dropped, once, at the end of a call.
    pub(super) fn finish(&self) {
        if self.dropped_lines > 0 {
            tracing::warn!(target: "guest", dropped = self.dropped_lines, "lines of the component were dropped");
        }
    }
}

impl http::Host for State {
    async fn send(&mut self, request: http::Request) -> wasmtime::Result<Result<http::Response, http::Failure>> {
        self.requests += 1;
        if self.requests > self.limits.requests {
            return Ok(Err(http::Failure::Other("more requests than one call may make".to_owned())));
        }
        let request = upstream::Request {
            url: request.url,
            headers: request.headers.into_iter().map(|h| (h.name, h.value)).collect(),
            authenticate: request.authenticate,
            max_body_bytes: request.max_body_bytes,
            timeout_ms: request.timeout_ms,
        };
        Ok(match self.upstream.send(request).await {
            Ok(response) => Ok(http::Response {
                status: response.status,
                headers: response.headers.into_iter().map(|(name, value)| http::Header { name, value }).collect(),
                body: response.body,
                final_url: response.final_url,
                hops: response.hops.into_iter().map(|(status, url)| http::Hop { status, url }).collect(),
                unchanged: response.unchanged,
            }),
            Err(failure) => Err(match failure {
                upstream::Failure::AddressNotAllowed => http::Failure::AddressNotAllowed,
                upstream::Failure::Dns => http::Failure::Dns,
                upstream::Failure::Tls => http::Failure::Tls,
                upstream::Failure::Connection => http::Failure::Connection,
                upstream::Failure::Timeout => http::Failure::Timeout,
                upstream::Failure::ResponseTooLarge => http::Failure::ResponseTooLarge,
                upstream::Failure::TooManyRedirects => http::Failure::TooManyRedirects,
                upstream::Failure::InsecureRedirect => http::Failure::InsecureRedirect,
                upstream::Failure::InvalidUrl => http::Failure::InvalidUrl,
                upstream::Failure::UnsupportedEncoding => http::Failure::UnsupportedEncoding,
                upstream::Failure::Other(message) => http::Failure::Other(message),
            }),
        })
    }
}

impl log::Host for State {
    async fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        if matches!(level, log::Level::Error)
            && let Some(place) = message.strip_prefix("panic at ")
            && is_place(place)
        {
            self.panic_place = Some(place.to_owned());
        }
        self.lines += 1;
        if self.lines > self.limits.log_lines {
            self.dropped_lines += 1;
            return Ok(());
        }
        let line: String = message
            .get(..message.floor_char_boundary(MAX_LINE_BYTES))
            .unwrap_or("")
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        // Whatever the component calls it, the line may quote a feed or its address, so it is never above debug.
        match level {
            log::Level::Trace => tracing::trace!(target: "guest", "{line}"),
            level => tracing::debug!(target: "guest", ?level, "{line}"),
        }
        Ok(())
    }
}

/// Whether a text is a place in a source file, `path:line:column`, and nothing a feed could have put there.
fn is_place(text: &str) -> bool {
    let mut numbers = text.rsplitn(3, ':');
    let is_number = |n: Option<&str>| n.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    text.len() <= 200
        && is_number(numbers.next())
        && is_number(numbers.next())
        && numbers.next().is_some_and(|path| {
            path.ends_with(".rs")
                && path.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-'))
        })
}

#[cfg(test)]
mod tests {
    use super::is_place;

    #[test]
    fn a_place_is_a_path_a_line_and_a_column() {
        assert!(is_place("plugin/src/parse/outline.rs:12:5"));
        for text in ["", "a secret", "x.rs", "x.rs:1", "a b.rs:1:2", "x.rs:1:2 and more", "x.txt:1:2"] {
            assert!(!is_place(text), "{text}");
        }
    }
}
