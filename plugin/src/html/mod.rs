//! Reading of HTML: tokens, entities, the tree of a fragment, and what is written from it.
//!
//! Owns everything that knows what a tag is. Works on strings under bounds, never fails and never panics:
//! whatever is not markup is text. Must not know feeds.

pub mod address;
pub mod attributes;
pub mod document;
pub mod entities;
pub mod entry;
pub mod key_text;
pub mod markdown;
pub mod safe;
pub mod text;
pub mod tokens;
pub mod tree;

/// Characters that XML 1.0 allows (section 2.2).
#[must_use]
pub fn is_xml_char(c: char) -> bool {
    !matches!(c, '\0'..='\x08' | '\x0B' | '\x0C' | '\x0E'..='\x1F' | '\u{FFFE}' | '\u{FFFF}')
}
