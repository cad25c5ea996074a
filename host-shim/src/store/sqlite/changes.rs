//! The append-only log: reading it by place, and taking out what is past its retention.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Transaction, params, params_from_iter};

use super::rows::{self, json};
use crate::store::Result;
use crate::store::model::{Change, ChangePage, ChangeQuery};

pub(super) fn read(connection: &Connection, query: &ChangeQuery) -> Result<ChangePage> {
    // One snapshot: what is below the newest number and not among the items is not wanted, and stays so.
    let snapshot = connection.unchecked_transaction()?;
    let floor: i64 = snapshot.prepare_cached("SELECT seq FROM change_floor")?.query_row([], |r| r.get(0))?;
    let newest: i64 =
        snapshot.prepare_cached("SELECT coalesce(max(seq), 0) FROM change")?.query_row([], |r| r.get(0))?;
    let newest = newest.max(floor);
    let mut sql = String::from(
        "SELECT seq, at, type, corpus_id, resource_kind, resource_id, data FROM change WHERE seq > ? AND seq <= ?",
    );
    let mut values: Vec<Sql> = vec![query.after.into(), newest.into()];
    if let Some(corpora) = &query.corpus_ids {
        sql.push_str(&format!(" AND corpus_id IN ({})", rows::places(corpora.len())));
        values.extend(corpora.iter().cloned().map(Sql::from));
    }
    sql.push_str(" ORDER BY seq LIMIT ?");
    values.push(i64::from(query.limit).into());
    let items: Vec<Change> = snapshot
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| {
            let data: String = row.get(6)?;
            Ok(Change {
                seq: row.get(0)?,
                at: row.get(1)?,
                kind: row.get(2)?,
                corpus_id: row.get(3)?,
                resource_kind: row.get(4)?,
                resource_id: row.get(5)?,
                data: json(&data),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let is_full = items.len() >= query.limit as usize;
    let read_up_to = match items.last() {
        Some(last) if is_full => last.seq,
        _ => newest.max(query.after),
    };
    Ok(ChangePage { items, read_up_to, floor, newest })
}

pub(super) fn prune(t: &Transaction<'_>, before: i64, limit: u32) -> Result<u32> {
    // A clock that jumped leaves later numbers with earlier times; the log loses a prefix and nothing else.
    let cut: Option<i64> = t.query_row(
        "SELECT max(seq) FROM (SELECT seq FROM change WHERE seq < \
         coalesce((SELECT min(seq) FROM change WHERE at >= ?1), 9223372036854775807) ORDER BY seq LIMIT ?2)",
        params![before, limit],
        |r| r.get(0),
    )?;
    let Some(cut) = cut else { return Ok(0) };
    let gone = t.execute("DELETE FROM change WHERE seq <= ?1", [cut])?;
    t.execute("UPDATE change_floor SET seq = max(seq, ?1)", [cut])?;
    Ok(u32::try_from(gone).unwrap_or(u32::MAX))
}
