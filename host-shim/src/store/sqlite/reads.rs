//! Reads.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, ffi, params, params_from_iter};
use serde_json::Value;

use super::rows::{self, INSTANCE, json, read_instance};
use super::search;
use crate::store::model::{
    Corpus, Instance, PageOutcome, Producer, Record, RecordOrder, RecordQuery, Run, RunFigures, Version,
};
use crate::store::{Result, StoreError};

fn read_corpus(row: &Row<'_>) -> rusqlite::Result<Corpus> {
    Ok(Corpus { corpus_id: row.get(0)?, name: row.get(1)?, created_at: row.get(2)? })
}

pub(super) fn corpora(connection: &Connection, after: Option<&str>, limit: u32) -> Result<Vec<Corpus>> {
    let sql = "SELECT corpus_id, name, created_at FROM corpus WHERE corpus_id > ?1 ORDER BY corpus_id LIMIT ?2";
    let rows = connection
        .prepare_cached(sql)?
        .query_map(params![after.unwrap_or(""), limit], read_corpus)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

pub(super) fn corpus(connection: &Connection, corpus_id: &str) -> Result<Corpus> {
    connection
        .prepare_cached("SELECT corpus_id, name, created_at FROM corpus WHERE corpus_id = ?1")?
        .query_row([corpus_id], read_corpus)
        .optional()?
        .ok_or(StoreError::NotFound("the corpus"))
}

pub(super) fn instances(
    connection: &Connection,
    corpus_ids: Option<&[String]>,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<Instance>> {
    let mut sql = format!("SELECT {INSTANCE} FROM instance WHERE connector_id > ?");
    let mut values: Vec<Sql> = vec![after.unwrap_or("").to_owned().into()];
    if let Some(corpora) = corpus_ids {
        sql.push_str(&format!(" AND corpus_id IN ({})", rows::places(corpora.len())));
        values.extend(corpora.iter().cloned().map(Sql::from));
    }
    sql.push_str(" ORDER BY connector_id LIMIT ?");
    values.push(i64::from(limit).into());
    let rows = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), read_instance)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

pub(super) fn configs(connection: &Connection, corpus_id: &str) -> Result<Vec<Value>> {
    let rows: Vec<String> = connection
        .prepare_cached("SELECT config FROM instance WHERE corpus_id = ?1 AND disabled_at IS NULL")?
        .query_map([corpus_id], |r| r.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows.iter().map(|text| json(text)).collect())
}

pub(super) fn next_due(connection: &Connection, now: i64) -> Result<Option<i64>> {
    Ok(connection
        .prepare_cached(
            "SELECT next_run_at FROM instance WHERE disabled_at IS NULL AND paused_at IS NULL AND lease_until <= ?1 \
             ORDER BY next_run_at LIMIT 1",
        )?
        .query_row([now], |r| r.get(0))
        .optional()?)
}

pub(super) fn runs(connection: &Connection, connector_id: &str, before: Option<&str>, limit: u32) -> Result<Vec<Run>> {
    let instance = rows::instance(connection, connector_id)?;
    let rows = connection
        .prepare_cached(
            "SELECT run_id, started_at, ended_at, outcome, class, code, message, detail, http_status, final_url, \
             requests, wire_bytes, pages, items_new, items_changed, plugin_digest FROM run \
             WHERE instance = ?1 AND (?2 IS NULL OR seq < (SELECT seq FROM run WHERE run_id = ?2)) \
             ORDER BY seq DESC LIMIT ?3",
        )?
        .query_map(params![instance.seq, before, limit], |row| {
            let (class, code): (Option<String>, Option<String>) = (row.get(4)?, row.get(5)?);
            let message: Option<String> = row.get(6)?;
            let bytes: i64 = row.get(11)?;
            Ok(Run {
                run_id: row.get(0)?,
                started_at: row.get(1)?,
                ended_at: row.get(2)?,
                outcome: row.get(3)?,
                error: class.zip(code).map(|(class, code)| (class, code, message.unwrap_or_default())),
                detail: row.get(7)?,
                figures: RunFigures {
                    http_status: row.get(8)?,
                    final_url: row.get(9)?,
                    requests: row.get(10)?,
                    wire_bytes: u64::try_from(bytes).unwrap_or(0),
                },
                pages: row.get(12)?,
                brought: PageOutcome { new: row.get(13)?, changed: row.get(14)? },
                plugin_digest: row.get(15)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

const RECORD: &str = "r.seq, r.record_id, r.corpus_id, r.namespace, r.record_key, r.first_seen_at, r.sort_time, \
    r.sort_origin, r.accepted_at, v.version_id, r.ordinal, r.revision, r.withdrawn \
    FROM record r JOIN version v ON v.seq = r.current_version";

fn read_record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        seq: row.get(0)?,
        record_id: row.get(1)?,
        corpus_id: row.get(2)?,
        namespace: row.get(3)?,
        record_key: row.get(4)?,
        first_seen_at: row.get(5)?,
        sort_time: row.get(6)?,
        sort_origin: row.get(7)?,
        accepted_at: row.get(8)?,
        current_version_id: row.get(9)?,
        ordinal: row.get(10)?,
        revision: row.get(11)?,
        withdrawn: row.get(12)?,
    })
}

pub(super) fn records(connection: &Connection, query: &RecordQuery) -> Result<Vec<Record>> {
    let places = rows::places(query.corpus_ids.len());
    let mut sql = format!("SELECT {RECORD} WHERE r.corpus_id IN ({places})");
    let mut values: Vec<Sql> = query.corpus_ids.iter().cloned().map(Sql::from).collect();
    if let Some(text) = &query.text {
        let Some(expression) = search::expression(text) else { return Ok(Vec::new()) };
        sql.push_str(" AND r.seq IN (SELECT rowid FROM search WHERE search MATCH ?)");
        values.push(expression.into());
    }
    for (path, wanted) in &query.metadata {
        // Names are quoted for SQLite's paths; they come bound, never as text of the statement.
        let path: String = path.iter().map(|name| format!(".\"{name}\"")).collect();
        sql.push_str(" AND json_extract(v.extensions, ?) IS ?");
        values.extend([format!("${path}").into(), scalar(wanted)]);
    }
    if let Some(at) = query.accepted_after {
        sql.push_str(" AND r.accepted_at >= ?");
        values.push(at.into());
    }
    if let Some(at) = query.accepted_before {
        sql.push_str(" AND r.accepted_at < ?");
        values.push(at.into());
    }
    if let Some((accepted_at, seq)) = query.after {
        match query.order {
            RecordOrder::RecordId => {
                sql.push_str(" AND r.seq > ?");
                values.push(seq.into());
            }
            RecordOrder::AcceptedDesc => {
                sql.push_str(" AND (r.accepted_at, r.seq) < (?, ?)");
                values.extend([accepted_at.into(), seq.into()]);
            }
        }
    }
    sql.push_str(match query.order {
        RecordOrder::RecordId => " ORDER BY r.seq LIMIT ?",
        RecordOrder::AcceptedDesc => " ORDER BY r.accepted_at DESC, r.seq DESC LIMIT ?",
    });
    values.push(i64::from(query.limit).into());
    let rows = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), read_record)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// A scalar of JSON as SQLite extracts it.
fn scalar(value: &Value) -> Sql {
    match value {
        Value::Bool(b) => i64::from(*b).into(),
        Value::Number(n) => n.as_i64().map_or_else(|| n.as_f64().map_or(Sql::Null, Sql::from), Sql::from),
        Value::String(text) => text.clone().into(),
        Value::Null | Value::Array(_) | Value::Object(_) => Sql::Null,
    }
}

pub(super) fn record(connection: &Connection, record_id: &str) -> Result<Record> {
    connection
        .prepare_cached(&format!("SELECT {RECORD} WHERE r.record_id = ?1"))?
        .query_row([record_id], read_record)
        .optional()?
        .ok_or(StoreError::NotFound("the record"))
}

const VERSION: &str = "version_id, ordinal, revision, parts, extensions, withdrawn, accepted_at, connector_id, run_id, \
    plugin_id, plugin_version, plugin_digest, digest FROM version";

fn read_version(row: &Row<'_>) -> rusqlite::Result<Version> {
    let (parts, extensions): (String, String) = (row.get(3)?, row.get(4)?);
    let digest: Option<[u8; 32]> = row.get(12)?;
    if digest.is_some_and(|digest| digest != rows::content_digest(&parts, &extensions)) {
        let what = format!("version {} is not what was stored", row.get::<_, String>(0)?);
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(what)));
    }
    Ok(Version {
        version_id: row.get(0)?,
        ordinal: row.get(1)?,
        revision: row.get(2)?,
        parts: json(&parts),
        extensions: json(&extensions),
        withdrawn: row.get(5)?,
        accepted_at: row.get(6)?,
        connector_id: row.get(7)?,
        run_id: row.get(8)?,
        producer: Producer { plugin_id: row.get(9)?, plugin_version: row.get(10)?, plugin_digest: row.get(11)? },
    })
}

pub(super) fn versions(connection: &Connection, record_id: &str, after: u32, limit: u32) -> Result<Vec<Version>> {
    let seq = record(connection, record_id)?.seq;
    let rows = connection
        .prepare_cached(&format!("SELECT {VERSION} WHERE record = ?1 AND ordinal > ?2 ORDER BY ordinal LIMIT ?3"))?
        .query_map(params![seq, after, limit], read_version)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

pub(super) fn version(connection: &Connection, record_id: &str, version_id: &str) -> Result<Version> {
    let seq = record(connection, record_id)?.seq;
    connection
        .prepare_cached(&format!("SELECT {VERSION} WHERE record = ?1 AND version_id = ?2"))?
        .query_row(params![seq, version_id], read_version)
        .optional()?
        .ok_or(StoreError::NotFound("the version"))
}

pub(super) fn counts(connection: &Connection, connector_id: &str) -> Result<(u64, Option<u64>)> {
    let instance = rows::instance(connection, connector_id)?;
    let records: i64 = connection
        .prepare_cached("SELECT count(*) FROM record WHERE corpus_id = ?1 AND namespace = ?2")?
        .query_row(params![instance.new.corpus_id, instance.new.source_namespace], |r| r.get(0))?;
    let listed: Option<i64> = connection
        .prepare_cached("SELECT json_array_length(entries) FROM document_window WHERE instance = ?1")?
        .query_row([instance.seq], |r| r.get(0))
        .optional()?;
    let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok((unsigned(records), listed.map(unsigned)))
}
