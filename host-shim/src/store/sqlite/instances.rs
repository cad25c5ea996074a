//! Writes about corpora and instances.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Value, json};

use super::rows;
use crate::store::model::{Corpus, Idempotency, Instance, NewInstance};
use crate::store::{Created, Result, StoreError};

pub(super) fn change(
    t: &Transaction<'_>,
    at: i64,
    kind: &str,
    corpus_id: &str,
    resource: (&str, &str),
    data: &Value,
) -> Result<()> {
    t.prepare_cached(
        "INSERT INTO change (at, type, corpus_id, resource_kind, resource_id, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![at, kind, corpus_id, resource.0, resource.1, data.to_string()])?;
    Ok(())
}

pub(super) fn used(connection: &Connection, once: &Idempotency) -> Result<Option<String>> {
    let found: Option<(Vec<u8>, String)> = connection
        .prepare_cached("SELECT request, resource_id FROM idempotency WHERE scope = ?1 AND key = ?2")?
        .query_row(params![once.scope, once.key], |r| Ok((r.get(0)?, r.get(1)?)))
        .optional()?;
    match found {
        Some((request, _)) if request != once.request => Err(StoreError::IdempotencyConflict),
        found => Ok(found.map(|(_, id)| id)),
    }
}

pub(super) fn remember(t: &Transaction<'_>, once: &Idempotency, resource_id: &str, now: i64) -> Result<()> {
    t.execute(
        "INSERT OR IGNORE INTO idempotency (scope, key, request, resource_id, at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![once.scope, once.key, once.request, resource_id, now],
    )?;
    Ok(())
}

pub(super) fn create_corpus(t: &Transaction<'_>, corpus: Corpus, once: &Idempotency) -> Result<Created<Corpus>> {
    if let Some(id) = used(t, once)? {
        return Ok(Created { value: super::reads::corpus(t, &id)?, replayed: true });
    }
    t.execute(
        "INSERT INTO corpus (corpus_id, name, created_at) VALUES (?1, ?2, ?3)",
        params![corpus.corpus_id, corpus.name, corpus.created_at],
    )?;
    remember(t, once, &corpus.corpus_id, corpus.created_at)?;
    let resource = ("corpus", corpus.corpus_id.as_str());
    change(t, corpus.created_at, "corpus.created", &corpus.corpus_id, resource, &json!({"name": corpus.name}))?;
    Ok(Created { value: corpus, replayed: false })
}

pub(super) fn create(
    t: &Transaction<'_>,
    new: &NewInstance,
    once: &Idempotency,
    now: i64,
) -> Result<Created<Instance>> {
    if let Some(id) = used(t, once)? {
        return Ok(Created { value: rows::instance(t, &id)?, replayed: true });
    }
    insert(t, new, now)?;
    remember(t, once, &new.connector_id, now)?;
    Ok(Created { value: rows::instance(t, &new.connector_id)?, replayed: false })
}

/// One of many: what keeps this one from being made does not keep the others.
pub(super) fn create_one_of_many(t: &Transaction<'_>, new: &NewInstance, now: i64) -> Result<Result<Instance>> {
    t.execute_batch("SAVEPOINT one")?;
    let made = insert(t, new, now).and_then(|()| rows::instance(t, &new.connector_id));
    match made {
        Err(StoreError::Engine(_) | StoreError::Damaged(_) | StoreError::LostClaim) => return made.map(Ok),
        Err(_) => t.execute_batch("ROLLBACK TO one; RELEASE one")?,
        Ok(_) => t.execute_batch("RELEASE one")?,
    }
    Ok(made)
}

fn insert(t: &Transaction<'_>, new: &NewInstance, now: i64) -> Result<()> {
    super::reads::corpus(t, &new.corpus_id)?;
    // Asked first, so that the reason does not depend on which index the engine looks at.
    let owned: bool = t
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM instance WHERE corpus_id = ?1 AND source_namespace = ?2 AND disabled_at IS NULL)",
        )?
        .query_row(params![new.corpus_id, new.source_namespace], |r| r.get(0))?;
    if owned {
        return Err(StoreError::NamespaceInUse);
    }
    t.execute(
        "INSERT INTO instance (connector_id, corpus_id, source_namespace, name, labels, kind, config, interval_seconds, \
         silent_after_seconds, credential_warning_seconds, created_at, checkpoint, next_run_at, due_at, next_run_because, health) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?11, ?11, 'created', 'active')",
        params![
            new.connector_id,
            new.corpus_id,
            new.source_namespace,
            new.name,
            new.labels.to_string(),
            new.kind,
            new.config.to_string(),
            new.interval_seconds,
            new.silent_after_seconds,
            new.credential_warning_seconds,
            now,
            new.checkpoint,
        ],
    )?;
    if let Some(deposit) = &new.credential {
        super::secrets::keep(t, &new.connector_id, deposit, now)?;
    }
    let data = json!({"kind": new.kind, "source_namespace": new.source_namespace, "name": new.name});
    change(t, now, "connector.created", &new.corpus_id, ("connector", &new.connector_id), &data)
}

pub(super) fn set_paused(
    t: &Transaction<'_>,
    connector_id: &str,
    paused: bool,
    once: &Idempotency,
    now: i64,
) -> Result<Instance> {
    let instance = rows::instance(t, connector_id)?;
    // A request that comes again must not undo what came after it.
    if used(t, once)?.is_some() {
        return Ok(instance);
    }
    remember(t, once, connector_id, now)?;
    if !paused && instance.next_run_because == "gone" {
        // Somebody knows better than the publisher's 410 of then.
        pull_in(t, connector_id, now, "requested")?;
    }
    if instance.paused_at.is_some() == paused {
        return Ok(instance);
    }
    t.execute("UPDATE instance SET paused_at = ?2 WHERE seq = ?1", params![instance.seq, paused.then_some(now)])?;
    let kind = if paused { "connector.paused" } else { "connector.resumed" };
    change(t, now, kind, &instance.new.corpus_id, ("connector", connector_id), &json!({}))?;
    rows::instance(t, connector_id)
}

pub(super) fn set_interval(t: &Transaction<'_>, connector_id: &str, seconds: u32, now: i64) -> Result<Instance> {
    let instance = rows::instance(t, connector_id)?;
    let before = instance.new.interval_seconds;
    if before == seconds {
        return Ok(instance);
    }
    t.execute("UPDATE instance SET interval_seconds = ?2 WHERE seq = ?1", params![instance.seq, seconds])?;
    let soonest = instance.last_run_at.unwrap_or(now) + i64::from(seconds) * 1_000;
    let at = soonest.max(now).max(instance.not_before);
    if seconds < before
        && at < instance.next_run_at
        && !matches!(instance.next_run_because.as_str(), "running" | "gone")
    {
        t.execute(
            "UPDATE instance SET next_run_at = ?2, due_at = ?2, next_run_because = 'interval' WHERE seq = ?1",
            params![instance.seq, at],
        )?;
    }
    let data = json!({"from": before, "to": seconds});
    change(t, now, "connector.schedule_changed", &instance.new.corpus_id, ("connector", connector_id), &data)?;
    rows::instance(t, connector_id)
}

pub(super) fn disable(t: &Transaction<'_>, connector_id: &str, now: i64) -> Result<Instance> {
    let instance = rows::instance(t, connector_id)?;
    if instance.disabled_at.is_some() {
        return Ok(instance);
    }
    // A run in flight writes nothing more: its fence is not the newest any longer.
    t.execute(
        "UPDATE instance SET disabled_at = ?2, lease_until = 0, fence = fence + 1, health = 'disabled' \
         WHERE connector_id = ?1",
        params![connector_id, now],
    )?;
    t.execute(
        "UPDATE run SET outcome = 'abandoned', ended_at = ?2 WHERE instance = ?1 AND outcome = 'running'",
        params![instance.seq, now],
    )?;
    let corpus_id = &instance.new.corpus_id;
    change(t, now, "connector.disabled", corpus_id, ("connector", connector_id), &json!({}))?;
    let data = json!({"from": instance.health, "to": "disabled"});
    change(t, now, "connector.health_changed", corpus_id, ("connector", connector_id), &data)?;
    rows::instance(t, connector_id)
}

pub(super) fn pull_in(t: &Transaction<'_>, connector_id: &str, at: i64, because: &str) -> Result<i64> {
    t.execute(
        "UPDATE instance SET next_run_at = ?2, due_at = ?2, next_run_because = ?3 WHERE connector_id = ?1 \
         AND (next_run_at > ?2 OR next_run_because = 'running')",
        params![connector_id, at, because],
    )?;
    rows::instance(t, connector_id).map(|i| i.next_run_at)
}

pub(super) fn tell_health(t: &Transaction<'_>, connector_id: &str, health: &str, now: i64) -> Result<bool> {
    let instance = rows::instance(t, connector_id)?;
    // What was disabled meanwhile stays so.
    if instance.health == health || instance.disabled_at.is_some() {
        return Ok(false);
    }
    t.execute("UPDATE instance SET health = ?2 WHERE seq = ?1", params![instance.seq, health])?;
    let data = json!({"from": instance.health, "to": health});
    change(t, now, "connector.health_changed", &instance.new.corpus_id, ("connector", connector_id), &data)?;
    Ok(true)
}
