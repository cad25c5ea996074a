//! Claims: which instances run, and what becomes of the claims of a process that ended without a word.

use rusqlite::{Connection, Transaction, params};

use super::rows::{self, INSTANCE, read_instance};
use crate::ids;
use crate::store::Result;
use crate::store::model::{Admission, Claim, Instance};

/// Instances beyond those that there is room for that one look takes in: those of a busy host must not hide others.
const LOOKED_AT: u32 = 64;

/// Runs of an instance that can be looked at: a week of polls each half an hour, and some more.
const KEPT_RUNS: u32 = 500;

/// Time between two starts after a restart, for each instance that is overdue.
const SPREAD_MS: i64 = 50;

/// The longest time over which overdue instances are spread after a restart.
const MAX_SPREAD_MS: i64 = 60_000;

/// How far a time may lie ahead before the clock that wrote it is taken for a wrong one.
const CLOCK_SLACK_MS: i64 = 60_000;

/// Longer than any wait that the schedule makes: a day of failures, and a week of which all days but one are skipped.
const LONGEST_WAIT_MS: i64 = 9 * 24 * 3_600 * 1_000;

/// A host asks for rest of a day at most; one interval more is the schedule's own.
const LONGEST_REST_MS: i64 = 2 * 24 * 3_600 * 1_000;

/// The longest lease: that of the corpus service.
const LONGEST_LEASE_MS: i64 = 300_000;

pub(super) fn claim_due(
    t: &Transaction<'_>,
    now: i64,
    lease_until: i64,
    limit: u32,
    admit: &mut dyn FnMut(&Instance) -> Admission,
) -> Result<Vec<Claim>> {
    let due: Vec<Instance> = t
        .prepare_cached(&format!(
            "SELECT {INSTANCE} FROM instance WHERE disabled_at IS NULL AND paused_at IS NULL AND next_run_at <= ?1 \
             AND lease_until <= ?1 \
             ORDER BY next_run_at, seq LIMIT ?2"
        ))?
        .query_map(params![now, limit.saturating_add(LOOKED_AT)], read_instance)?
        .collect::<rusqlite::Result<_>>()?;
    let mut claims = Vec::new();
    for instance in due {
        if claims.len() >= limit as usize {
            break;
        }
        match admit(&instance) {
            Admission::Now => claims.push(begin(t, instance, now, lease_until)?),
            // It keeps the time at which it was due, for the figures of lag.
            Admission::Queued(at) => {
                t.prepare_cached("UPDATE instance SET next_run_at = ?2 WHERE seq = ?1")?.execute([instance.seq, at])?;
            }
            Admission::Resting(at) => {
                t.prepare_cached(
                    "UPDATE instance SET next_run_at = ?2, due_at = ?2, next_run_because = 'host_throttled' \
                     WHERE seq = ?1",
                )?
                .execute([instance.seq, at])?;
            }
        }
    }
    Ok(claims)
}

pub(super) fn claim(t: &Transaction<'_>, connector_id: &str, now: i64, lease_until: i64) -> Result<Option<Claim>> {
    let instance = rows::instance(t, connector_id)?;
    let lease: i64 = t.query_row("SELECT lease_until FROM instance WHERE seq = ?1", [instance.seq], |r| r.get(0))?;
    if instance.disabled_at.is_some() || instance.paused_at.is_some() || lease > now {
        return Ok(None);
    }
    begin(t, instance, now, lease_until).map(Some)
}

type Digests = (Option<Vec<u8>>, Option<Vec<u8>>);

fn begin(t: &Transaction<'_>, instance: Instance, now: i64, lease_until: i64) -> Result<Claim> {
    t.prepare_cached("UPDATE instance SET lease_until = ?2, fence = fence + 1, last_run_at = ?3, next_run_because = 'running' WHERE seq = ?1")?
        .execute(params![instance.seq, lease_until, now])?;
    let (fence, checkpoint, (body, plugin)): (i64, Option<String>, Digests) = t
        .prepare_cached("SELECT fence, checkpoint, body_digest, body_plugin FROM instance WHERE seq = ?1")?
        .query_row([instance.seq], |r| Ok((r.get(0)?, r.get(1)?, (r.get(2)?, r.get(3)?))))?;
    // A lease that ran out belongs to a run that nobody will end.
    t.prepare_cached(
        "UPDATE run SET outcome = 'abandoned', ended_at = ?2 WHERE instance = ?1 AND outcome = 'running'",
    )?
    .execute(params![instance.seq, now])?;
    let run_id = ids::new("run", now);
    t.prepare_cached(
        "INSERT INTO run (run_id, instance, fence, started_at, outcome) VALUES (?1, ?2, ?3, ?4, 'running')",
    )?
    .execute(params![run_id, instance.seq, fence, now])?;
    // Years of polls: the newest of an instance are kept, what they brought names them for ever.
    t.prepare_cached(
        "DELETE FROM run WHERE instance = ?1 AND seq <= \
         (SELECT seq FROM run WHERE instance = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
    )?
    .execute(params![instance.seq, KEPT_RUNS])?;
    let digest = |bytes: Option<Vec<u8>>| bytes.and_then(|b| <[u8; 32]>::try_from(b).ok());
    Ok(Claim { instance, run_id, fence, started_at: now, checkpoint, body: digest(body).zip(digest(plugin)) })
}

pub(super) fn recover(t: &Transaction<'_>, now: i64) -> Result<u32> {
    t.execute(
        "UPDATE instance SET lease_until = 0, fence = fence + 1, \
         next_run_at = CASE next_run_because WHEN 'requested' THEN next_run_at \
           ELSE max(?1, coalesce(last_run_at, ?1) + interval_seconds * 1000) END, \
         next_run_because = CASE next_run_because WHEN 'requested' THEN 'requested' ELSE 'cut_off' END \
         WHERE lease_until > 0",
        [now],
    )?;
    t.execute("UPDATE instance SET due_at = next_run_at WHERE next_run_because = 'cut_off'", [])?;
    let abandoned =
        t.execute("UPDATE run SET outcome = 'abandoned', ended_at = ?1 WHERE outcome = 'running'", [now])?;
    settle(t, now)?;
    let overdue: i64 = t.query_row(
        "SELECT count(*) FROM instance WHERE disabled_at IS NULL AND paused_at IS NULL AND next_run_at <= ?1",
        [now],
        |row| row.get(0),
    )?;
    let window = (overdue * SPREAD_MS).min(MAX_SPREAD_MS);
    if overdue > 1 {
        t.execute(
            "UPDATE instance SET next_run_at = ?1 + seq * 7919 % ?2 WHERE disabled_at IS NULL AND paused_at IS NULL \
             AND next_run_at <= ?1 AND next_run_because NOT IN ('created', 'requested')",
            [now, window],
        )?;
    }
    Ok(u32::try_from(abandoned).unwrap_or(u32::MAX))
}

pub(super) fn give_back(t: &Transaction<'_>, claim: &Claim, now: i64, at: i64) -> Result<()> {
    let given = t.execute(
        "UPDATE instance SET lease_until = 0, fence = fence + 1, next_run_at = ?3, due_at = ?3, \
         next_run_because = 'cut_off' WHERE seq = ?1 AND fence = ?2",
        params![claim.instance.seq, claim.fence, at],
    )?;
    if given > 0 {
        t.execute("UPDATE run SET outcome = 'abandoned', ended_at = ?2 WHERE run_id = ?1", params![claim.run_id, now])?;
    }
    Ok(())
}

pub(super) fn settle(t: &Transaction<'_>, now: i64) -> Result<u32> {
    let settled = t.execute(
        "UPDATE instance SET next_run_at = ?1 + seq * 7919 % max(interval_seconds * 1000, 1), \
         next_run_because = 'clock', not_before = 0, last_run_at = min(last_run_at, ?1), \
         lease_until = min(lease_until, ?1 + ?4) \
         WHERE disabled_at IS NULL AND next_run_because <> 'gone' AND (last_run_at > ?1 + ?2 OR next_run_at > ?1 + ?3)",
        params![now, CLOCK_SLACK_MS, LONGEST_WAIT_MS, LONGEST_LEASE_MS],
    )?;
    t.execute("UPDATE instance SET due_at = next_run_at WHERE next_run_because = 'clock'", [])?;
    t.execute("DELETE FROM host_rest WHERE until <= ?1 OR until > ?1 + ?2", params![now, LONGEST_REST_MS])?;
    Ok(u32::try_from(settled).unwrap_or(u32::MAX))
}

pub(super) fn rests(connection: &Connection, now: i64) -> Result<Vec<(String, i64)>> {
    let mut statement = connection.prepare_cached("SELECT host, until FROM host_rest WHERE until > ?1")?;
    let rows = statement.query_map([now], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
