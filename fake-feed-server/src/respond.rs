//! Answers: from a request and the script of its path to a response.

use std::io::Write;

use wiremock::{Request, Respond, ResponseTemplate};

use crate::route::{Auth, Coding, Route};
use crate::{Recorded, Shared, control};

pub(crate) struct Responder {
    shared: Shared,
}

impl Responder {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared }
    }
}

impl Respond for Responder {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let path = request.url.path();
        if let Some(command) = path.strip_prefix("/_control/") {
            return control::respond(&self.shared, command, request);
        }
        self.shared.record(Recorded {
            method: request.method.to_string(),
            path: path.to_owned(),
            query: request.url.query().map(str::to_owned),
            headers: request
                .headers
                .iter()
                .map(|(n, v)| (n.to_string(), String::from_utf8_lossy(v.as_bytes()).into_owned()))
                .collect(),
        });
        let route = self.shared.lock().routes.get(path).cloned();
        match route {
            Some(route) if request.method.as_str() == "GET" => answer(&route, request),
            Some(_) => ResponseTemplate::new(405),
            None => ResponseTemplate::new(404).set_body_raw("no such feed", "text/plain"),
        }
    }
}

fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    request.headers.get(name).and_then(|v| v.to_str().ok())
}

fn answer(route: &Route, request: &Request) -> ResponseTemplate {
    let delayed = |template: ResponseTemplate| {
        let template = route.headers.iter().fold(template, |t, (n, v)| t.append_header(n.as_str(), v.as_str()));
        if route.delay.is_zero() { template } else { template.set_delay(route.delay) }
    };
    if let Some(auth) = &route.auth
        && !is_authorized(auth, request)
    {
        let scheme = if matches!(auth, Auth::Bearer(_)) { "Bearer" } else { "Basic realm=\"feed\"" };
        return delayed(ResponseTemplate::new(401).insert_header("WWW-Authenticate", scheme));
    }
    if let Some(redirect) = &route.redirect {
        let template = ResponseTemplate::new(redirect.status);
        return delayed(match &redirect.location {
            Some(location) => template.insert_header("Location", location.as_str()),
            None => template,
        });
    }
    if let Some(status) = route.status {
        let template = ResponseTemplate::new(status);
        return delayed(match &route.retry_after {
            Some(value) => template.insert_header("Retry-After", value.as_str()),
            None => template,
        });
    }
    delayed(document(route, request))
}

/// The document, or 304 where a validator matches: If-None-Match decides alone where it is there (RFC 9110, 13.2.2).
fn document(route: &Route, request: &Request) -> ResponseTemplate {
    let (etag, modified) = (route.etag(), route.last_modified());
    let weak = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let unchanged = match header(request, "if-none-match") {
        Some(tags) => etag.as_deref().is_some_and(|e| tags.split(',').any(|t| t.trim() == "*" || weak(t) == weak(e))),
        None => modified.is_some() && header(request, "if-modified-since") == modified.as_deref(),
    };
    let mut template = ResponseTemplate::new(if unchanged { 304 } else { 200 });
    if let Some(etag) = etag {
        template = template.insert_header("ETag", etag.as_str());
    }
    if let Some(modified) = modified {
        template = template.insert_header("Last-Modified", modified.as_str());
    }
    if unchanged {
        return template;
    }
    let accepts = |coding: &str| header(request, "accept-encoding").is_some_and(|a| a.contains(coding));
    let (body, coding) = match route.coding {
        Some(Coding::Gzip) if accepts("gzip") => (gzip(&route.body), Some("gzip")),
        Some(Coding::Brotli) if accepts("br") => (brotli(&route.body), Some("br")),
        _ => (route.body.clone(), None),
    };
    if let Some(coding) = coding {
        template = template.insert_header("Content-Encoding", coding);
    }
    let announced = body.len() + route.short_by;
    template = template.set_body_raw(body, &route.content_type);
    if route.short_by > 0 { template.insert_header("Content-Length", announced) } else { template }
}

fn is_authorized(auth: &Auth, request: &Request) -> bool {
    let expected = match auth {
        Auth::Bearer(token) => format!("Bearer {token}"),
        Auth::Basic { username, password } => format!("Basic {}", base64(format!("{username}:{password}").as_bytes())),
    };
    header(request, "authorization") == Some(expected.as_str())
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

fn brotli(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    {
        let mut encoder = brotli::CompressorWriter::new(&mut out, 4_096, 5, 22);
        // Writing to memory does not fail.
        let _ = encoder.write_all(body);
    }
    out
}
