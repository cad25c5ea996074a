//! `connector.rss`: turns each item of a polled feed into a keyed, revision-hashed record.
//!
//! The library is pure: bytes, a checkpoint, a configuration and a clock come in, a page comes out, and the only
//! effect is the host's `http` interface, which is a trait here. Data flows one way:
//!
//! ```text
//! bytes → decode → parse → items → text → record → page
//! ```
//!
//! On `wasm32-unknown-unknown` the module `component` puts the face of `wit/` on it; nothing else knows the bindings.

pub mod canonical;
pub mod checkpoint;
pub mod config;
pub mod conformance;
pub mod contract;
pub mod date;
pub mod decode;
pub mod describe;
pub mod fetch;
#[cfg(not(target_arch = "wasm32"))]
pub mod fuzz;
pub mod hints;
pub mod html;
pub mod identity;
pub mod model;
pub mod notes;
pub mod page;
pub mod parse;
pub mod policy;
pub mod record;
pub mod render;
pub mod status;

#[cfg(target_arch = "wasm32")]
mod component;
