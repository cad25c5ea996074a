//! Configuration of the pin and config of an instance: their JSON Schemas and what is made of them.
//!
//! Owns both forms. Unknown members are refused by name, so that a typing error does not go unnoticed.

use serde::Deserialize;
use url::Url;

use crate::contract::Failure;
use crate::policy::Policy;

/// Longest address of a feed in characters.
pub const MAX_URL_CHARS: usize = 2_048;

/// Characters of a reason that are told.
const MAX_REASON_CHARS: usize = 200;

/// JSON Schema of an instance's config.
pub const CONFIG_SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["url"],
  "properties": {
    "url": {
      "type": "string",
      "maxLength": 2048,
      "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\s]+([/?#]\\S*)?$",
      "description": "Address of the feed, http or https, without user name and password"
    },
    "honor_ttl": {
      "type": ["boolean", "null"],
      "default": true,
      "description": "Wait as long as the feed's ttl asks, at most an hour"
    },
    "identity": {
      "enum": ["auto", "guid", "guid+link", "link", "link+title", "content", null],
      "default": "auto",
      "description": "What a record key is made of; auto keeps the rule until a document shows that it loses items"
    }
  }
}"#;

/// JSON Schema of the pin's configuration.
pub const CONFIGURATION_SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "allow_private_addresses": {
      "type": "boolean",
      "default": false,
      "description": "Lets the host request private addresses; for local tests only"
    }
  }
}"#;

/// JSON Schema of a credential.
pub const CREDENTIAL_SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "oneOf": [
    {
      "type": "object",
      "additionalProperties": false,
      "required": ["username", "password"],
      "properties": {
        "username": { "type": "string", "minLength": 1 },
        "password": { "type": "string", "minLength": 1, "writeOnly": true }
      }
    },
    {
      "type": "object",
      "additionalProperties": false,
      "required": ["token"],
      "properties": { "token": { "type": "string", "minLength": 1, "writeOnly": true } }
    }
  ]
}"#;

/// The pin's configuration. The host acts on it; the component only refuses what is none.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Configuration {
    #[serde(rename = "allow_private_addresses")]
    _allow_private_addresses: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    url: String,
    #[serde(default)]
    honor_ttl: Option<bool>,
    #[serde(default)]
    identity: Option<Identity>,
}

/// The member `identity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "Named")]
pub enum Identity {
    /// The rule until a document shows that it loses items.
    #[default]
    Auto,
    /// One policy, whatever the documents show.
    Fixed(Policy),
}

/// The names of [`Identity`].
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Named {
    Auto(Auto),
    Policy(Policy),
}

#[derive(Debug, Deserialize)]
enum Auto {
    #[serde(rename = "auto")]
    Auto,
}

impl From<Named> for Identity {
    fn from(named: Named) -> Self {
        match named {
            Named::Auto(Auto::Auto) => Self::Auto,
            Named::Policy(policy) => Self::Fixed(policy),
        }
    }
}

/// The config of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Address of the feed, as given.
    pub url: String,
    /// Whether the feed's ttl is waited for.
    pub honor_ttl: bool,
    /// What a record key is made of.
    pub identity: Identity,
}

/// Checks the configuration of the pin.
///
/// # Errors
/// `invalid_configuration` where it is not an object of known members.
pub fn check_configuration(json: &str) -> Result<(), Failure> {
    let text = if json.trim().is_empty() { "{}" } else { json };
    if text.trim() == "null" {
        return Ok(());
    }
    object::<Configuration>(text).map(|_| ()).map_err(|e| {
        Failure::source("invalid_configuration", format!("The configuration of the pin is not valid: {}", reason(&e)))
    })
}

/// Reads the config of an instance.
///
/// # Errors
/// `invalid_config` where it is not an object of known members with an address that may be a feed's.
pub fn config(json: &str) -> Result<Config, Failure> {
    let invalid =
        |why: String| Failure::source("invalid_config", format!("The config of the instance is not valid: {why}"));
    let raw: RawConfig = object(json).map_err(|e| invalid(reason(&e)))?;
    check_url(&raw.url).map_err(|why| invalid(why.to_owned()))?;
    Ok(Config { url: raw.url, honor_ttl: raw.honor_ttl.unwrap_or(true), identity: raw.identity.unwrap_or_default() })
}

/// Reads a JSON object; an array of the right length would pass for one in serde's eyes.
fn object<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, serde_json::Error> {
    if json.trim_start().starts_with('[') {
        return Err(serde::de::Error::custom("not an object"));
    }
    serde_json::from_str(json)
}

fn check_url(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("url is empty; give the address of the feed");
    }
    if text.chars().count() > MAX_URL_CHARS {
        return Err("url is longer than 2,048 characters");
    }
    if text.contains(char::is_whitespace) {
        return Err("url contains white space");
    }
    let url = Url::parse(text).map_err(|_| "url is not an absolute address")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("url must start with http:// or https://");
    }
    // The written text decides: an empty user name vanishes in parsing.
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or("");
    if authority.contains('@') {
        return Err("url contains a user name or password; deposit a credential instead");
    }
    Ok(())
}

/// The JSON reader's complaint without the values it quotes.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if error.is_data() && (text.starts_with("unknown field") || text.starts_with("missing field")) {
        // The name of a member comes from whoever wrote the config, so it is cut and made one line.
        let shown = text.split(" at line").next().unwrap_or(&text);
        return shown.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_REASON_CHARS).collect();
    }
    format!("unexpected value or form at line {} column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configs_are_read_or_refused_with_a_reason() {
        let good = config(r#"{"url":"https://a.example/f"}"#).unwrap();
        assert_eq!(good, Config { url: "https://a.example/f".into(), honor_ttl: true, identity: Identity::Auto });
        assert!(config(r#"{"url":"HTTP://a.example","honor_ttl":null}"#).unwrap().honor_ttl);
        assert!(!config(r#"{"url":"http://a.example/","honor_ttl":false}"#).unwrap().honor_ttl);
        let identity =
            |name: &str| config(&format!(r#"{{"url":"https://a.example/","identity":{name}}}"#)).unwrap().identity;
        assert_eq!(identity("null"), Identity::Auto);
        assert_eq!(identity("\"auto\""), Identity::Auto);
        assert_eq!(identity("\"link+title\""), Identity::Fixed(Policy::LinkTitle));
        for (bad, word) in [
            ("", "line 1"),
            ("{}", "missing field `url`"),
            (r#"{"url":"https://a.example/","ur":1}"#, "unknown field `ur`"),
            (r#"{"url":7}"#, "line 1"),
            (r#"{"url":"https://a.example/","identity":"gid"}"#, "line 1"),
            (r#"{"url":""}"#, "empty"),
            (r#"{"url":"ftp://a.example/"}"#, "http"),
            (r#"{"url":"/relative"}"#, "absolute"),
            (r#"{"url":"https://u:secret@a.example/"}"#, "credential"),
            (r#"{"url":"https://@a.example/"}"#, "credential"),
            (r#"{"url":"https://a.example/a b"}"#, "white space"),
        ] {
            let failure = config(bad).unwrap_err();
            assert_eq!(failure.code, "invalid_config");
            assert!(failure.message.contains(word), "{bad}: {}", failure.message);
            assert!(!failure.message.contains("secret"));
        }
    }

    #[test]
    fn the_pins_configuration_may_be_absent_but_not_unknown() {
        for good in ["", "{}", "null", r#"{"allow_private_addresses":true}"#] {
            assert_eq!(check_configuration(good), Ok(()));
        }
        for bad in ["[]", "7", r#"{"allow_private":true}"#, r#"{"allow_private_addresses":1}"#] {
            assert_eq!(check_configuration(bad).unwrap_err().code, "invalid_configuration", "{bad}");
        }
    }

    #[test]
    fn the_schemas_are_json() {
        for schema in [CONFIG_SCHEMA, CONFIGURATION_SCHEMA, CREDENTIAL_SCHEMA] {
            assert!(serde_json::from_str::<serde_json::Value>(schema).is_ok());
        }
    }
}
