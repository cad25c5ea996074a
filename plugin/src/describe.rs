//! The descriptor: what the connector is.
//!
//! Owns the manifest. The component explains itself by it; no file lies beside it.

use crate::{checkpoint, config, page, record};

/// Identifier, also the first extension namespace.
pub const ID: &str = "connector.rss";

/// Version of the connector.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One sentence for people.
pub const DESCRIPTION: &str = "Turns each item of an RSS, Atom or JSON feed into a keyed, revision-hashed record";

/// The one kind that is served.
pub const KIND: &str = "rss";

/// Seconds between two polls where an instance names none.
pub const DEFAULT_INTERVAL_SECONDS: u32 = 300;

/// Milliseconds that one call may take.
pub const TIMEOUT_MS: u32 = 30_000;

/// Bytes of one page, everything counted: the items are bounded by [`page::MAX_BYTES`] plus the last one.
pub const MAX_PAGE_BYTES: u64 = 16 * 1_024 * 1_024;

/// Bytes of a checkpoint that are promised.
pub const MAX_CHECKPOINT_BYTES: u32 = 128 * 1_024;

/// Items of one page that are promised.
pub const MAX_ITEMS: u32 = page::MAX_ITEMS as u32;

const _: () = assert!(checkpoint::MAX_BYTES <= MAX_CHECKPOINT_BYTES as usize);

/// An extension namespace: name, version, JSON Schema.
pub const EXTENSIONS: [(&str, &str, &str); 3] = [
    (record::EXTENSION, record::SCHEMA_VERSION, EXTENSION_SCHEMA),
    (record::PROVENANCE, record::SCHEMA_VERSION, PROVENANCE_SCHEMA),
    (record::MORE, record::SCHEMA_VERSION, MORE_SCHEMA),
];

/// JSON Schema of `connector.rss`.
pub const EXTENSION_SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["item", "feed"],
  "properties": {
    "item": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "guid": { "type": "string" },
        "link": { "type": "string" },
        "links": { "type": "array", "maxItems": 20, "items": { "type": "string" } },
        "authors": {
          "type": "array",
          "maxItems": 20,
          "items": {
            "type": "object",
            "additionalProperties": false,
            "properties": { "name": { "type": "string" }, "email": { "type": "string" } }
          }
        },
        "published": { "type": "string", "format": "date-time" },
        "updated": { "type": "string", "format": "date-time" },
        "categories": { "type": "array", "maxItems": 50, "items": { "type": "string" } },
        "enclosures": {
          "type": "array",
          "maxItems": 20,
          "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["url"],
            "properties": { "url": { "type": "string" }, "type": { "type": "string" }, "length": { "type": "string" } }
          }
        },
        "truncated": { "type": "boolean" }
      }
    },
    "feed": {
      "type": "object",
      "additionalProperties": false,
      "required": ["format"],
      "properties": {
        "format": { "enum": ["rss", "atom", "json"] },
        "version": { "type": "string" },
        "title": { "type": "string" },
        "link": { "type": "string" },
        "language": { "type": "string" }
      }
    }
  }
}"#;

/// JSON Schema of `connector.rss.more`.
pub const MORE_SCHEMA: &str = r##"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "media": {
      "type": "array",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["kind"],
        "properties": {
          "kind": { "enum": ["content", "thumbnail", "player", "image", "banner"] },
          "url": { "type": "string" },
          "type": { "type": "string" },
          "medium": { "type": "string" },
          "length": { "type": "string" },
          "duration_seconds": { "type": "integer" },
          "width": { "type": "string" },
          "height": { "type": "string" },
          "title": { "type": "string" },
          "description": { "type": "string" }
        }
      }
    },
    "itunes": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "duration_seconds": { "type": "integer" },
        "title": { "type": "string" },
        "subtitle": { "type": "string" },
        "author": { "type": "string" },
        "season": { "type": "string" },
        "episode": { "type": "string" },
        "episode_type": { "type": "string" },
        "explicit": { "type": "string" },
        "block": { "type": "string" },
        "image": { "type": "string" }
      }
    },
    "podcast": { "type": "array", "items": { "$ref": "#/$defs/element" } },
    "source": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "title": { "type": "string" },
        "link": { "type": "string" },
        "id": { "type": "string" },
        "updated": { "type": "string" },
        "rights": { "type": "string" }
      }
    },
    "rights": { "type": "string" },
    "language": { "type": "string" },
    "comments": { "type": "string" },
    "geo": { "type": "array", "items": { "$ref": "#/$defs/element" } },
    "other": { "type": "array", "items": { "$ref": "#/$defs/element" } }
  },
  "$defs": {
    "element": {
      "type": "object",
      "additionalProperties": false,
      "required": ["name"],
      "properties": {
        "namespace": { "type": "string" },
        "name": { "type": "string" },
        "attributes": { "type": "array", "items": { "type": "array", "items": { "type": "string" } } },
        "text": { "type": "string" },
        "children": { "type": "array", "items": { "$ref": "#/$defs/element" } }
      }
    }
  }
}"##;

/// JSON Schema of `connector.rss.provenance`.
pub const PROVENANCE_SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["key_basis", "body_origin", "published_origin"],
  "properties": {
    "key_basis": {
      "enum": ["guid", "atom-id", "json-id", "rdf-about", "link", "guid+link", "link+title", "content"]
    },
    "body_origin": { "type": "string" },
    "published_origin": { "enum": ["feed", "none"] },
    "base_url": { "type": "string" }
  }
}"#;

/// How each member of a credential is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// User name of HTTP Basic.
    BasicUsername,
    /// Password of HTTP Basic.
    BasicPassword,
    /// Bearer token.
    Bearer,
}

/// The members of a credential.
pub const CREDENTIAL_FIELDS: [(&str, Placement); 3] =
    [("username", Placement::BasicUsername), ("password", Placement::BasicPassword), ("token", Placement::Bearer)];

/// Schemas by their place in the descriptor: configuration, config, credential.
pub const SCHEMAS: [&str; 3] = [config::CONFIGURATION_SCHEMA, config::CONFIG_SCHEMA, config::CREDENTIAL_SCHEMA];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_json_and_every_namespace_belongs_to_the_connector() {
        for (name, _, schema) in EXTENSIONS {
            assert!(name == ID || name.starts_with("connector.rss."));
            assert!(serde_json::from_str::<serde_json::Value>(schema).is_ok());
        }
    }
}
