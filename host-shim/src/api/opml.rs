//! Subscription lists over REST: a whole list becomes instances in one transaction, and the other way round.

use std::collections::HashSet;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::auth::{Allowed, ConnectorsRead, ConnectorsWrite};
use super::body::Parameters;
use super::corpora::check_visible;
use super::create::{Create, Schedule, check, other_name};
use super::{Api, ApiError};
use crate::corpus::address::{namespace, same};
use crate::opml::{Feed, MAX_BYTES, OpmlError, read, write};
use crate::store::StoreError;
use crate::store::model::NewInstance;

/// The kind of instance that a list makes: lists name feeds.
const KIND: &str = "rss";

/// Instances that an export reads at once.
const BATCH: u32 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Import {
    corpus_id: String,
    interval_seconds: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Export {
    corpus_id: String,
}

/// A feed of a list that made no instance.
fn skipped(feed: &Feed, because: &str, message: &str) -> Value {
    json!({"name": feed.name, "url": feed.url, "because": because, "message": message})
}

pub(super) async fn import(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsWrite>,
    Parameters(query): Parameters<Import>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, ApiError> {
    check_visible(&api, &who, Some(&query.corpus_id)).await?;
    let schedule = query.interval_seconds.map(|text| match text.parse() {
        Ok(interval_seconds) => Ok(Schedule { interval_seconds }),
        Err(_) => {
            let field = Some("interval_seconds".to_owned());
            Err(ApiError::invalid("invalid_interval", field, "interval_seconds is not a number of seconds"))
        }
    });
    let schedule = schedule.transpose()?;
    if let Some(schedule) = schedule {
        super::create::check_interval(&api, schedule.interval_seconds, "interval_seconds")?;
    }
    let body = body.map_err(|_| ApiError::too_large(MAX_BYTES))?;
    let feeds = read(&body).map_err(|error| match error {
        OpmlError::TooLarge => ApiError::too_large(MAX_BYTES),
        other => ApiError::invalid(other.code(), None, format!("Nothing was imported: {other}")),
    })?;
    let corpus_id = query.corpus_id.clone();
    let configs = api.service.store(move |store| store.configs(&corpus_id)).await?;
    let mut known: HashSet<String> = configs.iter().filter_map(|c| c.get("url")?.as_str()).map(same).collect();
    let (mut wanted, mut left) = (Vec::new(), Vec::new());
    for feed in feeds {
        if !known.insert(same(&feed.url)) {
            left.push(skipped(&feed, "duplicate", "The corpus or the list has this address already"));
            continue;
        }
        match check(&api, body_of(&query.corpus_id, &feed, schedule)) {
            Ok(new) => wanted.push((feed, new)),
            Err(error) => left.push(skipped(&feed, error.code(), error.message())),
        }
    }
    let added = make(&api, wanted, &mut left).await?;
    api.service.changed();
    api.service.wake();
    Ok(Json(json!({"added": added, "skipped": left})))
}

/// What a feed of a list asks for.
fn body_of(corpus_id: &str, feed: &Feed, schedule: Option<Schedule>) -> Create {
    let labels = feed.labels().into_iter().map(|(name, text)| (name, Value::from(text))).collect();
    let config = Map::from_iter([("url".to_owned(), Value::from(feed.url.as_str()))]);
    Create::of_feed(corpus_id, namespace(&feed.url), KIND, config, &feed.name, labels, schedule)
}

/// Makes the instances; where a name is taken the address tells two apart.
async fn make(api: &Api, wanted: Vec<(Feed, NewInstance)>, left: &mut Vec<Value>) -> Result<Vec<Value>, ApiError> {
    let mut names = HashSet::new();
    let (feeds, new): (Vec<Feed>, Vec<NewInstance>) = wanted
        .into_iter()
        .map(|(feed, mut new)| {
            if !names.insert(new.name.clone()) {
                new.name = other_name(&new);
                names.insert(new.name.clone());
            }
            (feed, new)
        })
        .unzip();
    let (asked, now) = (new.clone(), api.service.now_ms());
    let made = api.service.store(move |store| store.create_instances(asked, now)).await?;
    let mut again = Vec::new();
    let mut added = Vec::new();
    for ((feed, new), result) in feeds.into_iter().zip(new).zip(made) {
        match result {
            Ok(instance) => added.push(show(&instance.new)),
            Err(StoreError::NameInUse) => again.push((feed, NewInstance { name: other_name(&new), ..new })),
            Err(StoreError::NamespaceInUse) => {
                left.push(skipped(&feed, "duplicate", "The corpus has a connector for this address already"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if !again.is_empty() {
        let asked = again.iter().map(|(_, new)| new.clone()).collect();
        let made = api.service.store(move |store| store.create_instances(asked, now)).await?;
        for ((feed, _), result) in again.into_iter().zip(made) {
            match result {
                Ok(instance) => added.push(show(&instance.new)),
                Err(error) => {
                    let error = ApiError::from(error);
                    left.push(skipped(&feed, error.code(), error.message()));
                }
            }
        }
    }
    Ok(added)
}

fn show(new: &NewInstance) -> Value {
    json!({"connector_id": new.connector_id, "name": new.name, "url": new.config.get("url")})
}

pub(super) async fn export(
    State(api): State<Api>,
    Allowed(who, _): Allowed<ConnectorsRead>,
    Parameters(query): Parameters<Export>,
) -> Result<impl IntoResponse, ApiError> {
    check_visible(&api, &who, Some(&query.corpus_id)).await?;
    let id = query.corpus_id.clone();
    let corpus = api.service.store(move |store| store.corpus(&id)).await?;
    let mut feeds = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let (corpora, from) = ([query.corpus_id.clone()], after.take());
        let list = api.service.store(move |store| store.instances(Some(&corpora), from.as_deref(), BATCH)).await?;
        feeds.extend(list.iter().filter(|i| i.disabled_at.is_none()).filter_map(|i| {
            let url = i.new.config.get("url")?.as_str()?.to_owned();
            Some(Feed { name: i.new.name.clone(), url, folders: Feed::folders_of(&i.new.labels) })
        }));
        match list.last() {
            Some(last) if list.len() >= BATCH as usize => after = Some(last.new.connector_id.clone()),
            _ => break,
        }
    }
    let head = [(CONTENT_TYPE, "text/x-opml; charset=utf-8"), (CACHE_CONTROL, "private, no-cache")];
    Ok((head, write(&corpus.name, &feeds)))
}
