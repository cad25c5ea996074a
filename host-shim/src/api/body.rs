//! Request bodies: JSON, bounded, unknown fields refused by name; and the parameters of lists.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::{Api, ApiError, MAX_LIMIT};
use crate::engine::pin::Digest;
use crate::store::model::Idempotency;

/// A JSON body of a known shape.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Api) -> Result<Self, ApiError> {
        let is_json = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .and_then(|v| v.split(';').next())
            .is_some_and(|v| v.trim().eq_ignore_ascii_case("application/json"));
        if !is_json {
            return Err(ApiError::media_type());
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            if rejection.into_response().status() == StatusCode::PAYLOAD_TOO_LARGE {
                ApiError::too_large(super::MAX_BODY_BYTES)
            } else {
                ApiError::malformed("The request body could not be read")
            }
        })?;
        parse(&bytes).map(Body)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| {
        ApiError::malformed(format!("The request body is not JSON (line {}, column {})", e.line(), e.column()))
    })?;
    if !value.is_object() {
        return Err(ApiError::invalid("invalid_schema", None, "The request body is not a JSON object"));
    }
    serde_json::from_value(value).map_err(|e| {
        let text = e.to_string();
        let field = ["unknown field `", "missing field `"]
            .iter()
            .find_map(|p| text.strip_prefix(p)?.split('`').next())
            .map(|name| format!("/{name}"));
        ApiError::invalid("invalid_schema", field, format!("The request body has another shape: {text}"))
    })
}

/// The parameters of a list; unknown ones are refused by name.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Api> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Api) -> Result<Self, ApiError> {
        Query::<T>::from_request_parts(parts, state).await.map(|Query(q)| Self(q)).map_err(|e| {
            ApiError::invalid("invalid_query", None, format!("A query parameter is unknown or has another form: {e}"))
        })
    }
}

/// The identifiers in a path. What is no text names nothing.
pub(super) struct At<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Api> for At<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Api) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|_| ApiError::not_found("this path"))
    }
}

/// A whole number as JSON has it: `60` and `60.0` are the same (JSON Schema 2020-12, section 6.1.1).
pub(super) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    let rounded = || number.as_f64().filter(|n| n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(n));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and in range")]
    let whole = number.as_u64().and_then(|n| u32::try_from(n).ok()).or_else(|| rounded().map(|n| n as u32));
    whole.ok_or_else(|| D::Error::custom("a whole number of at most 4294967295 is expected"))
}

/// The same, where it may be absent or `null`.
pub(super) fn whole_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    struct Whole(#[serde(deserialize_with = "whole")] u32);
    Ok(Option::<Whole>::deserialize(from)?.map(|w| w.0))
}

/// The number of entries that a list gives.
pub(super) fn limit(given: Option<String>) -> Result<u32, ApiError> {
    match given.map(|text| text.parse::<u32>()) {
        None => Ok(MAX_LIMIT),
        Some(Ok(n)) if (1..=MAX_LIMIT).contains(&n) => Ok(n),
        Some(_) => {
            let message = format!("limit must be 1 to {MAX_LIMIT}");
            Err(ApiError::invalid("invalid_limit", Some("limit".to_owned()), message))
        }
    }
}

/// A use of an idempotency key for a canonical request. Members of JSON objects are sorted, so their order does not
/// count.
pub(super) fn once(scope: &str, key: &str, request: &serde_json::Value) -> Result<Idempotency, ApiError> {
    let valid = (1..=128).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic());
    let field = Some("/idempotency_key".to_owned());
    if !valid {
        let message = "idempotency_key must be 1 to 128 printable ASCII characters without blanks";
        return Err(ApiError::invalid("invalid_schema", field, message));
    }
    if key.starts_with("connector:") {
        let message = "Keys that start with connector: are the service's own";
        return Err(ApiError::invalid("reserved_idempotency_key", field, message));
    }
    Ok(Idempotency {
        scope: scope.to_owned(),
        key: key.to_owned(),
        request: Digest::of(request.to_string().as_bytes()).bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Both {
        #[serde(deserialize_with = "whole")]
        must: u32,
        #[serde(default, deserialize_with = "whole_or_none")]
        may: Option<u32>,
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point() {
        let read = |text: &str| serde_json::from_str::<Both>(text);
        for (text, must, may) in [
            ("{\"must\": 60}", 60, None),
            ("{\"must\": 6e1, \"may\": null}", 60, None),
            ("{\"must\": 4294967295, \"may\": 7.0}", u32::MAX, Some(7)),
        ] {
            let both = read(text).unwrap();
            assert_eq!((both.must, both.may), (must, may));
        }
        for bad in ["60.5", "-1", "4294967296", "1e300", "\"60\"", "null", "true"] {
            assert!(read(&format!("{{\"must\": {bad}}}")).is_err(), "{bad}");
        }
    }
}
