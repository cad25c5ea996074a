//! The descriptor of a component, checked: what the host may rely on.
//!
//! Owns the bounds of a descriptor. Limits that it names are cut to the host's own.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::answer::is_code;
use super::bindings::exports::corpus::connector::connector as wit;
use super::error::PinError;
use crate::egress::credential::Placement;

/// Kinds of one component.
const MAX_KINDS: usize = 32;
/// Extension namespaces of one component.
const MAX_NAMESPACES: usize = 32;
/// Bytes of one JSON Schema.
const MAX_SCHEMA_BYTES: usize = 256 * 1_024;
/// Bytes of an identifier (Quivr's bound).
const MAX_ID_BYTES: usize = 64;
/// Characters of a description (Quivr's bound).
const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// Seconds between two runs that a kind may ask for by default.
const INTERVAL_SECONDS: std::ops::RangeInclusive<u32> = 30..=86_400;

/// The host's own bounds, which a descriptor can only tighten.
pub const HOST_LIMITS: Limits = Limits {
    max_items: 250,
    max_page_bytes: 16 * 1_024 * 1_024,
    max_checkpoint_bytes: 128 * 1_024,
    timeout_ms: 60_000,
};

/// Bounds of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Items of a page.
    pub max_items: u32,
    /// Bytes of a page.
    pub max_page_bytes: u64,
    /// Bytes of a checkpoint.
    pub max_checkpoint_bytes: u32,
    /// Milliseconds of a call.
    pub timeout_ms: u32,
}

/// A kind of source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kind {
    /// Name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// JSON Schema of an instance's config.
    pub config_schema: Value,
    /// JSON Schema of its credential.
    pub credential_schema: Option<Value>,
    /// Whether it needs one.
    pub credential_required: bool,
    /// How each member of it is sent.
    #[serde(serialize_with = "show_fields")]
    pub credential_fields: Vec<(String, Placement)>,
    /// Seconds between two runs.
    pub default_interval_seconds: u32,
}

/// A namespace of extension data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Namespace {
    /// Name.
    pub name: String,
    /// Schema version.
    pub schema_version: String,
    /// JSON Schema of the data.
    pub schema: Value,
}

/// What a component is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Descriptor {
    /// Identifier.
    pub id: String,
    /// Version.
    pub version: String,
    /// One sentence.
    pub description: String,
    /// Kinds.
    pub kinds: Vec<Kind>,
    /// JSON Schema of the pin's configuration.
    pub configuration_schema: Value,
    /// Bounds in force.
    pub limits: Limits,
    /// Extension namespaces.
    pub extensions: Vec<Namespace>,
}

impl Descriptor {
    /// The kind of that name.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|k| k.name == name)
    }

    /// Checks what the component returned.
    pub(super) fn check(from: wit::Descriptor) -> Result<Self, PinError> {
        let bad = |why: &str| PinError::Descriptor(why.to_owned());
        if from.id.len() > MAX_ID_BYTES || !is_identifier(&from.id) {
            return Err(bad("id is not a dotted lower-case name of at most 64 bytes"));
        }
        let version_ok =
            !from.version.is_empty() && from.version.len() <= 64 && from.version.bytes().all(|b| b.is_ascii_graphic());
        if !version_ok {
            return Err(bad("version is not a version"));
        }
        if from.kinds.is_empty() || from.kinds.len() > MAX_KINDS {
            return Err(bad("there must be 1 to 32 kinds"));
        }
        if from.extensions.len() > MAX_NAMESPACES {
            return Err(bad("there are more than 32 extension namespaces"));
        }
        let kinds = from.kinds.into_iter().map(kind).collect::<Result<Vec<_>, _>>()?;
        let names: BTreeSet<&str> = kinds.iter().map(|k| k.name.as_str()).collect();
        if names.len() != kinds.len() {
            return Err(bad("a kind is there twice"));
        }
        let extensions = from.extensions.into_iter().map(|e| namespace(e, &from.id)).collect::<Result<Vec<_>, _>>()?;
        let names: BTreeSet<&str> = extensions.iter().map(|e| e.name.as_str()).collect();
        if names.len() != extensions.len() {
            return Err(bad("an extension namespace is there twice"));
        }
        Ok(Self {
            configuration_schema: schema(&from.configuration_schema)?,
            description: description(from.description)?,
            limits: Limits {
                max_items: from.limits.max_items.min(HOST_LIMITS.max_items),
                max_page_bytes: from.limits.max_page_bytes.min(HOST_LIMITS.max_page_bytes),
                max_checkpoint_bytes: from.limits.max_checkpoint_bytes.min(HOST_LIMITS.max_checkpoint_bytes),
                timeout_ms: from.limits.timeout_ms.min(HOST_LIMITS.timeout_ms),
            },
            id: from.id,
            version: from.version,
            kinds,
            extensions,
        })
    }
}

/// Lower-case letters, digits, `_` and `-` in parts joined by dots.
fn is_identifier(text: &str) -> bool {
    text.split('.').all(|part| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
    })
}

fn description(text: String) -> Result<String, PinError> {
    if text.is_empty() || text.chars().count() > MAX_DESCRIPTION_CHARS || text.chars().any(char::is_control) {
        return Err(PinError::Descriptor("a description must be one line of 1 to 1,024 characters".to_owned()));
    }
    Ok(text)
}

fn schema(text: &str) -> Result<Value, PinError> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(PinError::Descriptor("a JSON Schema is longer than 256 KiB".to_owned()));
    }
    match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Bool(_))) => Ok(value),
        _ => Err(PinError::Descriptor("a JSON Schema is not a JSON object".to_owned())),
    }
}

fn kind(from: wit::Kind) -> Result<Kind, PinError> {
    if !is_code(&from.name, 32) {
        return Err(PinError::Descriptor("the name of a kind is not of the form [a-z][a-z0-9_]{0,31}".to_owned()));
    }
    if !INTERVAL_SECONDS.contains(&from.default_interval_seconds) {
        return Err(PinError::Descriptor("a default interval is not between 30 and 86,400 seconds".to_owned()));
    }
    let fields = from.credential_fields.into_iter().map(|f| Ok((f.name, placement(f.placement)?)));
    Ok(Kind {
        credential_fields: fields.collect::<Result<Vec<_>, PinError>>()?,
        description: description(from.description)?,
        config_schema: schema(&from.config_schema)?,
        credential_schema: from.credential_schema.as_deref().map(schema).transpose()?,
        credential_required: from.credential_required,
        default_interval_seconds: from.default_interval_seconds,
        name: from.name,
    })
}

fn placement(from: wit::Placement) -> Result<Placement, PinError> {
    let token = |name: String| {
        let ok = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if ok {
            Ok(name)
        } else {
            Err(PinError::Descriptor("a credential is sent under a name that cannot be sent".to_owned()))
        }
    };
    Ok(match from {
        wit::Placement::BasicUsername => Placement::BasicUsername,
        wit::Placement::BasicPassword => Placement::BasicPassword,
        wit::Placement::Bearer => Placement::Bearer,
        wit::Placement::Header(name) => Placement::Header(token(name)?),
        wit::Placement::Query(name) => Placement::Query(token(name)?),
        wit::Placement::Other(_) => {
            return Err(PinError::Descriptor("a credential is sent in a way that this host does not know".to_owned()));
        }
    })
}

fn namespace(from: wit::ExtensionNamespace, id: &str) -> Result<Namespace, PinError> {
    let own = from.name == id || from.name.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'));
    if !own || from.name.len() > 2 * MAX_ID_BYTES || !is_identifier(&from.name) {
        return Err(PinError::Descriptor("an extension namespace does not start with the connector's id".to_owned()));
    }
    if from.schema_version.is_empty() || from.schema_version.len() > 64 {
        return Err(PinError::Descriptor("a schema version is not 1 to 64 bytes long".to_owned()));
    }
    Ok(Namespace { schema: schema(&from.schema)?, name: from.name, schema_version: from.schema_version })
}

fn show_fields<S: serde::Serializer>(fields: &[(String, Placement)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(fields.iter().map(|(name, placement)| {
        let sent = match placement {
            Placement::BasicUsername => "basic-username".to_owned(),
            Placement::BasicPassword => "basic-password".to_owned(),
            Placement::Bearer => "bearer".to_owned(),
            Placement::Header(header) => format!("header:{header}"),
            Placement::Query(parameter) => format!("query:{parameter}"),
        };
        (name, sent)
    }))
}
