//! A small HTTP caller for tests and demonstrations: one request, one JSON answer, no library in between.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a service answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Body; `null` where it is not JSON.
    pub body: Value,
    /// Body as it came.
    pub text: String,
    /// Header fields, names in small letters.
    pub headers: Vec<(String, String)>,
}

impl Answer {
    /// The value of a header field.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Calls a service on loopback with a bearer key.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Host and port.
    pub address: String,
    /// Key.
    pub key: String,
}

impl Caller {
    /// `GET path`.
    ///
    /// # Errors
    /// Where there is no answer.
    pub async fn get(&self, path: &str) -> std::io::Result<Answer> {
        self.call("GET", path, None).await
    }

    /// `POST path` with a JSON body.
    ///
    /// # Errors
    /// Where there is no answer.
    pub async fn post(&self, path: &str, body: &Value) -> std::io::Result<Answer> {
        self.call("POST", path, Some(("application/json", &body.to_string()))).await
    }

    /// `PUT path` with a JSON body.
    ///
    /// # Errors
    /// Where there is no answer.
    pub async fn put(&self, path: &str, body: &Value) -> std::io::Result<Answer> {
        self.call("PUT", path, Some(("application/json", &body.to_string()))).await
    }

    /// Any request.
    ///
    /// # Errors
    /// Where there is no answer.
    pub async fn call(&self, method: &str, path: &str, body: Option<(&str, &str)>) -> std::io::Result<Answer> {
        self.call_with(method, path, &[], body).await
    }

    /// Any request, with more header fields.
    ///
    /// # Errors
    /// Where there is no answer.
    pub async fn call_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<(&str, &str)>,
    ) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let (content_type, text) = body.unwrap_or(("", ""));
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        if !self.key.is_empty() {
            request.push_str(&format!("Authorization: Bearer {}\r\n", self.key));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if body.is_some() {
            request.push_str(&format!("Content-Type: {content_type}\r\nContent-Length: {}\r\n", text.len()));
        }
        stream.write_all(format!("{request}\r\n{text}").as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        let field = |line: &str| line.split_once(": ").map(|(n, v)| (n.to_lowercase(), v.to_owned()));
        let headers = head.lines().skip(1).filter_map(field).collect();
        let value = serde_json::from_str(body).unwrap_or(Value::Null);
        Ok(Answer { status, body: value, text: body.to_owned(), headers })
    }
}
