//! See `connector_rss::fuzz::repairing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| connector_rss::fuzz::repairing(data));
