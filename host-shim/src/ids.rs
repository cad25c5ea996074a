//! Identifiers of what the host makes: a prefix and 128 bits, time first, so that they sort by creation.

use uuid::{NoContext, Timestamp, Uuid};

/// A new identifier, such as `rec_0192…`.
#[must_use]
pub(crate) fn new(prefix: &str, now_ms: i64) -> String {
    let millis = u64::try_from(now_ms).unwrap_or(0);
    let nanos = u32::try_from(millis % 1_000).unwrap_or(0) * 1_000_000;
    let id = Uuid::new_v7(Timestamp::from_unix(NoContext, millis / 1_000, nanos));
    format!("{prefix}_{}", id.simple())
}
