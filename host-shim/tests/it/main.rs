//! Contract and acceptance tests: the real component in real wasmtime, real sockets, the real program.
//!
//! They need the built components beside the program; `make verify` builds them first.

#![allow(unreachable_pub, reason = "one crate of tests")]

mod cli;
mod egress;
mod fixtures;
mod hostile;
mod pins;
mod poll;
mod support;
