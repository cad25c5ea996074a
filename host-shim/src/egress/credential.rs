//! Credentials: how a secret is attached to a request, and how long it stays on a redirect.
//!
//! Owns the secret's type, which shows itself to nobody, the placements that a descriptor may name, and Go's rule for
//! redirects: the host alone decides, a sub-domain keeps it, and once dropped it never comes back.

use std::collections::BTreeMap;

use base64::Engine as _;
use url::Url;

use super::client::OWN_HEADERS;

/// A secret value; `Debug` and errors never show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(value)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How a member of a credential is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// User name of HTTP Basic (RFC 7617).
    BasicUsername,
    /// Password of HTTP Basic (RFC 7617).
    BasicPassword,
    /// Bearer token (RFC 6750, section 2.1).
    Bearer,
    /// Value of a named header field.
    Header(String),
    /// Value of a named query parameter.
    Query(String),
}

/// A credential that cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Not an object of strings.
    #[error("the credential is not a JSON object of strings")]
    Form,
    /// A value that would break a header.
    #[error("a member of the credential has characters that cannot be sent")]
    Characters,
    /// Members that do not go together.
    #[error("the credential has no member that is sent, or lacks its user name or password")]
    Members,
}

/// A credential, ready to be attached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Credential {
    headers: Vec<(String, Secret)>,
    query: Vec<(String, Secret)>,
}

impl Credential {
    /// Makes a credential from its JSON object and the placements of the descriptor.
    ///
    /// # Errors
    /// Where it is no object of strings, or no member of it is sent.
    pub fn new(json: &str, placements: &[(String, Placement)]) -> Result<Self, CredentialError> {
        let members: BTreeMap<String, String> = serde_json::from_str(json).map_err(|_| CredentialError::Form)?;
        let mut credential = Self::default();
        let (mut username, mut password) = (None, None);
        for (name, placement) in placements {
            let Some(value) = members.get(name).filter(|v| !v.is_empty()) else { continue };
            match placement {
                Placement::BasicUsername => username = Some(value),
                Placement::BasicPassword => password = Some(value),
                Placement::Bearer => credential.header("authorization", format!("Bearer {value}"))?,
                Placement::Header(header) => credential.header(header, value.clone())?,
                Placement::Query(parameter) => credential.query.push((parameter.clone(), Secret::new(value.clone()))),
            }
        }
        if let (Some(username), Some(password)) = (username, password) {
            // A colon ends the user name (RFC 7617, section 2).
            if username.contains(':') {
                return Err(CredentialError::Characters);
            }
            let pair = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
            credential.header("authorization", format!("Basic {pair}"))?;
        } else if username.is_some() != password.is_some() {
            return Err(CredentialError::Members);
        }
        if credential.headers.is_empty() && credential.query.is_empty() {
            return Err(CredentialError::Members);
        }
        Ok(credential)
    }

    fn header(&mut self, name: &str, value: String) -> Result<(), CredentialError> {
        let name = name.to_ascii_lowercase();
        // Host, Content-Length and the like decide how a message is read; a credential may not stand in for them.
        let own = OWN_HEADERS.contains(&name.as_str()) && !matches!(name.as_str(), "authorization" | "cookie");
        if own || value.bytes().any(|b| b < 0x20 && b != b'\t' || b == 0x7F) {
            return Err(CredentialError::Characters);
        }
        self.headers.push((name, Secret::new(value)));
        Ok(())
    }

    /// The header fields that carry it.
    pub(super) fn header_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.0.as_str()))
    }

    /// A text without the secrets that travel in a query, in either of the forms that they take there.
    pub(super) fn redact(&self, text: &str) -> String {
        self.query.iter().fold(text.to_owned(), |text, (_, secret)| {
            let encoded: String = url::form_urlencoded::byte_serialize(secret.0.as_bytes()).collect();
            text.replace(&encoded, "REDACTED").replace(&secret.0, "REDACTED")
        })
    }

    /// The first address of a request with the query parameters that carry it.
    pub(super) fn with_query(&self, url: &Url) -> Url {
        let mut url = url.clone();
        if !self.query.is_empty() {
            let mut pairs = url.query_pairs_mut();
            for (name, value) in &self.query {
                pairs.append_pair(name, &value.0);
            }
        }
        url
    }
}

/// Whether a credential given for `initial` may go to `next`: the same host, or a sub-domain of it, by A-labels. Scheme
/// and port do not count (Go's `shouldCopyHeaderOnRedirect`); addresses have no sub-domains.
#[must_use]
pub fn may_follow(initial: &Url, next: &Url) -> bool {
    let (Some(initial), Some(next)) = (initial.host(), next.host()) else { return false };
    match (initial, next) {
        (url::Host::Domain(initial), url::Host::Domain(next)) => {
            next == initial || next.strip_suffix(initial).is_some_and(|rest| rest.ends_with('.'))
        }
        (initial, next) => initial == next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placements() -> Vec<(String, Placement)> {
        vec![
            ("username".into(), Placement::BasicUsername),
            ("password".into(), Placement::BasicPassword),
            ("token".into(), Placement::Bearer),
            ("key".into(), Placement::Header("X-Api-Key".into())),
            ("q".into(), Placement::Query("token".into())),
        ]
    }

    #[test]
    fn each_member_is_sent_as_the_descriptor_says() {
        let fields = |json: &str| {
            let credential = Credential::new(json, &placements()).unwrap();
            let headers: Vec<_> = credential.header_fields().map(|(n, v)| format!("{n}: {v}")).collect();
            (headers, credential.with_query(&Url::parse("https://a.site.org/f?x=1").unwrap()).to_string())
        };
        // The example of RFC 7617, section 2.
        let (headers, url) = fields(r#"{"username":"Aladdin","password":"open sesame"}"#);
        assert_eq!(headers, ["authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]);
        assert_eq!(url, "https://a.site.org/f?x=1");
        assert_eq!(fields(r#"{"token":"abc"}"#).0, ["authorization: Bearer abc"]);
        assert_eq!(fields(r#"{"key":"abc"}"#).0, ["x-api-key: abc"]);
        assert_eq!(fields(r#"{"q":"a b&c"}"#).1, "https://a.site.org/f?x=1&token=a+b%26c");
        let secret = Credential::new(r#"{"q":"a b&c"}"#, &placements()).unwrap();
        assert_eq!(secret.redact("https://a.site.org/?t=a+b%26c#a b&c"), "https://a.site.org/?t=REDACTED#REDACTED");
        let forged = [("key".to_owned(), Placement::Header("Host".into()))];
        assert_eq!(Credential::new(r#"{"key":"evil"}"#, &forged), Err(CredentialError::Characters));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_without_showing_it() {
        for (json, error) in [
            ("[]", CredentialError::Form),
            (r#"{"token":7}"#, CredentialError::Form),
            ("{}", CredentialError::Members),
            (r#"{"username":"u"}"#, CredentialError::Members),
            (r#"{"token":"a\nb"}"#, CredentialError::Characters),
            (r#"{"username":"a:b","password":"c"}"#, CredentialError::Characters),
        ] {
            assert_eq!(Credential::new(json, &placements()), Err(error), "{json}");
        }
        let shown = format!("{:?}", Credential::new(r#"{"token":"hunter2"}"#, &placements()).unwrap());
        assert!(!shown.contains("hunter2"));
    }

    /// Go's rule and the faults that were found in it (CVE-2023-45289: zone ids).
    #[test]
    fn a_credential_follows_to_the_same_host_and_its_subdomains_only() {
        for (initial, next, follows) in [
            ("https://a.site/x", "https://a.site/y", true),
            ("https://a.site/x", "https://a.site:8443/y", true),
            ("http://a.site/x", "https://a.site/y", true),
            ("https://a.site/x", "https://b.a.site/y", true),
            ("https://a.site/x", "https://ba.site/y", false),
            ("https://b.a.site/x", "https://a.site/y", false),
            ("https://a.site/x", "https://a.site.evil.org/y", false),
            ("https://a.site./x", "https://a.site/y", false),
            ("https://A.site/x", "https://a.SITE/y", true),
            ("https://b\u{fc}cher.site/x", "https://xn--bcher-kva.site/y", true),
            ("https://93.184.215.14/x", "https://93.184.215.14/y", true),
            ("https://93.184.215.14/x", "https://1.93.184.215.14.site/y", false),
            ("https://[2606::1]/x", "https://[2606::1]/y", true),
            ("https://[2606::1]/x", "https://[2606::2]/y", false),
        ] {
            let parse = |s: &str| Url::parse(s).unwrap();
            assert_eq!(may_follow(&parse(initial), &parse(next)), follows, "{initial} {next}");
        }
    }
}
