//! One call: from an invocation to a page or a failure.
//!
//! Owns the order of the steps; each step is a module of its own. The only effect is `Http::send`.

use std::collections::HashSet;

use url::Url;

use crate::canonical::Object;
use crate::checkpoint::{Checkpoint, MAX_VALIDATOR_BYTES};
use crate::config::{self, Config, Identity};
use crate::conformance;
use crate::contract::{Failure, Header, Hints, Http, HttpRequest, HttpResponse, Invocation, Page};
use crate::decode;
use crate::hints;
use crate::identity::{MAX_METADATA_BYTES, clip};
use crate::model::Feed;
use crate::notes::Notes;
use crate::page::{self, Counts};
use crate::parse;
use crate::policy::{self, Continuation, Policy, State, Switch};
use crate::record::metadata_line;
use crate::status::{self, Outcome};
use crate::{date, describe};

/// What a feed reader accepts, feed types first.
pub const ACCEPT: &str = "application/rss+xml, application/atom+xml, application/rdf+xml, application/feed+json, \
                          application/json;q=0.9, application/xml;q=0.9, text/xml;q=0.8, */*;q=0.5";

/// The longest wait that a feed's `ttl` gets: one hour.
pub const MAX_TTL_SECONDS: u64 = 3_600;

/// Bytes of the diagnostics, by the contract.
const MAX_DIAGNOSTICS_BYTES: usize = 16 * 1_024;

/// Longest name of a declared dialect in diagnostics, in bytes.
const MAX_DECLARED_BYTES: usize = 512;

/// What every call starts with, checked.
struct Call {
    config: Config,
    now: i64,
    fraction: String,
}

fn start(invocation: &Invocation) -> Result<Call, Failure> {
    if invocation.kind != describe::KIND {
        return Err(Failure::source("unsupported_connector_kind", "This connector serves the kind \"rss\" only"));
    }
    config::check_configuration(&invocation.configuration)?;
    let config = config::config(&invocation.config)?;
    let (now, fraction) = date::instant(&invocation.now)
        .ok_or_else(|| Failure::source("invalid_invocation", "The host's clock is not an RFC 3339 instant"))?;
    Ok(Call { config, now, fraction })
}

/// One page of a run.
///
/// # Errors
/// A failure with its class, code and sentence; the checkpoint stays where it was.
pub fn fetch(http: &mut dyn Http, invocation: &Invocation) -> Result<Page, Failure> {
    let call = start(invocation)?;
    let checkpoint = Checkpoint::read(invocation.checkpoint.as_deref()).map_err(|_| {
        Failure::source("invalid_checkpoint", "The stored checkpoint cannot be read; create the instance anew")
    })?;
    if call.config.honor_ttl && is_too_early(&checkpoint, &call) {
        return Ok(Page {
            checkpoint: invocation.checkpoint.clone().unwrap_or_default(),
            not_due: true,
            diagnostics: "{}".to_owned(),
            ..Page::default()
        });
    }
    let conditional = !checkpoint.partial && !invocation.unconditional;
    let request = request(&call.config, conditional.then_some(&checkpoint), invocation.has_credential);
    let mut response = http.send(&request).map_err(|e| status::no_response(&e))?;
    if response.status == 304 && !is_from(&checkpoint, &call.config, &response.final_url) {
        // Another server than the one that gave the validators cannot know what they stand for.
        let request = self::request(&call.config, None, invocation.has_credential);
        response = http.send(&request).map_err(|e| status::no_response(&e))?;
    }
    let outcome = status::outcome(&response, call.now)?;
    let repeats = response.unchanged && !checkpoint.partial && !checkpoint.is_foreign();
    if outcome == Outcome::NotModified || repeats {
        return Ok(unchanged(checkpoint, &call, &response, outcome));
    }
    let charset = response.header("content-type").and_then(decode::charset).map(str::to_owned);
    let base = Url::parse(&response.final_url).ok();
    let notes = Notes::default();
    let text = decode::decode(std::mem::take(&mut response.body), charset.as_deref(), &notes);
    let feed =
        parse::read(&text, base.as_ref(), &notes).map_err(|e| Failure::source("malformed_feed", e.to_string()))?;
    drop(text);
    conformance::note(&feed, response.header("content-type"), call.now, &notes);
    let hints = hints::hints(&response, Some(&feed.pace), call.now);
    Ok(changes(feed, checkpoint, &call, &response, hints, &notes))
}

/// Whether the source accepts the credential: one request without validators, the body is not read.
///
/// # Errors
/// Only 401 and 403 are refusals; any other outcome says nothing about the credential.
pub fn check_credential(http: &mut dyn Http, invocation: &Invocation) -> Result<(), Failure> {
    let call = start(invocation)?;
    if !invocation.has_credential {
        return Ok(());
    }
    let Ok(response) = http.send(&request(&call.config, None, true)) else { return Ok(()) };
    match response.status {
        401 | 403 => status::outcome(&response, call.now).map(|_| ()),
        _ => Ok(()),
    }
}

fn is_too_early(checkpoint: &Checkpoint, call: &Call) -> bool {
    match date::instant(&checkpoint.not_before) {
        Some((at, fraction)) => (call.now, call.fraction.as_str()) < (at, fraction.as_str()),
        None => false,
    }
}

fn request(config: &Config, validators: Option<&Checkpoint>, authenticate: bool) -> HttpRequest {
    let mut headers = vec![Header { name: "Accept".to_owned(), value: ACCEPT.as_bytes().to_vec() }];
    if let Some(checkpoint) = validators {
        // Both validators, byte for byte as they came (RFC 9110, section 13.1).
        for (name, value) in [("If-None-Match", &checkpoint.etag), ("If-Modified-Since", &checkpoint.last_modified)] {
            // A Last-Modified that is no date is kept, but a server could only misread it (section 13.1.3).
            let is_sent = name == "If-None-Match" || date::is_http_date(value);
            if !value.is_empty() && is_sent {
                headers.push(Header { name: name.to_owned(), value: value.as_bytes().to_vec() });
            }
        }
    }
    HttpRequest { url: config.url.clone(), headers, authenticate }
}

/// The instant before which the feed does not want to be asked again.
fn not_before(ttl_seconds: u64, call: &Call) -> String {
    if !call.config.honor_ttl || ttl_seconds == 0 {
        return String::new();
    }
    let wait = i64::try_from(ttl_seconds.min(MAX_TTL_SECONDS)).unwrap_or(0);
    let whole = date::rfc3339(call.now + wait);
    format!("{}{}Z", whole.trim_end_matches('Z'), call.fraction)
}

/// Whether an address is the one that gave the validators.
fn is_from(checkpoint: &Checkpoint, config: &Config, address: &str) -> bool {
    let known = if checkpoint.address.is_empty() { &config.url } else { &checkpoint.address };
    is_same(known, address)
}

/// Whether two texts are one address, a fragment apart.
fn is_same(a: &str, b: &str) -> bool {
    let plain = |text: &str| {
        let mut url = Url::parse(text).ok()?;
        url.set_fragment(None);
        Some(url)
    };
    a == b || plain(a).is_some_and(|url| Some(url) == plain(b))
}

/// Keeps the validators of a response as they came, and with them the address that gave them.
fn keep_validators(checkpoint: &mut Checkpoint, config: &Config, response: &HttpResponse) {
    checkpoint.etag = validator(response, "etag");
    checkpoint.last_modified = validator(response, "last-modified");
    let is_elsewhere = !is_same(&config.url, &response.final_url) && response.final_url.len() <= MAX_VALIDATOR_BYTES;
    checkpoint.address = if is_elsewhere { response.final_url.clone() } else { String::new() };
}

fn validator(response: &HttpResponse, name: &str) -> String {
    response.header(name).filter(|v| v.len() <= MAX_VALIDATOR_BYTES).unwrap_or("").to_owned()
}

/// The page of a 304, or of a body that was processed whole before.
fn unchanged(mut checkpoint: Checkpoint, call: &Call, response: &HttpResponse, outcome: Outcome) -> Page {
    if outcome == Outcome::Document {
        keep_validators(&mut checkpoint, &call.config, response);
    }
    checkpoint.not_before = not_before(checkpoint.ttl_seconds, call);
    Page {
        checkpoint: checkpoint.write(),
        reads: 1,
        hints: hints::hints(response, None, call.now),
        diagnostics: "{}".to_owned(),
        ..Page::default()
    }
}

/// The page of a document.
fn changes(
    feed: Feed,
    mut checkpoint: Checkpoint,
    call: &Call,
    response: &HttpResponse,
    hints: Hints,
    notes: &Notes,
) -> Page {
    let adopt = checkpoint.is_foreign();
    let mut state = std::mem::take(&mut checkpoint.identity);
    let seen = std::mem::take(&mut checkpoint.seen);
    let known: HashSet<&str> = seen.iter().map(|s| s.k.as_str()).collect();
    let switch = switch(&feed, &known, &mut state, call.config.identity, checkpoint.partial);
    let mut continuation = state.from.map(|from| Continuation::new(from, &state.trail));
    let (mut candidates, counts) = page::candidates(&feed, state.policy, |item, key| {
        continuation.as_mut().and_then(|c| c.previous(item, key, &known))
    });
    drop(known);
    conformance::note_counts(counts, notes);
    let window = page::window(&candidates);
    page::order(&mut candidates);
    let cut = page::cut(candidates, seen, adopt);
    if !cut.more && state.from.take().is_some() {
        state.trail.clear();
    }
    let policy = state.policy;
    checkpoint.identity = state;
    checkpoint.seen = cut.seen;
    checkpoint.adopt();
    checkpoint.partial = cut.more;
    if cut.more {
        // The next page reads the whole document again, so it must not be answered with 304.
        checkpoint.etag.clear();
        checkpoint.last_modified.clear();
        checkpoint.address.clear();
        checkpoint.not_before.clear();
    } else {
        keep_validators(&mut checkpoint, &call.config, response);
        checkpoint.ttl_seconds = feed.pace.ttl_minutes.map_or(0, |m| m.saturating_mul(60));
        checkpoint.not_before = not_before(checkpoint.ttl_seconds, call);
    }
    Page {
        items: cut.items,
        checkpoint: checkpoint.write(),
        more: cut.more,
        not_due: false,
        reads: 1,
        window: (!cut.more).then_some(window),
        hints,
        diagnostics: diagnostics(&feed, counts, &identity_shown(policy, switch), &notes.json()),
    }
}

/// The policy for a document: the configured one, or the one that the document and those before it show to be needed.
/// While pages of a document are left, its policy stays.
fn switch(feed: &Feed, known: &HashSet<&str>, state: &mut State, wanted: Identity, partial: bool) -> Option<Switch> {
    if partial && state.from.is_some() {
        return None;
    }
    let switch = match wanted {
        Identity::Fixed(to) if to != state.policy => Some(Switch { from: state.policy, to, because: "configured" }),
        Identity::Fixed(_) => None,
        Identity::Auto if state.policy != Policy::Guid || partial => None,
        Identity::Auto => policy::lossy(feed).or_else(|| policy::volatile(feed, known, state)),
    }?;
    state.policy = switch.to;
    // Where nothing is known there is nothing to go on from.
    state.from = (!known.is_empty()).then_some(switch.from);
    (state.strikes, state.contents) = (0, String::new());
    Some(switch)
}

/// What an operator sees of the document; its texts are cut until the whole fits its bound.
fn diagnostics(feed: &Feed, counts: Counts, identity: &str, notes: &str) -> String {
    let mut bytes = MAX_METADATA_BYTES;
    loop {
        let json = diagnostics_within(feed, counts, bytes, identity, notes);
        if json.len() <= MAX_DIAGNOSTICS_BYTES || bytes == 0 {
            return json;
        }
        bytes /= 2;
    }
}

/// The diagnostics with texts of at most so many bytes.
fn diagnostics_within(feed: &Feed, counts: Counts, bytes: usize, identity: &str, notes: &str) -> String {
    let meta = &feed.meta;
    let mut about = Object::new();
    about.text_unless_empty("title", clip(&metadata_line(&meta.title), bytes));
    about.text_unless_empty("link", clip(&meta.link, bytes));
    about.text_unless_empty("description", clip(&metadata_line(&meta.description), bytes));
    about.text_unless_empty("language", clip(&meta.language, bytes));
    about.text_unless_empty("icon", clip(&meta.icon, bytes));
    let mut numbers = Object::new();
    for (name, number) in [
        ("in_document", counts.in_document),
        ("beyond_bound", counts.beyond_bound),
        ("empty", counts.empty),
        ("duplicates", counts.duplicates),
    ] {
        numbers.raw(name, &number.to_string());
    }
    let mut out = Object::new();
    out.text("dialect", meta.dialect.name());
    out.text("dialect_declared", clip(&meta.declared, bytes.min(MAX_DECLARED_BYTES)));
    out.raw("counts", &numbers.finish());
    out.raw("identity", identity);
    out.raw("notes", notes);
    out.raw("feed", &about.finish());
    out.finish()
}

/// The policy in force, and where it was switched just now, from which one and why.
fn identity_shown(policy: Policy, switch: Option<Switch>) -> String {
    let mut shown = Object::new();
    shown.text("policy", policy.name());
    if let Some(switch) = switch {
        shown.text("from", switch.from.name());
        shown.text("because", switch.because);
    }
    shown.finish()
}
