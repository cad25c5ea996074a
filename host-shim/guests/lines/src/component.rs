//! The face towards `wit/`: types in, types out, one request, and which answer is which failure.

#![allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications, clippy::all, reason = "generated bindings")]

wit_bindgen::generate!({ world: "connector-plugin", path: "../../../wit" });

use corpus::connector::http;
use exports::corpus::connector::connector::{
    self, CredentialStatus, Descriptor, Failure, FailureClass, Hints, Invocation, Item, Kind, Limits, Page, Part,
    WindowEntry,
};
use exports::corpus::connector::content;

struct Lines;

export!(Lines);

impl connector::Guest for Lines {
    fn describe() -> Descriptor {
        Descriptor {
            id: "connector.lines".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Each line of a plain text document is a record".into(),
            kinds: vec![Kind {
                name: crate::KIND.into(),
                description: "A plain text document over http or https".into(),
                config_schema: crate::CONFIG_SCHEMA.into(),
                credential_schema: None,
                credential_required: false,
                credential_fields: Vec::new(),
                default_interval_seconds: 3_600,
            }],
            configuration_schema: "{\"type\": \"object\"}".into(),
            limits: Limits {
                max_items: crate::MAX_ITEMS as u32,
                max_page_bytes: 8 << 20,
                max_checkpoint_bytes: 128 << 10,
                timeout_ms: 30_000,
            },
            extensions: Vec::new(),
        }
    }

    fn fetch(call: Invocation) -> Result<Page, Failure> {
        let before = ours(&call)?;
        // Within a run the same document answers each page, so validators go with the first request only.
        let etag = before.etag.clone().filter(|_| call.page_in_run == 0 && !call.unconditional);
        let response = ask(&call, etag.as_deref())?;
        match response.status {
            304 => return Ok(page(crate::Page { checkpoint: before, ..nothing() }, false)),
            status => by_status(status)?,
        }
        let etag = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case("etag"));
        let etag = etag.and_then(|h| String::from_utf8(h.value.clone()).ok()).filter(|e| e.len() <= 256);
        Ok(page(crate::page(&response.body, etag, &before), true))
    }

    /// Only a refusal is a failure: whether the document is there is another question.
    fn check_credential(call: Invocation) -> Result<CredentialStatus, Failure> {
        ours(&call)?;
        match by_status(ask(&call, None)?.status) {
            Err(failure) if matches!(failure.class, FailureClass::Access) => Err(failure),
            _ => Ok(CredentialStatus { expires_at: None }),
        }
    }
}

/// What every call must be. The host checks much of it; a connector does not rely on that.
fn ours(call: &Invocation) -> Result<crate::Checkpoint, Failure> {
    if call.kind != crate::KIND {
        return Err(source(("unsupported_kind", "This connector serves the kind lines alone")));
    }
    if call.now.len() < 20 || !call.now.ends_with('Z') {
        return Err(source(("invalid_clock", "The clock is not an RFC 3339 instant in UTC")));
    }
    crate::config(&call.config).map_err(source)?;
    crate::checkpoint(call.checkpoint.as_deref()).map_err(source)
}

/// The request. The host resolves, dials, follows redirects, bounds and attaches a credential, where there is one.
fn ask(call: &Invocation, etag: Option<&str>) -> Result<http::Response, Failure> {
    let config = crate::config(&call.config).map_err(source)?;
    let field = |name: &str, value: &str| http::Header { name: name.into(), value: value.as_bytes().to_vec() };
    let mut headers = vec![field("Accept", "text/plain, */*;q=0.1")];
    headers.extend(etag.map(|etag| field("If-None-Match", etag)));
    let authenticate = call.has_credential;
    let request = http::Request { url: config.url, headers, authenticate, max_body_bytes: None, timeout_ms: None };
    http::send(&request).map_err(|failure| match failure {
        http::Failure::AddressNotAllowed => source(("address_not_allowed", "The host refuses the address")),
        http::Failure::InvalidUrl => source(("invalid_url", "The address is not a plain http or https address")),
        http::Failure::ResponseTooLarge => source(("response_too_large", "The document is too large")),
        http::Failure::TooManyRedirects => source(("too_many_redirects", "The document moves in circles")),
        http::Failure::InsecureRedirect => source(("insecure_redirect", "The document moved from https to http")),
        http::Failure::UnsupportedEncoding => source(("unsupported_encoding", "The document cannot be unpacked")),
        http::Failure::Dns => passing("dns_error", "The name of the host could not be resolved"),
        http::Failure::Tls => passing("tls_error", "No secure connection came about"),
        http::Failure::Timeout => passing("timeout", "The source took too long"),
        http::Failure::Connection | http::Failure::Other(_) => {
            passing("connection_error", "The source could not be reached")
        }
    })
}

/// Which status is which failure.
fn by_status(status: u16) -> Result<(), Failure> {
    let access = |code: &str, message: &str| Err(failure(FailureClass::Access, code, message));
    match status {
        200 => Ok(()),
        401 => access("unauthorized", "The source asks for a credential, or refuses this one"),
        403 => access("forbidden", "The source refuses this reader"),
        410 => access("gone", "The document was taken down"),
        404 => Err(source(("not_found", "There is no document at this address"))),
        429 => Err(passing("rate_limited", "The source asks for fewer requests")),
        500.. => Err(passing("server_error", "The source fails")),
        _ => Err(source(("http_status", "The source answers with an unexpected status"))),
    }
}

fn failure(class: FailureClass, code: &str, message: &str) -> Failure {
    Failure { class, code: code.into(), message: message.into(), retry_after_seconds: None }
}

fn source((code, message): crate::Invalid) -> Failure {
    failure(FailureClass::Source, code, message)
}

fn passing(code: &str, message: &str) -> Failure {
    failure(FailureClass::Transient, code, message)
}

fn nothing() -> crate::Page {
    crate::page(&[], None, &crate::Checkpoint::default())
}

/// A page in the contract's types. Without a document there is no window: the last one stands.
fn page(from: crate::Page, has_document: bool) -> Page {
    let entries = from.window.into_iter().enumerate();
    let window = entries.map(|(n, record_key)| WindowEntry { record_key, position: n as u32 }).collect();
    let part = |text| Part { key: "body".into(), role: "body".into(), parent_key: None, text };
    let diagnostics = serde_json::json!({"lines_left_out": from.left_out}).to_string();
    Page {
        items: from
            .lines
            .into_iter()
            .map(|line| Item {
                // A line is its text: the key is the revision too, and there are never two of one key.
                revision: line.key.clone(),
                record_key: line.key,
                previous_key: None,
                parts: vec![part(line.text)],
                extensions: Vec::new(),
                source_position: None,
                withdraw: false,
            })
            .collect(),
        checkpoint: serde_json::to_string(&from.checkpoint).unwrap_or_default(),
        more: from.more,
        not_due: false,
        reads: 1,
        notice: None,
        window: (has_document && !from.more).then_some(window),
        hints: Hints {
            ttl_seconds: None,
            max_age_seconds: None,
            expires: None,
            update_period_seconds: None,
            skip_hours: Vec::new(),
            skip_days: Vec::new(),
            retry_after_seconds: None,
        },
        diagnostics: if has_document { diagnostics } else { "{}".into() },
    }
}

impl content::Guest for Lines {
    /// Lines are plain text, and plain text is what every form of them is, but for what a form has to escape.
    fn render(fragments: Vec<content::Fragment>, forms: Vec<content::Form>) -> Vec<Vec<content::Rendered>> {
        let one = |text: &str, form: &content::Form| {
            let output = match form {
                content::Form::Text => text.to_owned(),
                content::Form::Markdown => crate::markdown(text),
                content::Form::SafeHtml => format!("<p>{}</p>", crate::escaped(text)),
                content::Form::EntryXml => {
                    format!("<content><paragraph>{}</paragraph></content>", crate::escaped(text))
                }
            };
            content::Rendered { output, truncated: false, degraded: false }
        };
        fragments.iter().map(|f| forms.iter().map(|form| one(&f.source, form)).collect()).collect()
    }
}
