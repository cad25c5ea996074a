//! `host-shim keys`: who may call the API of a data folder. A running service sees a change at once.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::output::{self, CliError};
use super::setup::Common;
use crate::corpus::access::Scope;
use crate::corpus::clock::rfc3339;
use crate::server::make_key;
use crate::store::model::ApiKey;
use crate::store::sqlite::Sqlite;
use crate::store::{Store, StoreError};

/// Keys of one data folder: each call compares all of them.
const MAX_KEYS: usize = 1_000;

/// Characters of a key's name.
const MAX_NAME_CHARS: usize = 100;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Configuration (TOML) that names the data folder.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key; it is shown once.
    Create {
        /// What the key may do: connectors:read, connectors:write, connectors:admin, content:read, changes:read.
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
        scopes: Vec<Scope>,
        /// A corpus that the key may know of [default: all].
        #[arg(long = "corpus", value_name = "CORPUS")]
        corpora: Vec<String>,
        /// What people call it.
        #[arg(long, default_value = "", value_parser = name)]
        name: String,
    },
    /// List the keys, without the keys themselves.
    List,
    /// Revoke a key for good.
    Revoke {
        /// Its identifier, as `list` shows it.
        key_id: String,
    },
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::of(text).ok_or_else(|| {
        let all: Vec<&str> = Scope::ALL.iter().map(|s| s.name()).collect();
        format!("one of {}", all.join(", "))
    })
}

fn name(text: &str) -> Result<String, String> {
    let valid = text.chars().count() <= MAX_NAME_CHARS && !text.chars().any(char::is_control);
    if valid { Ok(text.to_owned()) } else { Err(format!("one line of at most {MAX_NAME_CHARS} characters")) }
}

pub(super) fn run(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let config = common.configuration(arguments.config.as_deref())?;
    std::fs::create_dir_all(&config.data_dir).map_err(|e| CliError::file("use", &config.data_dir, e))?;
    let store = Sqlite::open(&config.data_dir)?;
    match &arguments.action {
        Action::Create { scopes, corpora, name } => create(common, &store, scopes, corpora, name)?,
        Action::List => {
            for key in store.api_keys()? {
                show(common, &key, None)?;
            }
        }
        Action::Revoke { key_id } => {
            let now = jiff::Timestamp::now().as_millisecond();
            show(common, &store.revoke_api_key(key_id, now)?, None)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn create(common: &Common, store: &Sqlite, scopes: &[Scope], corpora: &[String], name: &str) -> Result<(), CliError> {
    for corpus_id in corpora {
        match store.corpus(corpus_id) {
            Err(StoreError::NotFound(_)) => {
                return Err(CliError::Usage(format!("corpus {corpus_id} does not exist; GET /v0/corpora lists them")));
            }
            other => drop(other?),
        }
    }
    if store.api_keys()?.len() >= MAX_KEYS {
        return Err(CliError::Usage(format!("a data folder has at most {MAX_KEYS} keys")));
    }
    let corpora = Some(corpora.to_vec()).filter(|c| !c.is_empty());
    let (key, stored) = make_key(name, scopes, corpora)?;
    store.add_api_key(&stored)?;
    show(common, &stored, Some(&key))
}

fn show(common: &Common, key: &ApiKey, secret: Option<&str>) -> Result<(), CliError> {
    let scopes: Vec<&str> = key.scopes.split(' ').collect();
    if common.json {
        let mut shown = json!({
            "key_id": key.key_id, "name": key.name, "scopes": scopes, "corpora": key.corpora,
            "created_at": rfc3339(key.created_at), "revoked_at": key.revoked_at.map(rfc3339),
        });
        if let (Some(shown), Some(secret)) = (shown.as_object_mut(), secret) {
            shown.insert("key".to_owned(), Value::from(secret));
        }
        return output::json_line(&shown);
    }
    let corpora = key.corpora.as_ref().map_or_else(|| "all corpora".to_owned(), |c| c.join(","));
    let state = key.revoked_at.map_or_else(String::new, |at| format!("  revoked {}", rfc3339(at)));
    output::line(&format!(
        "{}  {}  {corpora}  {}  {}{state}",
        key.key_id,
        scopes.join(","),
        rfc3339(key.created_at),
        key.name
    ))?;
    match secret {
        Some(secret) => output::line(&format!("API key, shown this once: {secret}")),
        None => Ok(()),
    }
}
