//! The description of the API as a page to read, at `/docs`.
//!
//! It is written here, from the same document as `/openapi.json`, and loads nothing: no script, no font, no image.

use std::fmt::Write as _;

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use base64::Engine as _;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::openapi::document;

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    code,pre{font-family:ui-monospace,monospace;font-size:.9em}pre{overflow:auto;padding:.5rem;border:1px solid #8886}\
    section{border-top:1px solid #8886;margin-top:1.5rem}table{border-collapse:collapse}\
    td,th{text-align:left;vertical-align:top;padding:.1rem 1rem .1rem 0}:root{color-scheme:light dark}";

/// `/docs`.
pub(super) async fn serve() -> impl IntoResponse {
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let head = [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_SECURITY_POLICY, policy)];
    (head, page(&document()))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn page(document: &Value) -> String {
    let title = escape(text(document, "/info/title"));
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title} API</title><style>{STYLE}</style></head><body><h1>{title} API \
         {}</h1><p>{}</p><p>Send a key as <code>Authorization: Bearer KEY</code>. {}</p><p>For programs: \
         <a href=\"/openapi.json\">/openapi.json</a></p>",
        escape(text(document, "/info/version")),
        escape(text(document, "/info/description")),
        escape(text(document, "/components/securitySchemes/key/description")),
    );
    for tag in document.get("tags").and_then(Value::as_array).into_iter().flatten() {
        let _ = write!(html, "<h2>{}</h2><p>{}</p>", escape(text(tag, "/name")), escape(text(tag, "/description")));
        for (path, methods) in members(document.get("paths")) {
            for (method, call) in members(Some(methods)).filter(|(_, c)| text(c, "/tags/0") == text(tag, "/name")) {
                operation(&mut html, method, path, call);
            }
        }
    }
    html.push_str("<h2>Shapes</h2>");
    for (name, schema) in members(document.pointer("/components/schemas")) {
        let shown = serde_json::to_string_pretty(schema).unwrap_or_default();
        let _ = write!(html, "<section id=\"{0}\"><h3>{0}</h3><pre>{1}</pre></section>", escape(name), escape(&shown));
    }
    html.push_str("</body></html>");
    html
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

fn operation(html: &mut String, method: &str, path: &str, call: &Value) {
    let _ = write!(
        html,
        "<section><h3><code>{} {}</code></h3><p>{}</p>",
        method.to_uppercase(),
        escape(path),
        escape(text(call, "/summary"))
    );
    let scopes: Vec<&str> = call
        .pointer("/security/0/key")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !scopes.is_empty() {
        let _ = write!(html, "<p>Scope: <code>{}</code></p>", scopes.join(" "));
    }
    let parameters: Vec<&Value> = call.get("parameters").and_then(Value::as_array).into_iter().flatten().collect();
    if !parameters.is_empty() {
        html.push_str("<table>");
        for parameter in parameters {
            let _ = write!(
                html,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                escape(text(parameter, "/name")),
                escape(text(parameter, "/in")),
                escape(text(parameter, "/description"))
            );
        }
        html.push_str("</table>");
    }
    for (kind, content) in members(call.pointer("/requestBody/content")) {
        let _ = write!(html, "<p>Body: {} {}</p>", escape(kind), shape(content));
    }
    for (status, answer) in members(call.get("responses")) {
        for (kind, content) in members(answer.get("content")) {
            let _ = write!(html, "<p>{}: {} {}</p>", escape(status), escape(kind), shape(content));
        }
    }
    let refusals: Vec<&str> = members(call.get("responses"))
        .filter(|(_, answer)| answer.get("$ref").is_some())
        .map(|(status, _)| status.as_str())
        .collect();
    let _ = write!(html, "<p>Refusals: {} <a href=\"#Error\">Error</a></p></section>", refusals.join(", "));
}

/// A link to the shape of a content.
fn shape(content: &Value) -> String {
    let name = text(content, "/schema/$ref").rsplit('/').next().unwrap_or_default();
    if name.is_empty() { String::new() } else { format!("<a href=\"#{0}\">{0}</a>", escape(name)) }
}
