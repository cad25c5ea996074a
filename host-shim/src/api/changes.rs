//! The change log: by cursor, and as a stream of server-sent events that resumes where it was cut.
//!
//! A cursor is bound to its corpora. It moves on even where nothing of them happened, so that a reader of a quiet corpus
//! does not fall behind the retention.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::auth::{Allowed, ChangesRead, Presented, holder};
use super::body::{Parameters, limit};
use super::corpora::check_visible;
use super::{Api, ApiError, cursor};
use crate::corpus::access::Principal;
use crate::corpus::clock::rfc3339;
use crate::store::model::{Change, ChangePage, ChangeQuery};

/// Streams at once: each reads the store for itself.
pub(super) const MAX_STREAMS: usize = 64;

/// Changes that a stream reads at once.
const BATCH: u32 = 100;

/// The longest wait between two looks: another process may have written.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Looks after which the key of a stream is checked again.
const CHECK_KEY_EVERY: u32 = 10;

/// Time without an event after which a stream says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The parameter with the place in the log.
const CURSOR: &str = "cursor";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    corpus_id: Option<String>,
    cursor: Option<String>,
    limit: Option<String>,
}

/// What a caller may see, and what its cursors are bound to.
fn scope(who: &Principal, corpus_id: Option<String>) -> (Option<Vec<String>>, String) {
    let corpora = who.within(corpus_id);
    let filter = format!("changes {corpora:?}");
    (corpora, filter)
}

/// The number in a cursor; without one a reader begins with the oldest change that is kept.
fn place(filter: &str, cursor: Option<&str>) -> Result<Option<i64>, ApiError> {
    cursor
        .map(|c| cursor::read_in(CURSOR, filter, c)?.parse::<i64>().map_err(|_| cursor::invalid_in(CURSOR)))
        .transpose()
}

/// One batch behind a place.
async fn read(api: &Api, corpora: Option<Vec<String>>, place: Option<i64>, limit: u32) -> Result<ChangePage, ApiError> {
    let query = ChangeQuery { corpus_ids: corpora, after: place.unwrap_or(0), limit };
    let page = api.service.store(move |store| store.changes(&query)).await?;
    match place {
        // Behind the log's end lies a cursor of a store that was put back to an earlier state.
        Some(at) if at < page.floor || at > page.newest => Err(ApiError::cursor_expired()),
        _ => Ok(page),
    }
}

fn show(change: &Change) -> Value {
    json!({
        "type": change.kind,
        "at": rfc3339(change.at),
        "corpus_id": change.corpus_id,
        "resource": {"kind": change.resource_kind, "id": change.resource_id},
        "data": change.data,
    })
}

pub(super) async fn list(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ChangesRead>,
    Parameters(query): Parameters<List>,
) -> Result<Json<Value>, ApiError> {
    let limit = limit(query.limit)?;
    check_visible(&api, &who, query.corpus_id.as_deref()).await?;
    let (corpora, filter) = scope(&who, query.corpus_id);
    let place = place(&filter, query.cursor.as_deref())?;
    let page = read(&api, corpora, place, limit).await?;
    let items: Vec<Value> = page.items.iter().map(show).collect();
    Ok(Json(json!({"items": items, "next_cursor": cursor::write(&filter, &page.read_up_to.to_string())})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Follow {
    corpus_id: Option<String>,
    cursor: Option<String>,
}

/// Where a stream is.
struct Follower {
    api: Api,
    key: String,
    corpora: Option<Vec<String>>,
    filter: String,
    place: Option<i64>,
    ready: VecDeque<Change>,
    moved: watch::Receiver<u64>,
    stop: watch::Receiver<bool>,
    looks: u32,
    over: bool,
    _permit: OwnedSemaphorePermit,
}

pub(super) async fn stream(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ChangesRead>,
    Extension(Presented(key)): Extension<Presented>,
    headers: HeaderMap,
    Parameters(query): Parameters<Follow>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    check_visible(&api, &who, query.corpus_id.as_deref()).await?;
    let permit = Arc::clone(&api.streams).try_acquire_owned().map_err(|_| ApiError::too_many_streams())?;
    let (corpora, filter) = scope(&who, query.corpus_id);
    // A client that reconnects says where it was; that is newer than its address.
    let last = headers.get("last-event-id").map(|v| v.to_str().unwrap_or("?").to_owned());
    let place = place(&filter, last.or(query.cursor).as_deref())?;
    // Subscribed before the first look, so that nothing falls between.
    let (moved, stop) = (api.service.watch_changes(), api.service.watch_stop());
    let first = read(&api, corpora.clone(), place, BATCH).await?;
    let follower = Follower {
        key,
        api,
        corpora,
        filter,
        place: Some(first.read_up_to),
        ready: first.items.into(),
        moved,
        stop,
        looks: 0,
        over: false,
        _permit: permit,
    };
    let events = unfold(follower, |mut f| async move { f.next().await.map(|event| (Ok(event), f)) });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

impl Follower {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Some(self.event(&change));
            }
            if self.over || *self.stop.borrow() {
                return None;
            }
            if let Err(error) = self.look().await {
                // The stream ends with the reason; its client starts again by it.
                self.over = true;
                let data = json!({"code": error.code(), "message": error.message()});
                return Some(Event::default().event("error").data(data.to_string()));
            }
            if self.ready.is_empty() {
                tokio::select! {
                    _ = self.moved.changed() => {}
                    _ = self.stop.changed() => {}
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                }
            }
        }
    }

    async fn look(&mut self) -> Result<(), ApiError> {
        self.looks += 1;
        if self.looks.is_multiple_of(CHECK_KEY_EVERY) {
            // A key that was revoked reads no further.
            holder(&self.api, &self.key).await?.ok_or_else(ApiError::unauthenticated)?;
        }
        let page = read(&self.api, self.corpora.clone(), self.place, BATCH).await?;
        self.place = Some(page.read_up_to);
        self.ready = page.items.into();
        Ok(())
    }

    fn event(&self, change: &Change) -> Event {
        let id = cursor::write(&self.filter, &change.seq.to_string());
        Event::default().id(id).event(&change.kind).data(show(change).to_string())
    }
}
