//! Contract and acceptance tests: the real component in real wasmtime, real sockets, the real program.
//!
//! They need the built components beside the program; `make verify` builds them first.

#![allow(unreachable_pub, reason = "one crate of tests")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails loudly"
)]

mod api;
mod certify;
mod chaos;
mod cli;
mod egress;
mod faults;
mod fixtures;
mod fuzz;
mod hostile;
mod operator;
mod pace;
mod pins;
mod poll;
mod quivr;
mod rest;
mod service;
mod support;
mod upkeep;
mod way_out;
