//! Keys: made at random, shown once, kept as hashes, compared in constant time; and who may call what.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use sha2::{Digest, Sha256};

use super::{Api, ApiError};
use crate::corpus::access::{Principal, Scope, scopes};
use crate::store::StoreError;
use crate::store::model::ApiKey;

/// Wrong keys that an address may send in a minute before it is told to wait.
const MAX_FAILURES: u32 = 10;

/// The minute.
const WINDOW_MS: i64 = 60_000;

/// Addresses that are remembered; past that the oldest go.
const MAX_ADDRESSES: usize = 10_000;

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

/// The key among those that are valid. Every hash is compared to its end, whether one matched already or not.
fn find<'k>(keys: &'k [ApiKey], key: &str) -> Option<&'k ApiKey> {
    let hash = hash(key);
    keys.iter().filter(|k| k.revoked_at.is_none()).fold(None, |found, candidate| {
        let difference = candidate.hash.iter().zip(&hash).fold(0, |d, (a, b)| d | (a ^ b));
        if difference == 0 { Some(candidate) } else { found }
    })
}

fn principal(key: &ApiKey) -> Principal {
    Principal {
        key_id: key.key_id.clone(),
        scopes: scopes(&key.scopes),
        corpora: key.corpora.as_ref().map(|c| c.iter().cloned().collect()),
    }
}

/// Wrong keys by address, in fixed windows of a minute.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, (i64, u32)>>);

impl Failures {
    /// Counts a wrong key; the seconds to wait where there were too many.
    fn count(&self, address: IpAddr, now: i64) -> Option<i64> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_ADDRESSES {
            known.retain(|_, (since, _)| now - *since < WINDOW_MS);
            if known.len() >= MAX_ADDRESSES {
                known.clear();
            }
        }
        let (since, count) = known.entry(network(address)).or_insert((now, 0));
        if !(0..WINDOW_MS).contains(&(now - *since)) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        (*count > MAX_FAILURES).then(|| ((*since + WINDOW_MS - now) / 1_000).max(1))
    }
}

/// What one caller has: an IPv4 address, or the 64 bits of an IPv6 network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => v6
            .to_ipv4_mapped()
            .map_or_else(|| IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))), IpAddr::V4),
    }
}

/// The principal of a key; `None` where there is no such key any longer.
pub(super) async fn holder(api: &Api, key: &str) -> Result<Option<Principal>, StoreError> {
    let keys = api.service.store(|store| store.api_keys()).await?;
    Ok(find(&keys, key).map(principal))
}

/// The key of a request; a stream asks again whether it is still one.
#[derive(Clone)]
pub(super) struct Presented(pub(super) String);

/// Lets only holders of a key through. A right key always comes through, so that somebody else's wrong ones behind the
/// same proxy lock nobody out; 256 random bits need no lock against guessing.
pub(super) async fn require(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let key = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim().to_owned());
    let Some(key) = key else { return ApiError::unauthenticated().into_response() };
    let principal = match holder(&api, &key).await {
        Ok(Some(principal)) => principal,
        Ok(None) => return refused(&api, &request),
        Err(error) => return ApiError::from(error).into_response(),
    };
    let key_id = principal.key_id.clone();
    request.extensions_mut().insert(principal);
    request.extensions_mut().insert(Presented(key));
    let mut response = next.run(request).await;
    response.extensions_mut().insert(KeyId(key_id));
    response
}

/// Lets the owner of the data folder through: whoever has the files needs no key.
pub(super) async fn as_operator(mut request: Request, next: Next) -> Response {
    let principal = Principal::operator();
    let key_id = principal.key_id.clone();
    request.extensions_mut().insert(principal);
    request.extensions_mut().insert(Presented(String::new()));
    let mut response = next.run(request).await;
    response.extensions_mut().insert(KeyId(key_id));
    response
}

/// Who called, for the audit line.
#[derive(Clone)]
pub(super) struct KeyId(pub(super) String);

/// What a wrong key is answered.
fn refused(api: &Api, request: &Request) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|c| c.0.ip());
    let wait = peer.and_then(|ip| api.failures.count(ip, api.service.now_ms()));
    match wait {
        None => ApiError::unauthenticated().into_response(),
        Some(seconds) => {
            let mut response = ApiError::too_many_failures().into_response();
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
            response
        }
    }
}

/// A scope as a type, so that a handler's signature says what it needs, and it is asked for before the body is read.
pub(super) trait Needs {
    const SCOPE: Scope;
}

macro_rules! needs {
    ($($name:ident),*) => {$(
        pub(super) struct $name;
        impl Needs for $name {
            const SCOPE: Scope = Scope::$name;
        }
    )*};
}
needs!(ConnectorsRead, ConnectorsWrite, ConnectorsAdmin, ContentRead, ChangesRead);

/// Whoever calls, with the scope that the route needs.
pub(super) struct Allowed<N>(pub(super) Principal, pub(super) PhantomData<N>);

impl<N: Needs> FromRequestParts<Api> for Allowed<N> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, ApiError> {
        let principal = parts.extensions.get::<Principal>().cloned().ok_or_else(ApiError::unauthenticated)?;
        if principal.may(N::SCOPE) {
            Ok(Self(principal, PhantomData))
        } else {
            Err(ApiError::forbidden(N::SCOPE.name()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key_id: &str, hash: [u8; 32]) -> ApiKey {
        ApiKey {
            key_id: key_id.into(),
            name: String::new(),
            hash,
            scopes: "content:read".into(),
            corpora: None,
            created_at: 0,
            revoked_at: None,
        }
    }

    #[test]
    fn only_valid_keys_are_found() {
        let (first, first_hash) = new_key().unwrap();
        let (second, second_hash) = new_key().unwrap();
        assert_ne!(first, second);
        let revoked = ApiKey { revoked_at: Some(1), ..key("key_2", second_hash) };
        let keys = [key("key_0", [0; 32]), key("key_1", first_hash), revoked];
        assert_eq!(find(&keys, &first).unwrap().key_id, "key_1");
        assert!(find(&keys, &second).is_none());
        assert!(find(&keys, "").is_none());
        assert!(!format!("{keys:?}").contains(&first));
    }

    #[test]
    fn wrong_keys_are_counted_by_network_and_minute() {
        let failures = Failures::default();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for _ in 0..MAX_FAILURES {
            assert_eq!(failures.count(ip("2001:db8::1"), 1_000), None);
        }
        assert_eq!(failures.count(ip("2001:db8::2"), 31_000), Some(30));
        assert_eq!(failures.count(ip("2001:db8:0:1::2"), 31_000), None);
        assert_eq!(failures.count(ip("2001:db8::2"), 61_000), None);
        // The clock went back: a new window, not an endless one.
        assert_eq!(failures.count(ip("2001:db8::2"), 0), None);
        for n in 0..20_000_u32 {
            failures.count(IpAddr::V4(n.into()), 61_000);
        }
        assert!(failures.0.lock().unwrap().len() <= MAX_ADDRESSES);
    }
}
