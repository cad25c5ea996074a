//! The sandbox: components in wasmtime, behind types that cannot be used without limits.
//!
//! Owns pins and their digests, compilation and its cache, one fresh store per call, and the distrust of what a guest
//! returns. Knows nothing of feeds and nothing of networks: requests go to an [`upstream::Upstream`].

pub mod answer;
mod bindings;
pub mod descriptor;
pub mod error;
mod host;
pub mod image;
pub mod inspect;
pub mod limits;
pub mod pin;
pub mod plugin;
pub mod runtime;
mod sandbox;
pub mod upstream;
