//! The transaction of a page: fence, items, versions, changes, figures, checkpoint, and the end of the run.

use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::json;

use super::instances::change;
use super::{rows, search};
use crate::engine::answer::Item;
use crate::ids;
use crate::store::model::{Claim, Outcome, PageCommit, PageOutcome, RunEnd, RunFigures, SawMoved};
use crate::store::{Result, StoreError};

/// The longest that a published date may lie after first sight before it counts as an error of the source.
const MAX_FUTURE_MS: i64 = 24 * 3_600 * 1_000;

/// Only the newest claim of an enabled instance may write.
fn check_fence(t: &Transaction<'_>, claim: &Claim) -> Result<()> {
    let fence: Option<i64> = t
        .prepare_cached("SELECT fence FROM instance WHERE seq = ?1 AND disabled_at IS NULL")?
        .query_row([claim.instance.seq], |r| r.get(0))
        .optional()?;
    if fence == Some(claim.fence) { Ok(()) } else { Err(StoreError::LostClaim) }
}

pub(super) fn commit(t: &Transaction<'_>, claim: &Claim, page: &PageCommit) -> Result<PageOutcome> {
    check_fence(t, claim)?;
    let mut outcome = PageOutcome::default();
    for item in &page.items {
        match accept(t, claim, page, item)? {
            Accepted::New => outcome.new += 1,
            Accepted::Changed => outcome.changed += 1,
            Accepted::Known => {}
        }
    }
    // A connector that moved its keys says so in its diagnostics.
    if let Some(identity) =
        page.diagnostics.as_ref().and_then(|d| d.get("identity")).filter(|i| i.get("from").is_some())
    {
        let new = &claim.instance.new;
        change(t, page.at, "connector.identity_changed", &new.corpus_id, ("connector", &new.connector_id), identity)?;
    }
    let diagnostics = page.diagnostics.as_ref().map(ToString::to_string);
    let hints = page.hints.as_ref().map(ToString::to_string);
    t.prepare_cached(
        "UPDATE instance SET checkpoint = ?2, diagnostics = coalesce(?3, diagnostics), hints = coalesce(?4, hints) \
         WHERE seq = ?1",
    )?
    .execute(params![claim.instance.seq, page.checkpoint, diagnostics, hints])?;
    if outcome.new + outcome.changed > 0 {
        t.prepare_cached("UPDATE instance SET last_item_at = ?2 WHERE seq = ?1")?
            .execute(params![claim.instance.seq, page.at])?;
    }
    if let Some(window) = &page.window {
        let entries = serde_json::to_string(window).map_err(|e| StoreError::Engine(e.to_string()))?;
        t.prepare_cached(
            "INSERT INTO document_window (instance, run_id, read_at, entries) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (instance) DO UPDATE SET run_id = ?2, read_at = ?3, entries = ?4",
        )?
        .execute(params![claim.instance.seq, claim.run_id, page.at, entries])?;
    }
    t.prepare_cached(
        "UPDATE run SET pages = pages + 1, items_new = items_new + ?2, items_changed = items_changed + ?3 \
         WHERE run_id = ?1",
    )?
    .execute(params![claim.run_id, outcome.new, outcome.changed])?;
    figures(t, claim, &page.figures)?;
    if let Some(end) = &page.end {
        end_checked(t, claim, end)?;
    }
    Ok(outcome)
}

fn figures(t: &Transaction<'_>, claim: &Claim, figures: &RunFigures) -> Result<()> {
    let bytes = i64::try_from(figures.wire_bytes).unwrap_or(i64::MAX);
    t.prepare_cached(
        "UPDATE run SET http_status = ?2, final_url = ?3, requests = ?4, wire_bytes = ?5 WHERE run_id = ?1",
    )?
    .execute(params![claim.run_id, figures.http_status, figures.final_url, figures.requests, bytes])?;
    Ok(())
}

enum Accepted {
    New,
    Changed,
    Known,
}

/// A record as it is before an item.
struct Known {
    seq: i64,
    record_id: String,
    revision: String,
    ordinal: u32,
}

fn find(t: &Transaction<'_>, claim: &Claim, key: &str) -> Result<Option<Known>> {
    let new = &claim.instance.new;
    Ok(t.prepare_cached(
        "SELECT seq, record_id, revision, ordinal FROM record \
         WHERE corpus_id = ?1 AND namespace = ?2 AND record_key = ?3",
    )?
    .query_row(params![new.corpus_id, new.source_namespace, key], |r| {
        Ok(Known { seq: r.get(0)?, record_id: r.get(1)?, revision: r.get(2)?, ordinal: r.get(3)? })
    })
    .optional()?)
}

/// A new version appears when the revision differs from the current one's; nothing is overwritten.
fn accept(t: &Transaction<'_>, claim: &Claim, page: &PageCommit, item: &Item) -> Result<Accepted> {
    let mut known = find(t, claim, &item.record_key)?;
    if known.is_none()
        && let Some(previous) = &item.previous_key
        && let Some(moved) = find(t, claim, previous)?
    {
        t.execute("UPDATE record SET record_key = ?2 WHERE seq = ?1", params![moved.seq, item.record_key])?;
        let data = json!({"from": previous, "to": item.record_key});
        change(t, page.at, "record.moved", &claim.instance.new.corpus_id, ("record", &moved.record_id), &data)?;
        known = Some(moved);
    }
    let version_id = ids::new("ver", page.at);
    let (record, record_id, ordinal, accepted) = match known {
        Some(known) if known.revision == item.revision => return Ok(Accepted::Known),
        Some(known) => (known.seq, known.record_id, known.ordinal + 1, Accepted::Changed),
        None => {
            let record_id = ids::new("rec", page.at);
            (insert_record(t, claim, page, item, &record_id)?, record_id, 1, Accepted::New)
        }
    };
    let parts = serde_json::to_string(&item.parts).map_err(|e| StoreError::Engine(e.to_string()))?;
    let extensions = serde_json::to_string(&item.extensions).map_err(|e| StoreError::Engine(e.to_string()))?;
    t.prepare_cached(
        "INSERT INTO version (version_id, record, ordinal, revision, parts, extensions, withdrawn, accepted_at, \
         connector_id, run_id, plugin_id, plugin_version, plugin_digest, digest) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        version_id,
        record,
        ordinal,
        item.revision,
        parts,
        extensions,
        item.withdraw,
        page.at,
        claim.instance.new.connector_id,
        claim.run_id,
        page.producer.plugin_id,
        page.producer.plugin_version,
        page.producer.plugin_digest,
        rows::content_digest(&parts, &extensions),
    ])?;
    let version = t.last_insert_rowid();
    t.prepare_cached(
        "UPDATE record SET current_version = ?2, revision = ?3, ordinal = ?4, accepted_at = ?5, withdrawn = ?6 \
         WHERE seq = ?1",
    )?
    .execute(params![record, version, item.revision, ordinal, page.at, item.withdraw])?;
    let text = |key: &str| item.parts.iter().find(|p| p.key == key).map_or("", |p| p.text.as_str());
    search::index(t, record, ordinal == 1, text("title"), text("body"))?;
    let data = json!({"version_id": version_id, "ordinal": ordinal, "connector_id": claim.instance.new.connector_id});
    change(t, page.at, "record.accepted", &claim.instance.new.corpus_id, ("record", &record_id), &data)?;
    Ok(accepted)
}

fn insert_record(t: &Transaction<'_>, claim: &Claim, page: &PageCommit, item: &Item, record_id: &str) -> Result<i64> {
    let (sort_time, origin) = sort_time(item, page.at);
    t.prepare_cached(
        "INSERT INTO record (record_id, corpus_id, namespace, record_key, first_seen_at, sort_time, sort_origin, \
         accepted_at, current_version, revision, ordinal) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?5, 0, '', 0)",
    )?
    .execute(params![
        record_id,
        claim.instance.new.corpus_id,
        claim.instance.new.source_namespace,
        item.record_key,
        page.at,
        sort_time,
        origin,
    ])?;
    Ok(t.last_insert_rowid())
}

/// The first published date, at most a day after first sight, else first sight. Where a connector has such a date, it
/// stands in its extension as `item.published`.
fn sort_time(item: &Item, now: i64) -> (i64, &'static str) {
    let published = item
        .extensions
        .values()
        .find_map(|e| e.data.pointer("/item/published")?.as_str()?.parse::<jiff::Timestamp>().ok())
        .map(jiff::Timestamp::as_millisecond);
    match published {
        Some(at) if at <= now + MAX_FUTURE_MS => (at, "feed"),
        Some(_) => (now + MAX_FUTURE_MS, "clamped"),
        None => (now, "first-seen"),
    }
}

pub(super) fn end(t: &Transaction<'_>, claim: &Claim, end: &RunEnd) -> Result<()> {
    check_fence(t, claim)?;
    end_checked(t, claim, end)
}

fn end_checked(t: &Transaction<'_>, claim: &Claim, end: &RunEnd) -> Result<()> {
    let seq = claim.instance.seq;
    let error = end.error.as_ref();
    t.prepare_cached(
        "UPDATE run SET ended_at = ?2, outcome = ?3, class = ?4, code = ?5, message = ?6, detail = ?7, \
         plugin_digest = ?8 WHERE run_id = ?1",
    )?
    .execute(params![
        claim.run_id,
        end.at,
        end.outcome.name(),
        error.map(|e| &e.class),
        error.map(|e| &e.code),
        error.map(|e| &e.message),
        end.detail,
        end.plugin_digest,
    ])?;
    figures(t, claim, &end.figures)?;
    t.prepare_cached(
        // A run that somebody asked for meanwhile comes first, but not before the source allows.
        "UPDATE instance SET lease_until = 0, not_before = ?4, full_at = CASE WHEN ?5 THEN ?6 ELSE full_at END, \
         next_run_at = CASE next_run_because WHEN 'requested' THEN min(?2, max(next_run_at, ?4)) ELSE ?2 END, \
         next_run_because = CASE next_run_because WHEN 'requested' THEN 'requested' ELSE ?3 END WHERE seq = ?1",
    )?
    .execute(params![seq, end.next_run_at, end.next_run_because, end.not_before, end.is_full, end.at])?;
    t.prepare_cached("UPDATE instance SET due_at = next_run_at WHERE seq = ?1")?.execute([seq])?;
    if let Some((host, until)) = &end.rest {
        t.prepare_cached(
            "INSERT INTO host_rest (host, since, until) VALUES (?1, ?2, ?3) \
             ON CONFLICT (host) DO UPDATE SET until = max(until, excluded.until)",
        )?
        .execute(params![host, end.at, until])?;
    }
    let day = end.at.div_euclid(24 * 3_600 * 1_000);
    t.prepare_cached(
        "UPDATE instance SET reads_today = CASE reads_day WHEN ?2 THEN reads_today ELSE 0 END + ?3, reads_day = ?2 \
         WHERE seq = ?1",
    )?
    .execute(params![seq, day, end.figures.requests])?;
    match end.outcome {
        Outcome::Completed => {
            t.prepare_cached(
                "UPDATE instance SET last_success_at = ?2, access_error = 0, error_class = NULL, error_code = NULL, \
                 error_message = NULL, error_at = NULL, error_detail = NULL, failures = 0, throttled_since = NULL, \
                 throttled_host = NULL WHERE seq = ?1",
            )?
            .execute(params![seq, end.at])?;
            if let Some((body, plugin)) = end.body {
                t.prepare_cached("UPDATE instance SET body_digest = ?2, body_plugin = ?3 WHERE seq = ?1")?
                    .execute(params![seq, body, plugin])?;
            }
            moved(t, seq, end, day)?;
        }
        // Being turned away is no failure of the feed: what was known of it stays.
        Outcome::Failed if end.throttled_by.is_some() => {
            t.prepare_cached(
                "UPDATE instance SET throttled_since = coalesce(throttled_since, ?2), throttled_host = ?3 WHERE seq = ?1",
            )?
            .execute(params![seq, end.at, end.throttled_by])?;
        }
        Outcome::Failed => {
            let access = error.is_some_and(|e| e.class == "access");
            t.prepare_cached(
                "UPDATE instance SET error_class = ?2, error_code = ?3, error_message = ?4, error_at = ?5, \
                 access_error = access_error OR ?6, error_detail = ?7, failures = failures + 1 WHERE seq = ?1",
            )?
            .execute(params![
                seq,
                error.map(|e| &e.class),
                error.map(|e| &e.code),
                error.map(|e| &e.message),
                error.map(|e| e.at),
                access,
                end.detail,
            ])?;
            moved(t, seq, end, day)?;
        }
        // A run that was too early touches nothing.
        Outcome::Skipped => {}
    }
    Ok(())
}

/// Counts the days on which the same permanent redirect was seen.
fn moved(t: &Transaction<'_>, seq: i64, end: &RunEnd, day: i64) -> Result<()> {
    match &end.moved {
        SawMoved::Nothing => {}
        SawMoved::No => {
            t.prepare_cached(
                "UPDATE instance SET moved_to = NULL, moved_days = 0 WHERE seq = ?1 AND moved_to NOTNULL",
            )?
            .execute([seq])?;
        }
        SawMoved::To(url) => {
            t.prepare_cached(
                "UPDATE instance SET \
                 moved_since = CASE WHEN moved_to IS ?2 THEN moved_since ELSE ?3 END, \
                 moved_days = CASE WHEN moved_to IS NOT ?2 THEN 1 WHEN moved_day = ?4 THEN moved_days \
                   ELSE moved_days + 1 END, \
                 moved_day = ?4, moved_to = ?2 WHERE seq = ?1",
            )?
            .execute(params![seq, url, end.at, day])?;
        }
    }
    Ok(())
}
