//! The component face: the generated bindings of `wit/` around the pure library.
//!
//! Owns the conversion of types in both directions, the panic hook and the source of randomness that there is not.
//! Must not contain rules.

#![allow(missing_docs, unreachable_pub, unused_qualifications, unsafe_code, clippy::all, reason = "generated bindings")]

wit_bindgen::generate!({ world: "connector-plugin", path: "../wit" });

use corpus::connector::{http, log};
use exports::corpus::connector::{connector, content};

use crate::contract::{self, FailureClass, HttpFailure, Weekday};
use crate::describe::{self, Placement};
use crate::model::Markup;
use crate::{fetch, render};

struct Component;

export!(Component);

/// The host's `http` interface as the library sees it.
struct Host;

impl contract::Http for Host {
    fn send(&mut self, request: &contract::HttpRequest) -> Result<contract::HttpResponse, HttpFailure> {
        let request = http::Request {
            url: request.url.clone(),
            headers: request
                .headers
                .iter()
                .map(|h| http::Header { name: h.name.clone(), value: h.value.clone() })
                .collect(),
            authenticate: request.authenticate,
            max_body_bytes: None,
            timeout_ms: None,
        };
        match http::send(&request) {
            Ok(response) => Ok(contract::HttpResponse {
                status: response.status,
                headers: response
                    .headers
                    .into_iter()
                    .map(|h| contract::Header { name: h.name, value: h.value })
                    .collect(),
                body: response.body,
                final_url: response.final_url,
                hops: response.hops.into_iter().map(|h| contract::Hop { status: h.status, url: h.url }).collect(),
                unchanged: response.unchanged,
            }),
            Err(failure) => Err(match failure {
                http::Failure::AddressNotAllowed => HttpFailure::AddressNotAllowed,
                http::Failure::Dns => HttpFailure::Dns,
                http::Failure::Tls => HttpFailure::Tls,
                http::Failure::Connection => HttpFailure::Connection,
                http::Failure::Timeout => HttpFailure::Timeout,
                http::Failure::ResponseTooLarge => HttpFailure::ResponseTooLarge,
                http::Failure::TooManyRedirects => HttpFailure::TooManyRedirects,
                http::Failure::InsecureRedirect => HttpFailure::InsecureRedirect,
                http::Failure::InvalidUrl => HttpFailure::InvalidUrl,
                http::Failure::UnsupportedEncoding => HttpFailure::UnsupportedEncoding,
                http::Failure::Other(message) => HttpFailure::Other(message),
            }),
        }
    }
}

/// A panic's place goes to the operator; its text may quote a feed, so it stays at debug level.
fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(|| "unknown place".to_owned(), ToString::to_string);
        log::write(log::Level::Error, &format!("panic at {place}"));
        if let Some(text) = info.payload_as_str() {
            log::write(log::Level::Debug, &format!("panic: {text}"));
        }
    }));
}

fn invocation(from: connector::Invocation) -> contract::Invocation {
    contract::Invocation {
        instance_id: from.instance_id,
        kind: from.kind,
        configuration: from.configuration,
        config: from.config,
        checkpoint: from.checkpoint,
        now: from.now,
        page_in_run: from.page_in_run,
        has_credential: from.has_credential,
        unconditional: from.unconditional,
    }
}

fn failure(from: contract::Failure) -> connector::Failure {
    connector::Failure {
        class: match from.class {
            FailureClass::Access => connector::FailureClass::Access,
            FailureClass::Transient => connector::FailureClass::Transient,
            FailureClass::Source => connector::FailureClass::Source,
        },
        code: from.code.to_owned(),
        message: from.message,
        retry_after_seconds: from.retry_after_seconds,
    }
}

fn item(from: contract::Item) -> connector::Item {
    connector::Item {
        record_key: from.record_key,
        revision: from.revision,
        previous_key: from.previous_key,
        parts: from
            .parts
            .into_iter()
            .map(|p| connector::Part {
                key: p.key.to_owned(),
                role: p.role.to_owned(),
                parent_key: p.parent_key.map(str::to_owned),
                text: p.text,
            })
            .collect(),
        extensions: from
            .extensions
            .into_iter()
            .map(|e| connector::Extension {
                namespace: e.namespace.to_owned(),
                schema_version: e.schema_version.to_owned(),
                data: e.data,
            })
            .collect(),
        source_position: None,
        withdraw: false,
    }
}

fn hints(from: contract::Hints) -> connector::Hints {
    connector::Hints {
        ttl_seconds: from.ttl_seconds,
        max_age_seconds: from.max_age_seconds,
        expires: from.expires,
        update_period_seconds: from.update_period_seconds,
        skip_hours: from.skip_hours,
        skip_days: from
            .skip_days
            .into_iter()
            .map(|d| match d {
                Weekday::Monday => connector::Weekday::Monday,
                Weekday::Tuesday => connector::Weekday::Tuesday,
                Weekday::Wednesday => connector::Weekday::Wednesday,
                Weekday::Thursday => connector::Weekday::Thursday,
                Weekday::Friday => connector::Weekday::Friday,
                Weekday::Saturday => connector::Weekday::Saturday,
                Weekday::Sunday => connector::Weekday::Sunday,
            })
            .collect(),
        retry_after_seconds: from.retry_after_seconds,
    }
}

impl connector::Guest for Component {
    fn describe() -> connector::Descriptor {
        install_panic_hook();
        connector::Descriptor {
            id: describe::ID.to_owned(),
            version: describe::VERSION.to_owned(),
            description: describe::DESCRIPTION.to_owned(),
            kinds: vec![connector::Kind {
                name: describe::KIND.to_owned(),
                description: "One feed, polled at an interval".to_owned(),
                config_schema: crate::config::CONFIG_SCHEMA.to_owned(),
                credential_schema: Some(crate::config::CREDENTIAL_SCHEMA.to_owned()),
                credential_required: false,
                credential_fields: describe::CREDENTIAL_FIELDS
                    .into_iter()
                    .map(|(name, placement)| connector::CredentialField {
                        name: name.to_owned(),
                        placement: match placement {
                            Placement::BasicUsername => connector::Placement::BasicUsername,
                            Placement::BasicPassword => connector::Placement::BasicPassword,
                            Placement::Bearer => connector::Placement::Bearer,
                        },
                    })
                    .collect(),
                default_interval_seconds: describe::DEFAULT_INTERVAL_SECONDS,
            }],
            configuration_schema: crate::config::CONFIGURATION_SCHEMA.to_owned(),
            limits: connector::Limits {
                max_items: describe::MAX_ITEMS,
                max_page_bytes: describe::MAX_PAGE_BYTES,
                max_checkpoint_bytes: describe::MAX_CHECKPOINT_BYTES,
                timeout_ms: describe::TIMEOUT_MS,
            },
            extensions: describe::EXTENSIONS
                .into_iter()
                .map(|(name, schema_version, schema)| connector::ExtensionNamespace {
                    name: name.to_owned(),
                    schema_version: schema_version.to_owned(),
                    schema: schema.to_owned(),
                })
                .collect(),
        }
    }

    fn fetch(call: connector::Invocation) -> Result<connector::Page, connector::Failure> {
        install_panic_hook();
        let page = fetch::fetch(&mut Host, &invocation(call)).map_err(failure)?;
        Ok(connector::Page {
            items: page.items.into_iter().map(item).collect(),
            checkpoint: page.checkpoint,
            more: page.more,
            not_due: page.not_due,
            reads: page.reads,
            notice: None,
            window: page.window.map(|w| {
                w.into_iter()
                    .map(|e| connector::WindowEntry { record_key: e.record_key, position: e.position })
                    .collect()
            }),
            hints: hints(page.hints),
            diagnostics: page.diagnostics,
        })
    }

    fn check_credential(call: connector::Invocation) -> Result<connector::CredentialStatus, connector::Failure> {
        install_panic_hook();
        fetch::check_credential(&mut Host, &invocation(call)).map_err(failure)?;
        Ok(connector::CredentialStatus { expires_at: None })
    }
}

impl content::Guest for Component {
    fn render(fragments: Vec<content::Fragment>, forms: Vec<content::Form>) -> Vec<Vec<content::Rendered>> {
        install_panic_hook();
        let forms: Vec<_> = forms
            .into_iter()
            .map(|form| match form {
                content::Form::Text => render::Form::Text,
                content::Form::Markdown => render::Form::Markdown,
                content::Form::EntryXml => render::Form::EntryXml,
                content::Form::SafeHtml => render::Form::SafeHtml,
            })
            .collect();
        fragments
            .into_iter()
            .map(|f| {
                let markup = match f.kind {
                    content::FragmentKind::Html => Markup::Html,
                    content::FragmentKind::Xhtml => Markup::Xhtml,
                    content::FragmentKind::Text => Markup::Text,
                };
                let rendered = render::render(&f.source, markup, f.base_url.as_deref(), &forms).into_iter();
                rendered
                    .map(|r| content::Rendered { output: r.output, truncated: r.truncated, degraded: r.degraded })
                    .collect()
            })
            .collect()
    }
}

/// uuid, by way of feed-rs, asks for randomness; there is none, and nothing asks at run time (`parse::media`).
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(_dest: *mut u8, _len: usize) -> Result<(), getrandom::Error> {
    Err(getrandom::Error::UNSUPPORTED)
}
