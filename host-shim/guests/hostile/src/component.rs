//! The modes.

#![allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications, clippy::all, reason = "generated bindings")]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this component is hostile on purpose"
)]

wit_bindgen::generate!({ world: "connector-plugin", path: "../../../wit" });

use corpus::connector::{http, log};
use exports::corpus::connector::{connector, content};

struct Hostile;

export!(Hostile);

const ID: &str = "connector.hostile";

fn describe() -> connector::Descriptor {
    connector::Descriptor {
        id: ID.into(),
        version: "0.1.0".into(),
        description: "Breaks every rule once".into(),
        kinds: vec![connector::Kind {
            name: "hostile".into(),
            description: "A mode for each rule".into(),
            config_schema: "{\"type\":\"object\"}".into(),
            credential_schema: None,
            credential_required: false,
            credential_fields: Vec::new(),
            default_interval_seconds: 300,
        }],
        configuration_schema: "{\"type\":\"object\"}".into(),
        limits: connector::Limits {
            max_items: 250,
            max_page_bytes: 16 << 20,
            max_checkpoint_bytes: 128 << 10,
            timeout_ms: 30_000,
        },
        extensions: vec![connector::ExtensionNamespace {
            name: ID.into(),
            schema_version: "1".into(),
            schema: "{\"type\":\"object\"}".into(),
        }],
    }
}

fn item(key: &str) -> connector::Item {
    connector::Item {
        record_key: key.into(),
        revision: "r1".into(),
        previous_key: None,
        parts: vec![connector::Part { key: "body".into(), role: "body".into(), parent_key: None, text: "text".into() }],
        extensions: vec![connector::Extension { namespace: ID.into(), schema_version: "1".into(), data: "{}".into() }],
        source_position: None,
        withdraw: false,
    }
}

fn page() -> connector::Page {
    connector::Page {
        items: vec![item("a")],
        checkpoint: "{}".into(),
        more: false,
        not_due: false,
        reads: 0,
        notice: None,
        window: Some(vec![connector::WindowEntry { record_key: "a".into(), position: 0 }]),
        hints: connector::Hints {
            ttl_seconds: None,
            max_age_seconds: None,
            expires: None,
            update_period_seconds: None,
            skip_hours: Vec::new(),
            skip_days: Vec::new(),
            retry_after_seconds: None,
        },
        diagnostics: "{}".into(),
    }
}

fn failure(code: &str, message: &str) -> connector::Failure {
    connector::Failure {
        class: connector::FailureClass::Source,
        code: code.into(),
        message: message.into(),
        retry_after_seconds: None,
    }
}

/// The value of `name` in a small JSON object, by hand: this component needs no library.
fn member(json: &str, name: &str) -> String {
    let marker = format!("\"{name}\":\"");
    json.split_once(&marker).and_then(|(_, rest)| rest.split_once('"')).map(|(v, _)| v.to_string()).unwrap_or_default()
}

fn request(url: &str) -> http::Request {
    http::Request { url: url.into(), headers: Vec::new(), authenticate: true, max_body_bytes: None, timeout_ms: None }
}

#[allow(unconditional_recursion, reason = "that is the point")]
fn recurse(n: u64) -> u64 {
    let local = [n; 64];
    std::hint::black_box(&local);
    recurse(n + 1) + std::hint::black_box(local[3])
}

fn misbehave(mode: &str, url: &str) {
    match mode {
        "spin" => loop {
            std::hint::black_box(0);
        },
        "allocate" => {
            let mut hoard: Vec<Vec<u8>> = Vec::new();
            loop {
                hoard.push(vec![1; 1 << 20]);
                std::hint::black_box(&hoard);
            }
        }
        "recurse" => {
            std::hint::black_box(recurse(0));
        }
        "panic" => panic!("a secret of the feed"),
        "huge-log" => log::write(log::Level::Error, &"x".repeat(64 << 20)),
        "log-loop" => loop {
            log::write(log::Level::Error, "again and again");
        },
        "http-loop" => loop {
            let _ = http::send(&request(url));
        },
        "http-held" => {
            let _ = http::send(&request(url));
        }
        "own-header" => {
            let mut forged = request(url);
            forged.headers.push(http::Header { name: "Authorization".into(), value: b"forged".to_vec() });
            let refused = matches!(http::send(&forged), Err(http::Failure::Other(_)));
            assert!(refused, "the host sent a header of its own for me");
        }
        _ => {}
    }
}

/// One page that breaks one rule.
fn lie(mode: &str, checkpoint: Option<String>) -> Result<connector::Page, connector::Failure> {
    let mut page = page();
    match mode {
        "huge-answer" => page.items[0].parts[0].text = "x".repeat(40 << 20),
        "large-page" => {
            for n in 0..5 {
                let mut big = item(&format!("big-{n}"));
                big.parts[0].text = "x".repeat(7 << 19);
                page.items.push(big);
            }
        }
        "many-items" => page.items = (0..251).map(|n| item(&n.to_string())).collect(),
        "same-key" => page.items.push(item("a")),
        "empty-key" => page.items[0].record_key.clear(),
        "long-key" => page.items[0].record_key = "k".repeat(1_025),
        "nul-key" => page.items[0].record_key = "a\0b".into(),
        "empty-revision" => page.items[0].revision.clear(),
        "long-revision" => page.items[0].revision = "r".repeat(257),
        "no-parts" => page.items[0].parts.clear(),
        "withdrawn-with-parts" => page.items[0].withdraw = true,
        "empty-text" => page.items[0].parts[0].text.clear(),
        "many-parts" => {
            page.items[0].parts = (0..65)
                .map(|n| connector::Part {
                    key: n.to_string(),
                    role: "body".into(),
                    parent_key: None,
                    text: "x".into(),
                })
                .collect();
        }
        "same-part" => {
            let part = page.items[0].parts[0].clone();
            page.items[0].parts.push(part);
        }
        "orphan-part" => page.items[0].parts[0].parent_key = Some("nobody".into()),
        "circular-part" => page.items[0].parts[0].parent_key = Some("body".into()),
        "undeclared-namespace" => page.items[0].extensions[0].namespace = "connector.rss".into(),
        "undeclared-version" => page.items[0].extensions[0].schema_version = "2".into(),
        "extension-no-object" => page.items[0].extensions[0].data = "[]".into(),
        "extension-twice" => {
            let extension = page.items[0].extensions[0].clone();
            page.items[0].extensions.push(extension);
        }
        "large-checkpoint" => page.checkpoint = "c".repeat((128 << 10) + 1),
        "stalled" => {
            page.more = true;
            page.window = None;
            page.checkpoint = checkpoint.unwrap_or_default();
        }
        "window-and-more" => {
            page.more = true;
            page.checkpoint = "moved".into();
        }
        "window-order" => {
            page.window = Some(vec![
                connector::WindowEntry { record_key: "a".into(), position: 1 },
                connector::WindowEntry { record_key: "b".into(), position: 0 },
            ]);
        }
        "not-due-with-items" => page.not_due = true,
        "not-due-moved" => {
            page.items.clear();
            page.window = None;
            page.not_due = true;
            page.checkpoint = "moved".into();
        }
        "bad-notice" => page.notice = Some("Not A Code".into()),
        "bad-hour" => page.hints.skip_hours = vec![24],
        "bad-diagnostics" => page.diagnostics = "7".into(),
        "large-diagnostics" => page.diagnostics = format!("{{\"x\":\"{}\"}}", "d".repeat(16 << 10)),
        "bad-code" => return Err(failure("Bad Code", "message")),
        "empty-message" => return Err(failure("code", "")),
        "long-message" => return Err(failure("code", &"m".repeat(1_025))),
        "retry-of-source" => {
            let mut failure = failure("code", "message");
            failure.retry_after_seconds = Some(5);
            return Err(failure);
        }
        _ => {}
    }
    Ok(page)
}

impl connector::Guest for Hostile {
    fn describe() -> connector::Descriptor {
        describe()
    }

    fn fetch(call: connector::Invocation) -> Result<connector::Page, connector::Failure> {
        std::panic::set_hook(Box::new(|info| {
            if let Some(place) = info.location() {
                log::write(log::Level::Error, &format!("panic at {place}"));
            }
            log::write(log::Level::Debug, &info.to_string());
        }));
        let mode = member(&call.config, "mode");
        misbehave(&mode, &member(&call.config, "url"));
        lie(&mode, call.checkpoint)
    }

    fn check_credential(_call: connector::Invocation) -> Result<connector::CredentialStatus, connector::Failure> {
        Ok(connector::CredentialStatus { expires_at: Some("whenever".into()) })
    }
}

impl content::Guest for Hostile {
    fn render(_fragments: Vec<content::Fragment>, _forms: Vec<content::Form>) -> Vec<Vec<content::Rendered>> {
        Vec::new()
    }
}
