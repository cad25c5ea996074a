//! Rendering of stored markup.
//!
//! Owns the bound of an output. A pure function of each fragment; it uses the very code that made the parts.

use crate::html::text;
use crate::identity::clip;
use crate::model::Markup;

/// Bytes of one rendered fragment: what an item may hold of text altogether.
pub const MAX_OUTPUT_BYTES: usize = crate::record::MAX_TEXT_BYTES;

/// A fragment as plain text, and whether it was cut.
#[must_use]
pub fn text(source: &str, markup: Markup) -> (String, bool) {
    let mut output = text::plain(source, markup).text;
    let kept = clip(&output, MAX_OUTPUT_BYTES).len();
    let truncated = kept < output.len();
    output.truncate(kept);
    (output, truncated)
}
