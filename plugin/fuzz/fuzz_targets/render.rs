//! See `connector_rss::fuzz::rendering`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| connector_rss::fuzz::rendering(data));
