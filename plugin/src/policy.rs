//! Identity for feeds that break the rules: which policy makes the keys, when it switches, and how old records go on.
//!
//! The rule (guid, else link, else content) holds until a document shows that it loses items. Then `auto` switches, the
//! switch sticks in the checkpoint, and each item that was known under its old key is sent once with that key beside
//! the new one, so that its record goes on. Owns the signs of a broken feed; how a key is made belongs to `identity`.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use crate::canonical::{self, Object, Sink};
use crate::identity::{self, Metadata};
use crate::model::{Feed, Item};

/// Items that a document must have before its keys are judged: in a shorter one chance looks like a pattern.
const MIN_ITEMS: usize = 3;

/// Of ten items, how many must have new keys at a poll that counts as a strike.
const NEW_OF_TEN: usize = 8;

/// Strikes in a row after which guids count as volatile.
const STRIKES: u8 = 2;

/// Bytes of the trail of keys that is kept between the strikes; items beyond it become new records.
const MAX_TRAIL_BYTES: usize = 16 * 1_024;

/// Hexadecimal digits of a content's mark.
const MARK: usize = 8;

/// How a record key is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Deserialize)]
pub enum Policy {
    /// The rule: guid, else link, else content.
    #[default]
    #[serde(rename = "guid")]
    Guid,
    /// Guid and link together.
    #[serde(rename = "guid+link")]
    GuidLink,
    /// Link, else the rule.
    #[serde(rename = "link")]
    Link,
    /// Guid, else link and title together.
    #[serde(rename = "link+title")]
    LinkTitle,
    /// Title and text.
    #[serde(rename = "content")]
    Content,
}

impl Policy {
    /// The name in configs, checkpoints and diagnostics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Guid => "guid",
            Self::GuidLink => "guid+link",
            Self::Link => "link",
            Self::LinkTitle => "link+title",
            Self::Content => "content",
        }
    }

    /// Whether the guid says something about an item under this policy; else it does not enter the revision either.
    #[must_use]
    pub fn trusts_guid(self) -> bool {
        !matches!(self, Self::Link | Self::Content)
    }

    /// Whether the link does.
    #[must_use]
    pub fn trusts_link(self) -> bool {
        self != Self::Content
    }
}

/// What the checkpoint keeps of identity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct State {
    /// Policy in force.
    pub policy: Policy,
    /// While a switch is under way (pages are left): the policy before it.
    pub from: Option<Policy>,
    /// Polls in a row at which nearly every guid was new and most contents were not.
    pub strikes: u8,
    /// Marks of the contents of the last document, joined.
    pub contents: String,
    /// Mark and key of items at the last strike, so that their records can go on.
    pub trail: Vec<(String, String)>,
}

impl State {
    /// The state as a member of the checkpoint; empty where there is nothing to keep.
    #[must_use]
    pub fn write(&self) -> String {
        if *self == Self::default() {
            return String::new();
        }
        let mut json = Object::new();
        if self.policy != Policy::Guid {
            json.text("policy", self.policy.name());
        }
        if let Some(from) = self.from {
            json.text("from", from.name());
        }
        if self.strikes > 0 {
            json.raw("strikes", &self.strikes.to_string());
        }
        json.text_unless_empty("contents", &self.contents);
        json.list_unless_empty("trail", &self.trail, |out, (mark, key)| {
            out.put("[");
            canonical::string(out, mark);
            out.put(",");
            canonical::string(out, key);
            out.put("]");
        });
        json.finish()
    }
}

/// A switch of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Policy before.
    pub from: Policy,
    /// Policy after.
    pub to: Policy,
    /// Why: a stable code.
    pub because: &'static str,
}

/// A mark of what an item says, apart from its identifiers. It only has to tell the items of one feed apart, so a fast
/// mixing of its bytes does (multiply and rotate, as in FxHash); it is the same on every machine.
#[must_use]
pub fn mark(item: &Item) -> String {
    const MULTIPLIER: u64 = 0x517c_c1b7_2722_0a95;
    let mut hash = 0_u64;
    let mut mix = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    for text in [&item.title.raw, &item.content.raw, &item.summary.raw] {
        let mut words = text.as_bytes().chunks_exact(8);
        for word in &mut words {
            mix(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        let tail = words.remainder().iter().fold(0, |tail, b| (tail << 8) | u64::from(*b));
        mix(tail);
        mix(text.len() as u64);
    }
    let folded = u32::try_from((hash >> 32) ^ (hash & 0xFFFF_FFFF)).unwrap_or(u32::MAX);
    format!("{folded:08x}")
}

/// Whether a document shows that the rule loses items, and which policy does not.
#[must_use]
pub fn lossy(feed: &Feed) -> Option<Switch> {
    let mut by_guid: HashMap<&str, &str> = HashMap::new();
    let mut by_link: HashMap<&str, &str> = HashMap::new();
    let mut shared_links = false;
    for item in &feed.items {
        let (guid, link) = (item.guid.as_str(), item.link.as_str());
        if guid.is_empty() {
            let first = by_link.entry(link).or_insert(&item.title.raw);
            shared_links |= !link.is_empty() && *first != item.title.raw;
        } else if !link.is_empty() && *by_guid.entry(guid).or_insert(link) != link {
            return Some(Switch { from: Policy::Guid, to: Policy::GuidLink, because: "repeated_guid" });
        }
    }
    shared_links.then_some(Switch { from: Policy::Guid, to: Policy::LinkTitle, because: "repeated_link" })
}

/// Counts a strike where nearly every guid is new while most contents are known; the second in a row is a switch.
/// `known` has the short keys of every item seen before. Updates what the state keeps for the next poll.
#[must_use]
pub fn volatile(feed: &Feed, known: &HashSet<&str>, state: &mut State) -> Option<Switch> {
    let marks: Vec<String> = feed.items.iter().map(mark).collect();
    let before: HashSet<String> = chunks(&state.contents).map(str::to_owned).collect();
    // Only guids can be volatile; what is known by its content takes long to name, and keeps its name anyway.
    let key = |i: &Item| match i.guid.is_empty() {
        true => String::new(),
        false => identity::record_key(&Metadata::of(i), i, Policy::Guid).0,
    };
    let keys: Vec<String> = feed.items.iter().map(key).collect();
    let is_new = |at: usize| keys.get(at).is_some_and(|k| !known.contains(identity::short_key(k).as_str()));
    let new: Vec<usize> =
        (0..keys.len()).filter(|at| feed.items.get(*at).is_some_and(|i| !i.guid.is_empty()) && is_new(*at)).collect();
    let with_known_content = new.iter().filter(|at| marks.get(**at).is_some_and(|m| before.contains(m))).count();
    let strike =
        keys.len() >= MIN_ITEMS && new.len() * 10 >= keys.len() * NEW_OF_TEN && with_known_content * 2 > new.len();
    state.contents = marks.concat();
    state.strikes = if strike { state.strikes + 1 } else { 0 };
    if state.strikes >= STRIKES {
        state.strikes = 0;
        state.contents.clear();
        return Some(Switch { from: Policy::Guid, to: stable(feed), because: "volatile_guids" });
    }
    state.trail.clear();
    if strike {
        let mut bytes = 0;
        for (mark, key) in marks.into_iter().zip(keys).filter(|(_, key)| !key.is_empty()) {
            bytes += key.len() + MARK + 8;
            if bytes > MAX_TRAIL_BYTES {
                break;
            }
            state.trail.push((mark, key));
        }
    }
    None
}

/// The policy for volatile guids: the link where every item has one of its own, else the content.
fn stable(feed: &Feed) -> Policy {
    let mut links = HashSet::new();
    let distinct = feed.items.iter().all(|i| !i.link.is_empty() && links.insert(i.link.as_str()));
    if distinct { Policy::Link } else { Policy::Content }
}

fn chunks(marks: &str) -> impl Iterator<Item = &str> {
    (0..marks.len() / MARK).filter_map(|n| marks.get(n * MARK..(n + 1) * MARK))
}

/// The key under which an item was known before a switch, for the first item that lays claim to it.
#[derive(Debug)]
pub struct Continuation<'s> {
    from: Policy,
    by_mark: HashMap<&'s str, &'s str>,
    taken: HashSet<String>,
}

impl<'s> Continuation<'s> {
    /// From a policy, with the trail of volatile guids.
    #[must_use]
    pub fn new(from: Policy, trail: &'s [(String, String)]) -> Self {
        let by_mark = trail.iter().map(|(mark, key)| (mark.as_str(), key.as_str())).collect();
        Self { from, by_mark, taken: HashSet::new() }
    }

    /// The previous key of an item whose new key is `key`, where the item was known.
    pub fn previous(&mut self, item: &Item, key: &str, known: &HashSet<&str>) -> Option<String> {
        let by_rule = identity::record_key(&Metadata::of(item), item, self.from).0;
        let previous = if known.contains(identity::short_key(&by_rule).as_str()) {
            by_rule
        } else {
            (*self.by_mark.get(mark(item).as_str())?).to_owned()
        };
        (previous != key && self.taken.insert(previous.clone())).then_some(previous)
    }
}
