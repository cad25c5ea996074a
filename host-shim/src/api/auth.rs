//! Keys: made at random, shown once, kept as hashes, compared in constant time.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use sha2::{Digest, Sha256};

use super::{Api, ApiError};

/// Hashes of the keys that may call.
#[derive(Debug, Clone, Default)]
pub struct Keys(Arc<Vec<[u8; 32]>>);

impl Keys {
    /// Keys by their hashes.
    #[must_use]
    pub fn new(hashes: Vec<[u8; 32]>) -> Self {
        Self(Arc::new(hashes))
    }

    /// Whether a key is one of them. Every hash is compared to its end.
    fn knows(&self, key: &str) -> bool {
        let hash = hash(key);
        self.0.iter().fold(false, |known, candidate| {
            let difference = candidate.iter().zip(&hash).fold(0, |d, (a, b)| d | (a ^ b));
            known | (difference == 0)
        })
    }
}

/// The hash of a key. A key has 256 random bits, so a fast hash does.
fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// A new key with its hash.
///
/// # Errors
/// Where the machine has no randomness.
pub fn new_key() -> Result<(String, [u8; 32]), getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    let key = format!("hs_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes));
    let hash = hash(&key);
    Ok((key, hash))
}

/// Lets only holders of a key through.
pub(super) async fn require(State(api): State<Api>, request: Request, next: Next) -> Response {
    let key = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim());
    if key.is_some_and(|k| api.keys.knows(k)) {
        next.run(request).await
    } else {
        ApiError::unauthenticated().into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_keys_are_let_in() {
        let (first, first_hash) = new_key().unwrap();
        let (second, _) = new_key().unwrap();
        assert_ne!(first, second);
        let keys = Keys::new(vec![[0; 32], first_hash]);
        assert!(keys.knows(&first));
        assert!(!keys.knows(&second));
        assert!(!keys.knows(""));
        assert!(!format!("{keys:?}").contains(&first));
    }
}
