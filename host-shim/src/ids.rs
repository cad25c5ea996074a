//! Identifiers of what the host makes: a prefix and 128 bits, time first, so that they sort by creation.

use std::sync::Mutex;

use uuid::{ContextV7, Timestamp, Uuid};

/// Counts within a millisecond (RFC 9562, section 6.2), so that what is made at once sorts by its order.
static CONTEXT: Mutex<ContextV7> = Mutex::new(ContextV7::new());

/// A new identifier, such as `rec_0192…`.
#[must_use]
pub(crate) fn new(prefix: &str, now_ms: i64) -> String {
    let millis = u64::try_from(now_ms).unwrap_or(0);
    let nanos = u32::try_from(millis % 1_000).unwrap_or(0) * 1_000_000;
    let id = Uuid::new_v7(Timestamp::from_unix(&CONTEXT, millis / 1_000, nanos));
    format!("{prefix}_{}", id.simple())
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_made_at_once_sorts_by_its_order() {
        let made: Vec<String> = (0..10_000).map(|n| super::new("x", 1_790_596_800_000 + n / 5_000)).collect();
        assert!(made.is_sorted());
    }
}
