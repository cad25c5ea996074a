//! The host shim: runs connector components and holds every power that they do not have.
//!
//! Floors, each importing only the ones below it:
//!
//! ```text
//! cli, api
//! corpus
//! runner
//! store        engine
//!              egress
//! ```

pub mod api;
pub mod certify;
pub mod cli;
pub mod config;
pub mod corpus;
pub mod egress;
pub mod engine;
pub mod fuzz;
mod ids;
pub mod opml;
pub mod quivr;
pub mod runner;
pub mod server;
pub mod store;

/// The examples of the page for embedders, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct Embedding;
