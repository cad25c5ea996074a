//! Reading of HTML: tokens, entities and the plain text of a fragment.
//!
//! Owns everything that knows what a tag is. Works on strings under bounds, never fails and never panics:
//! whatever is not markup is text. Must not know feeds.

pub mod attributes;
pub mod entities;
pub mod key_text;
pub mod text;
pub mod tokens;
