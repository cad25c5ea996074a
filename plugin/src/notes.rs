//! Conformance notes: what was odd about a document, and what was done about it.
//!
//! Owns the codes, the counting and the bounds. A note's detail is taken from structure (names of elements, encodings,
//! media types), never from prose, so that it may be shown where a feed's text may not.

use std::cell::RefCell;

use crate::canonical::Object;
use crate::identity::clip;

/// Notes of one document; there are fewer codes, but some stand once for each path.
const MAX_NOTES: usize = 64;

/// Bytes of one detail.
const MAX_DETAIL_BYTES: usize = 128;

/// What may be noted. The README's table says what an operator can do about each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The document was decoded from another encoding than UTF-8.
    Reencoded,
    /// It does not have the encoding that it, or its Content-Type, claims.
    CharsetMismatch,
    /// Bytes that mean nothing in its encoding were replaced.
    ReplacedBytes,
    /// Characters that XML forbids were taken out.
    StrippedControlCharacters,
    /// References to characters that XML forbids were taken out.
    BadCharacterReferences,
    /// A lone `&` was read as itself.
    EscapedAmpersands,
    /// A lone `<` was read as itself.
    EscapedAngleBrackets,
    /// Attributes without quotes or without a value were read.
    RepairedAttributes,
    /// End tags were added, or taken out.
    BalancedTags,
    /// References that XML does not know: those of HTML were read, others stand as text.
    UnknownEntities,
    /// A prefix without a namespace was read as it is usually meant.
    UndeclaredPrefix,
    /// The root element has a namespace that nobody knows; the document was read as what it is called.
    UnknownNamespace,
    /// Something stood before the document.
    JunkBeforeDocument,
    /// Something stood after it.
    JunkAfterDocument,
    /// The media type names another kind of document.
    ContentTypeMismatch,
    /// An element that its dialect demands is not there.
    MissingRequired,
    /// Items have neither an id nor a link.
    EntriesWithoutIdentity,
    /// Items share what identifies them.
    DuplicateIdentity,
    /// A text in a date's place is none.
    DateUnparsed,
    /// A date has no zone, or one that nobody knows; it was read as UTC.
    DateZoneGuessed,
    /// A date lies in the future.
    DateInFuture,
    /// Items without title and text were left out.
    EmptyItemDropped,
    /// Items beyond the bound were left out.
    ItemsBeyondBound,
    /// Escaped CDATA markers were taken off.
    UnwrappedCdata,
    /// Data in base64 was decoded.
    DecodedBase64,
}

impl Code {
    /// The name in diagnostics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reencoded => "reencoded",
            Self::CharsetMismatch => "charset_mismatch",
            Self::ReplacedBytes => "replaced_bytes",
            Self::StrippedControlCharacters => "stripped_control_characters",
            Self::BadCharacterReferences => "bad_character_references",
            Self::EscapedAmpersands => "escaped_ampersands",
            Self::EscapedAngleBrackets => "escaped_angle_brackets",
            Self::RepairedAttributes => "repaired_attributes",
            Self::BalancedTags => "balanced_tags",
            Self::UnknownEntities => "unknown_entities",
            Self::UndeclaredPrefix => "undeclared_prefix",
            Self::UnknownNamespace => "unknown_namespace",
            Self::JunkBeforeDocument => "junk_before_document",
            Self::JunkAfterDocument => "junk_after_document",
            Self::ContentTypeMismatch => "content_type_mismatch",
            Self::MissingRequired => "missing_required",
            Self::EntriesWithoutIdentity => "entries_without_identity",
            Self::DuplicateIdentity => "duplicate_identity",
            Self::DateUnparsed => "date_unparsed",
            Self::DateZoneGuessed => "date_zone_guessed",
            Self::DateInFuture => "date_in_future",
            Self::EmptyItemDropped => "empty_item_dropped",
            Self::ItemsBeyondBound => "items_beyond_bound",
            Self::UnwrappedCdata => "unwrapped_cdata",
            Self::DecodedBase64 => "decoded_base64",
        }
    }

    /// Whether each detail stands for itself.
    fn is_by_detail(self) -> bool {
        matches!(self, Self::MissingRequired)
    }
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What.
    pub code: Code,
    /// How often.
    pub count: usize,
    /// The first place, as a byte of the decoded document, where there is one.
    pub position: Option<usize>,
    /// What it was about.
    pub detail: String,
}

/// The notes of one document, in the order in which they came up. Readers share it, so it is written through `&self`.
#[derive(Debug, Default)]
pub struct Notes(RefCell<Vec<Note>>);

impl Notes {
    /// Notes something once.
    pub fn add(&self, code: Code, position: Option<usize>, detail: &str) {
        self.add_many(code, 1, position, detail);
    }

    /// Notes something that happened so many times; zero times is no note.
    pub fn add_many(&self, code: Code, count: usize, position: Option<usize>, detail: &str) {
        if count == 0 {
            return;
        }
        let mut notes = self.0.borrow_mut();
        let detail = clip(detail, MAX_DETAIL_BYTES);
        let same = |n: &&mut Note| n.code == code && (!code.is_by_detail() || n.detail == detail);
        if let Some(note) = notes.iter_mut().find(same) {
            note.count += count;
        } else if notes.len() < MAX_NOTES {
            notes.push(Note { code, count, position, detail: detail.to_owned() });
        }
    }

    /// Takes over the notes of another reading.
    pub fn take(&self, other: &Self) {
        for note in other.list() {
            self.add_many(note.code, note.count, note.position, &note.detail);
        }
    }

    /// The notes so far.
    #[must_use]
    pub fn list(&self) -> Vec<Note> {
        self.0.borrow().clone()
    }

    /// The notes as a JSON array.
    #[must_use]
    pub fn json(&self) -> String {
        let mut out = String::from("[");
        for (n, note) in self.0.borrow().iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            let mut json = Object::new();
            json.text("code", note.code.name());
            json.raw("count", &note.count.to_string());
            if let Some(position) = note.position {
                json.raw("position", &position.to_string());
            }
            json.text_unless_empty("detail", &note.detail);
            out.push_str(&json.finish());
        }
        out.push(']');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_counted_and_keeps_its_first_place() {
        let notes = Notes::default();
        notes.add(Code::EscapedAmpersands, Some(7), "");
        notes.add_many(Code::EscapedAmpersands, 2, Some(9), "");
        notes.add(Code::MissingRequired, None, "channel/title");
        notes.add(Code::MissingRequired, None, "channel/link");
        notes.add_many(Code::EmptyItemDropped, 0, None, "");
        assert_eq!(
            notes.json(),
            concat!(
                r#"[{"code":"escaped_ampersands","count":3,"position":7},"#,
                r#"{"code":"missing_required","count":1,"detail":"channel/title"},"#,
                r#"{"code":"missing_required","count":1,"detail":"channel/link"}]"#
            )
        );
        assert_eq!(Notes::default().json(), "[]");
    }
}
