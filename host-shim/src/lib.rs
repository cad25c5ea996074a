//! The host shim: runs connector components and holds every power that they do not have.
//!
//! Floors, each importing only the ones below it:
//!
//! ```text
//! cli, api
//! runner (and corpus)
//! store        engine
//!              egress
//! ```

pub mod cli;
pub mod egress;
pub mod engine;
pub mod runner;
