//! Cursors of lists: opaque to callers, bound to the filter they came from.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::ApiError;
use crate::engine::pin::Digest;

/// Longest cursor that is looked at.
const MAX_CURSOR_BYTES: usize = 1_024;

/// The parameter of lists.
const PAGE: &str = "page_cursor";

/// Makes a cursor for a place in a list with a filter.
pub(super) fn write(filter: &str, place: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {place}", tag(filter)))
}

/// What a cursor is answered that no list gave.
pub(super) fn invalid() -> ApiError {
    invalid_in(PAGE)
}

/// The same, where the parameter has another name.
pub(super) fn invalid_in(parameter: &str) -> ApiError {
    let message = format!("{parameter} is not one that this list gave");
    ApiError::invalid("invalid_cursor", Some(parameter.to_owned()), message)
}

/// The place in a cursor.
pub(super) fn read(filter: &str, cursor: &str) -> Result<String, ApiError> {
    read_in(PAGE, filter, cursor)
}

/// The same, where the parameter has another name.
pub(super) fn read_in(parameter: &str, filter: &str, cursor: &str) -> Result<String, ApiError> {
    let invalid = || invalid_in(parameter);
    if cursor.len() > MAX_CURSOR_BYTES {
        return Err(invalid());
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| invalid())?;
    let text = String::from_utf8(bytes).map_err(|_| invalid())?;
    let (found, place) = text.split_once(' ').ok_or_else(invalid)?;
    if found != tag(filter) {
        let message = format!("{parameter} belongs to another filter; start again");
        return Err(ApiError::conflict("cursor_scope_changed", message));
    }
    Ok(place.to_owned())
}

fn tag(filter: &str) -> String {
    Digest::of(filter.as_bytes()).hex().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_holds_its_place_and_its_filter() {
        let cursor = write("corpus=a", "17");
        assert_eq!(read("corpus=a", &cursor).unwrap(), "17");
        assert!(read("corpus=b", &cursor).is_err());
        for bad in ["", "!!", "YWJj", &"a".repeat(2_000)] {
            assert!(read("corpus=a", bad).is_err(), "{bad}");
        }
    }
}
