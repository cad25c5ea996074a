//! A component that does what a good connector never does.
//!
//! The engine's tests and the demo run it. What it does is named by the member `mode` of the instance's config; the
//! modes that lie start from an honest page and break one rule of the contract each.

#[cfg(target_arch = "wasm32")]
mod component;
