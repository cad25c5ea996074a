//! See `host_shim::fuzz::url_policy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| host_shim::fuzz::url_policy(data));
