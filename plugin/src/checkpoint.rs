//! The checkpoint: what one page tells the next.
//!
//! Owns its JSON form, which is that of Quivr's plugin (members in a fixed order, empty ones left out) with
//! members of our own behind theirs: `reader`, `address` and `identity`. They ignore members they do not know, and a checkpoint without
//! `reader` is theirs: it is adopted at the first document.

use serde::Deserialize;

use crate::canonical::{self, Object, Sink};
use crate::policy::State;

/// Entries of `seen` that are kept, the newest ones.
pub const MAX_SEEN: usize = 2_000;

/// Bytes of the encoded checkpoint; the manifest promises 128 KiB, and some room stays for what comes.
pub const MAX_BYTES: usize = 120 * 1_024;

/// Entries dropped at a time while the checkpoint is too long.
const DROP_STEP: usize = 64;

/// The longest validator that is kept. Servers send some hundred bytes; a longer one would crowd out identity.
pub const MAX_VALIDATOR_BYTES: usize = 4_096;

/// What `reader` says in a checkpoint of ours.
const READER: &str = "connector.rss/1";

/// A known item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Seen {
    /// Short form of its record key.
    pub k: String,
    /// Short form of its revision.
    pub r: String,
}

/// The state between two pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    /// ETag, as received.
    pub etag: String,
    /// Last-Modified, as received.
    pub last_modified: String,
    /// RSS `ttl` in seconds.
    pub ttl_seconds: u64,
    /// No request before this instant, RFC 3339.
    pub not_before: String,
    /// A page of the current document is still to come.
    pub partial: bool,
    /// Known items, oldest first.
    pub seen: Vec<Seen>,
    /// Which reader wrote it; empty for Quivr's plugin.
    reader: String,
    /// The address that gave the validators, where it is not the configured one.
    pub address: String,
    /// How keys are made, where the feed breaks the rules.
    pub identity: State,
}

impl Checkpoint {
    /// Reads a checkpoint; an absent one and `null` are empty and ours.
    ///
    /// # Errors
    /// The JSON reader's complaint when it is not a checkpoint.
    pub fn read(json: Option<&str>) -> Result<Self, serde_json::Error> {
        match json.map(str::trim) {
            None | Some("" | "null") => Ok(Self { reader: READER.to_owned(), ..Self::default() }),
            // An array of the right length would pass for an object in serde's eyes.
            Some(text) if !text.starts_with('{') => Err(serde::de::Error::custom("not an object")),
            Some(text) => serde_json::from_str(text),
        }
    }

    /// Another reader wrote it: its keys are to be trusted, its revisions are not comparable.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.reader != READER
    }

    /// Marks it as ours.
    pub fn adopt(&mut self) {
        READER.clone_into(&mut self.reader);
    }

    /// The encoded form within its bounds: the newest entries of `seen` stay.
    #[must_use]
    pub fn write(mut self) -> String {
        if self.seen.len() > MAX_SEEN {
            self.seen.drain(..self.seen.len() - MAX_SEEN);
        }
        loop {
            let json = self.encode();
            if json.len() <= MAX_BYTES || self.seen.is_empty() {
                return json;
            }
            self.seen.drain(..DROP_STEP.min(self.seen.len()));
        }
    }

    fn encode(&self) -> String {
        let mut json = Object::new();
        json.text_unless_empty("etag", &self.etag);
        json.text_unless_empty("last_modified", &self.last_modified);
        if self.ttl_seconds > 0 {
            json.raw("ttl_seconds", &self.ttl_seconds.to_string());
        }
        json.text_unless_empty("not_before", &self.not_before);
        json.flag_if_set("partial", self.partial);
        json.list_unless_empty("seen", &self.seen, |out, s| {
            out.put("{\"k\":");
            canonical::string(out, &s.k);
            out.put(",\"r\":");
            canonical::string(out, &s.r);
            out.put("}");
        });
        json.text_unless_empty("reader", &self.reader);
        json.text_unless_empty("address", &self.address);
        let identity = self.identity.write();
        if !identity.is_empty() {
            json.raw("identity", &identity);
        }
        json.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(n: usize) -> Seen {
        Seen { k: format!("{n:016x}"), r: format!("{n:016x}") }
    }

    #[test]
    fn members_stand_in_quivrs_order_and_empty_ones_are_left_out() {
        let checkpoint = Checkpoint {
            etag: "\"v1\"".into(),
            last_modified: "Tue, 01 Sep 2026 10:00:00 GMT".into(),
            ttl_seconds: 900,
            not_before: "2026-09-28T12:15:00Z".into(),
            partial: true,
            seen: vec![seen(1)],
            ..Checkpoint::default()
        };
        assert_eq!(
            checkpoint.write(),
            r#"{"etag":"\"v1\"","last_modified":"Tue, 01 Sep 2026 10:00:00 GMT","ttl_seconds":900,"not_before":"2026-09-28T12:15:00Z","partial":true,"seen":[{"k":"0000000000000001","r":"0000000000000001"}]}"#
        );
        assert_eq!(Checkpoint::default().write(), "{}");
    }

    #[test]
    fn what_is_written_is_read_and_unknown_members_are_passed_over() {
        let ours = Checkpoint { etag: "e<".into(), seen: vec![seen(7)], ..Checkpoint::read(None).unwrap() };
        let read = Checkpoint::read(Some(&ours.clone().write())).unwrap();
        assert_eq!(read, ours);
        assert!(!read.is_foreign());
        let theirs = Checkpoint::read(Some(r#"{"etag":"x","later":[1]}"#)).unwrap();
        assert!(theirs.is_foreign());
        for bad in ["[]", "{\"seen\":1}", "{", "7"] {
            assert!(Checkpoint::read(Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_newest_entries_stay_within_both_bounds() {
        let many = Checkpoint { seen: (0..=MAX_SEEN).map(seen).collect(), ..Checkpoint::default() };
        let kept = Checkpoint::read(Some(&many.write())).unwrap().seen;
        assert_eq!((kept.len(), kept[0].clone()), (MAX_SEEN, seen(1)));
        let long = |n: usize| Seen { k: format!("{n:0200}"), r: String::new() };
        let json = Checkpoint { seen: (0..1_000).map(long).collect(), ..Checkpoint::default() }.write();
        assert!(json.len() <= MAX_BYTES);
        let kept = Checkpoint::read(Some(&json)).unwrap().seen;
        assert_eq!(kept.last(), Some(&long(999)));
        assert_eq!((1_000 - kept.len()) % DROP_STEP, 0);
    }
}
