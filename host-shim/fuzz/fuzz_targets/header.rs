//! See `host_shim::fuzz::headers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| host_shim::fuzz::headers(data));
