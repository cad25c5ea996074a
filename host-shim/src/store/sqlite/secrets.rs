//! Sealed credentials and the keys of the API.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde_json::{Value, json};

use super::instances::{change, remember, used};
use super::rows;
use crate::store::model::{ApiKey, Deposit, Idempotency, Instance, Sealed, StoredSecret};
use crate::store::{Result, StoreError};

/// Puts a credential into an instance, the first one or another.
pub(super) fn keep(t: &Transaction<'_>, connector_id: &str, deposit: &Deposit, now: i64) -> Result<()> {
    t.execute(
        "UPDATE instance SET credential = ?2, credential_key = ?3, credential_version = credential_version + 1, \
         credential_deposited_at = ?4, credential_expires_at = ?5 WHERE connector_id = ?1",
        params![connector_id, deposit.sealed.bytes, deposit.sealed.key_id, now, deposit.expires_at],
    )?;
    Ok(())
}

pub(super) fn deposit(
    t: &Transaction<'_>,
    connector_id: &str,
    deposit: &Deposit,
    once: &Idempotency,
    now: i64,
) -> Result<Instance> {
    let instance = rows::instance(t, connector_id)?;
    if used(t, once)?.is_some() {
        return Ok(instance);
    }
    keep(t, connector_id, deposit, now)?;
    if instance.next_run_because == "gone" {
        // With another credential the source may be there again.
        super::instances::pull_in(t, connector_id, now, "requested")?;
    }
    remember(t, once, connector_id, now)?;
    let instance = rows::instance(t, connector_id)?;
    let version = instance.credential.map_or(0, |c| c.version);
    let resource = ("connector", connector_id);
    let data = json!({"version": version});
    change(t, now, "connector.credential_replaced", &instance.new.corpus_id, resource, &data)?;
    Ok(instance)
}

const SECRET: &str = "seq, connector_id, credential_version, credential, credential_key FROM instance \
    WHERE credential IS NOT NULL";

fn read_secret(row: &Row<'_>) -> rusqlite::Result<StoredSecret> {
    Ok(StoredSecret {
        seq: row.get(0)?,
        connector_id: row.get(1)?,
        version: row.get(2)?,
        sealed: Sealed { bytes: row.get(3)?, key_id: row.get(4)? },
    })
}

pub(super) fn secret(connection: &Connection, connector_id: &str) -> Result<Option<StoredSecret>> {
    Ok(connection
        .prepare_cached(&format!("SELECT {SECRET} AND connector_id = ?1"))?
        .query_row([connector_id], read_secret)
        .optional()?)
}

pub(super) fn not_under(connection: &Connection, key_id: &str, after: i64, limit: u32) -> Result<Vec<StoredSecret>> {
    let rows = connection
        .prepare_cached(&format!("SELECT {SECRET} AND credential_key <> ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"))?
        .query_map(params![key_id, after, limit], read_secret)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

pub(super) fn reseal(t: &Transaction<'_>, old: &StoredSecret, new: &Sealed) -> Result<bool> {
    let updated = t.execute(
        "UPDATE instance SET credential = ?4, credential_key = ?5 \
         WHERE seq = ?1 AND credential_version = ?2 AND credential_key = ?3",
        params![old.seq, old.version, old.sealed.key_id, new.bytes, new.key_id],
    )?;
    Ok(updated == 1)
}

const KEY: &str = "SELECT key_id, name, hash, scopes, corpora, created_at, revoked_at FROM api_key";

fn read_key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let corpora: Option<String> = row.get(4)?;
    Ok(ApiKey {
        key_id: row.get(0)?,
        name: row.get(1)?,
        hash: row.get(2)?,
        scopes: row.get(3)?,
        corpora: corpora.map(|text| serde_json::from_str(&text).unwrap_or_default()),
        created_at: row.get(5)?,
        revoked_at: row.get(6)?,
    })
}

pub(super) fn keys(connection: &Connection) -> Result<Vec<ApiKey>> {
    let rows = connection
        .prepare_cached(&format!("{KEY} ORDER BY key_id"))?
        .query_map([], read_key)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

pub(super) fn add_key(t: &Transaction<'_>, key: &ApiKey) -> Result<()> {
    let corpora = key.corpora.as_ref().map(|c| Value::from(c.as_slice()).to_string());
    t.execute(
        "INSERT INTO api_key (key_id, name, hash, scopes, corpora, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![key.key_id, key.name, key.hash, key.scopes, corpora, key.created_at],
    )?;
    Ok(())
}

pub(super) fn revoke_key(t: &Transaction<'_>, key_id: &str, now: i64) -> Result<ApiKey> {
    t.execute("UPDATE api_key SET revoked_at = coalesce(revoked_at, ?2) WHERE key_id = ?1", params![key_id, now])?;
    t.query_row(&format!("{KEY} WHERE key_id = ?1"), [key_id], read_key)
        .optional()?
        .ok_or(StoreError::NotFound("the key"))
}
