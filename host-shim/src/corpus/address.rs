//! Addresses of feeds as people hand them over, without I/O: which are the same, and what namespace one gives.

use serde_json::Value;
use url::Url;

use crate::egress::url::normalise;
use crate::engine::pin::Digest;
use crate::store::model::NewInstance;

/// Bytes of a source namespace (Quivr's bound).
pub const MAX_NAMESPACE_BYTES: usize = 200;

/// What is the same address: as it is requested, without a fragment.
#[must_use]
pub fn same(url: &str) -> String {
    let normal = normalise(url);
    match Url::parse(&normal) {
        Ok(mut url) => {
            url.set_fragment(None);
            url.into()
        }
        Err(_) => normal,
    }
}

/// A namespace from an address: host and path, and a hash where there is a query or too much of it.
#[must_use]
pub fn namespace(url: &str) -> String {
    let same = same(url);
    let plain = same.split_once("://").map_or(same.as_str(), |(_, rest)| rest);
    let (path, query) = plain.split_once('?').unwrap_or((plain, ""));
    let path = path.trim_end_matches('/');
    if query.is_empty() && path.len() <= MAX_NAMESPACE_BYTES {
        return path.to_owned();
    }
    let hash: String = Digest::of(plain.as_bytes()).hex().chars().take(12).collect();
    let room = path.floor_char_boundary(MAX_NAMESPACE_BYTES - hash.len() - 1);
    format!("{}#{hash}", path.get(..room).unwrap_or(""))
}

/// The host that an instance's config names; its namespace where it names none, so that it has a queue of its own.
#[must_use]
pub fn host_of(new: &NewInstance) -> String {
    let url = new.config.get("url").and_then(Value::as_str).and_then(|url| Url::parse(url).ok());
    url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| format!("ns:{}", new.source_namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_read_by_people_and_differ_where_addresses_do() {
        assert_eq!(namespace("https://Example.org/Feed.xml"), "example.org/Feed.xml");
        assert_eq!(namespace("feed://example.org"), "example.org");
        let (one, two) = (namespace("https://example.org/?f=1"), namespace("https://example.org/?f=2"));
        assert!(one.starts_with("example.org#") && two.starts_with("example.org#") && one != two);
        let long = namespace(&format!("https://example.org/{}", "\u{e9}".repeat(500)));
        assert!(long.len() <= MAX_NAMESPACE_BYTES && long.starts_with("example.org/"));
        assert_eq!(same("HTTPS://Example.org:443/a#b"), "https://example.org/a");
    }
}
