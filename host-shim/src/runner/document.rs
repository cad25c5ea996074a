//! A document at hand in place of the network: what `parse` and `certify` feed a connector with.
//!
//! Owns the reading of a stored response (status line, header fields, blank line, body). Every request gets it.

use crate::egress::client::MAX_BODY_BYTES;
use crate::egress::coding::{CodingError, Decoder};
use crate::engine::upstream::{Failure, Request, Response, Sending, Upstream};

/// Why a stored response cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// Not a status line.
    #[error("the first line is not a status line such as \"HTTP/1.1 200 OK\"")]
    StatusLine,
    /// Not a header field.
    #[error("a line before the blank line is not a header field")]
    Header,
    /// The body.
    #[error("{0}")]
    Body(#[from] CodingError),
}

/// Reads a stored response; lines may end in LF or CRLF.
///
/// # Errors
/// Where it is not of that form or its body cannot be decoded.
pub fn read_response(bytes: &[u8]) -> Result<Response, ResponseError> {
    let mut rest = bytes;
    let mut line = || {
        let end = rest.iter().position(|b| *b == b'\n');
        let (line, tail) = match end {
            Some(end) => (rest.get(..end), rest.get(end + 1..)),
            None => (Some(rest), None),
        };
        rest = tail.unwrap_or(&[]);
        let line = line.unwrap_or(&[]);
        (line.strip_suffix(b"\r").unwrap_or(line), rest)
    };
    let (first, _) = line();
    let status = std::str::from_utf8(first)
        .ok()
        .filter(|l| l.starts_with("HTTP/"))
        .and_then(|l| l.split_ascii_whitespace().nth(1)?.parse::<u16>().ok())
        .filter(|s| (100..=999).contains(s))
        .ok_or(ResponseError::StatusLine)?;
    let mut headers = Vec::new();
    let body = loop {
        let (field, tail) = line();
        if field.is_empty() {
            break tail;
        }
        let colon = field.iter().position(|b| *b == b':').ok_or(ResponseError::Header)?;
        let (name, value) = field.split_at_checked(colon).ok_or(ResponseError::Header)?;
        let name = std::str::from_utf8(name).map_err(|_| ResponseError::Header)?;
        headers.push((name.trim().to_ascii_lowercase(), value.get(1..).unwrap_or(&[]).trim_ascii().to_vec()));
    };
    let find =
        |wanted: &str| headers.iter().find(|(n, _)| n == wanted).map(|(_, v)| String::from_utf8_lossy(v).into_owned());
    let mut decoder = Decoder::new(find("content-encoding").as_deref(), MAX_BODY_BYTES)?;
    decoder.push(body)?;
    Ok(Response {
        status,
        final_url: find("content-location").unwrap_or_default(),
        headers,
        body: decoder.finish()?,
        ..Response::default()
    })
}

/// Answers every request with one response.
#[derive(Debug, Clone)]
pub struct Document(Result<Response, Failure>);

impl Document {
    /// The response that every request gets.
    #[must_use]
    pub fn new(response: Response) -> Self {
        Self(Ok(response))
    }

    /// The failure that every request gets, as it would over the network.
    #[must_use]
    pub fn failing(failure: Failure) -> Self {
        Self(Err(failure))
    }
}

impl Upstream for Document {
    fn send(&self, _request: Request) -> Sending<'_> {
        Box::pin(async { self.0.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_response_is_read_with_either_line_end() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Location: https://a.site/f\r\n\r\n<rss>\r\n</rss>",
            "HTTP/2 200\nContent-Type:text/xml \nContent-Location: https://a.site/f\n\n<rss>\r\n</rss>",
        ] {
            let response = read_response(text.as_bytes()).unwrap();
            assert_eq!((response.status, response.final_url.as_str()), (200, "https://a.site/f"));
            assert_eq!(response.headers[0], ("content-type".to_owned(), b"text/xml".to_vec()));
            assert_eq!(response.body, b"<rss>\r\n</rss>");
        }
        assert_eq!(read_response(b"HTTP/1.1 304 Not Modified\r\n\r\n").unwrap().status, 304);
        assert_eq!(read_response(b"<rss/>"), Err(ResponseError::StatusLine));
        assert_eq!(read_response(b"HTTP/1.1 200 OK\nno field\n\n"), Err(ResponseError::Header));
        let compress = b"HTTP/1.1 200 OK\nContent-Encoding: compress\n\nx";
        assert_eq!(read_response(compress), Err(ResponseError::Body(CodingError::Unsupported)));
    }
}
