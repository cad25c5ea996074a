//! The way out: resolver, address policy, dialer, redirects, credentials, bounds.
//!
//! Owns every byte that leaves for a network or comes from one. Knows nothing of feeds. Policy (`address`, `url`,
//! `rules`, `redirect`, `credential`) is pure; `resolver`, `dial` and `client` are the thin effects around it. A connection can
//! only be made to [`resolver::Judged`] addresses.

pub mod address;
pub mod client;
pub mod coding;
pub mod credential;
pub mod dial;
pub mod error;
pub mod redirect;
pub mod resolver;
pub mod rules;
pub mod turns;
pub mod url;
mod zstd;
