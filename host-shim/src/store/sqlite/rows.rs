//! Rows as types.

use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::store::model::{CredentialInfo, Instance, LastError, Moved, NewInstance};
use crate::store::{Result, StoreError};

/// The columns of an instance, in the order that [`read_instance`] reads them.
pub(super) const INSTANCE: &str = "seq, connector_id, corpus_id, source_namespace, name, labels, kind, config, \
    interval_seconds, silent_after_seconds, credential_warning_seconds, created_at, disabled_at, diagnostics, \
    next_run_at, next_run_because, not_before, last_run_at, last_success_at, last_item_at, error_class, error_code, \
    error_message, error_at, access_error, health, reads_day, reads_today, paused_at, credential_version, \
    credential_deposited_at, credential_expires_at, hints, error_detail, failures, throttled_since, throttled_host, \
    moved_to, moved_since, moved_days, due_at, full_at";

/// What a version's content hashes to, so that a damaged one is known when it is read.
pub(super) fn content_digest(parts: &str, extensions: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    // JSON has no such byte.
    [parts.as_bytes(), &[0], extensions.as_bytes()].iter().for_each(|bytes| hash.update(bytes));
    hash.finalize().into()
}

/// JSON that this program wrote.
pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn credential(row: &Row<'_>) -> rusqlite::Result<Option<CredentialInfo>> {
    let version: u32 = row.get(29)?;
    let deposited_at: Option<i64> = row.get(30)?;
    let expires_at = row.get(31)?;
    Ok(deposited_at.filter(|_| version > 0).map(|deposited_at| CredentialInfo { version, deposited_at, expires_at }))
}

pub(super) fn read_instance(row: &Row<'_>) -> rusqlite::Result<Instance> {
    let labels: String = row.get(5)?;
    let config: String = row.get(7)?;
    let diagnostics: Option<String> = row.get(13)?;
    let code: Option<String> = row.get(21)?;
    let hints: Option<String> = row.get(32)?;
    let last_error = match code {
        Some(code) => Some(LastError { class: row.get(20)?, code, message: row.get(22)?, at: row.get(23)? }),
        None => None,
    };
    Ok(Instance {
        seq: row.get(0)?,
        new: NewInstance {
            connector_id: row.get(1)?,
            corpus_id: row.get(2)?,
            source_namespace: row.get(3)?,
            name: row.get(4)?,
            labels: json(&labels),
            kind: row.get(6)?,
            config: json(&config),
            interval_seconds: row.get(8)?,
            silent_after_seconds: row.get(9)?,
            credential_warning_seconds: row.get(10)?,
            checkpoint: None,
            credential: None,
        },
        created_at: row.get(11)?,
        disabled_at: row.get(12)?,
        diagnostics: diagnostics.as_deref().map(json),
        next_run_at: row.get(14)?,
        next_run_because: row.get(15)?,
        due_at: row.get(40)?,
        full_at: row.get(41)?,
        not_before: row.get(16)?,
        last_run_at: row.get(17)?,
        last_success_at: row.get(18)?,
        last_item_at: row.get(19)?,
        last_error,
        access_error: row.get(24)?,
        health: row.get(25)?,
        reads: (row.get(26)?, row.get(27)?),
        paused_at: row.get(28)?,
        credential: credential(row)?,
        hints: hints.as_deref().map(json),
        error_detail: row.get(33)?,
        failures: row.get(34)?,
        throttled: row.get::<_, Option<i64>>(35)?.zip(row.get(36)?),
        moved: match row.get::<_, Option<String>>(37)? {
            Some(to) => Some(Moved { to, since: row.get(38)?, days: row.get(39)? }),
            None => None,
        },
    })
}

pub(super) fn instance(connection: &Connection, connector_id: &str) -> Result<Instance> {
    connection
        .prepare_cached(&format!("SELECT {INSTANCE} FROM instance WHERE connector_id = ?1"))?
        .query_row([connector_id], read_instance)
        .optional()?
        .ok_or(StoreError::NotFound("the connector"))
}

/// The place holders of a list in a statement.
pub(super) fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}
