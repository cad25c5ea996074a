//! The URL policy: from a written address to a target that may be resolved, without I/O.
//!
//! Owns which written addresses are refused before any parser can be tricked, which names can only be local and which
//! ports serve no feeds. A [`Target`] can only be made here.

use std::net::IpAddr;

use url::{Host, Url};

use super::rules::Rules;

/// Longest address in bytes that is looked at; a longer one is no feed's.
const MAX_URL_BYTES: usize = 8 * 1_024;

/// Longest host name (RFC 1035, section 2.3.4).
const MAX_HOST_BYTES: usize = 253;

/// Ports above 1023 that no web server for feeds listens on: the "bad ports" of the Fetch standard, and those of
/// databases, caches and cluster managers that answer to HTTP or are harmed by it.
const REFUSED_PORTS: &[u16] = &[
    1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665,
    6666, 6667, 6668, 6669, 6679, 6697, 9200, 9300, 10080, 10250, 10255, 11211, 27017,
];

/// Endings of names that never lead to a public host (RFC 6761, RFC 6762, RFC 8375, RFC 9476, and those that private
/// networks and clusters use).
const LOCAL_SUFFIXES: &[&str] = &[
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "arpa",
    "test",
    "invalid",
    "onion",
    "alt",
    "svc",
    "cluster",
    "docker",
    "kubernetes",
    "consul",
];

/// Why a written address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    /// It cannot be parsed.
    #[error("it is not an absolute address")]
    Unparsable,
    /// It is too long.
    #[error("it is longer than an address may be")]
    TooLong,
    /// Neither http nor https.
    #[error("only http and https are requested")]
    Scheme,
    /// `http:/host` and the like.
    #[error("the scheme must be followed by exactly two slashes")]
    Slashes,
    /// Control character, backslash or white space where none may be.
    #[error("it has a control character, a backslash or white space")]
    Characters,
    /// User name or password.
    #[error("it has a user name or password; deposit a credential instead")]
    UserInfo,
    /// No host, an empty label, too long, or not a name at all.
    #[error("its host is empty or not a host name")]
    Host,
    /// A number that is not written as addresses are.
    #[error("its numeric host is not in the usual form; write the address with four decimal numbers, or as IPv6")]
    NumericHost,
    /// A name that can only be local.
    #[error("its host name can only be local")]
    LocalName,
    /// A port that serves no feeds.
    #[error("its port is not one that feeds are served on")]
    Port,
}

impl UrlRefusal {
    /// The rule by its stable name.
    #[must_use]
    pub fn rule(self) -> &'static str {
        match self {
            Self::Unparsable => "absolute",
            Self::TooLong => "length",
            Self::Scheme => "scheme",
            Self::Slashes => "slashes",
            Self::Characters => "characters",
            Self::UserInfo => "user-info",
            Self::Host => "host",
            Self::NumericHost => "numeric-host",
            Self::LocalName => "local-name",
            Self::Port => "port",
        }
    }
}

/// A host to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHost {
    /// A name as A-labels, lower case, without a final dot.
    Name(String),
    /// A literal address.
    Address(IpAddr),
}

/// An address that passed the URL policy. Its host still has to be resolved and judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: TargetHost,
    port: u16,
}

impl Target {
    /// The parsed address, without fragment.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &TargetHost {
        &self.host
    }

    /// The port, that of the scheme where none is written.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection is secured.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host as text: what is compared and sent.
    #[must_use]
    pub fn host_text(&self) -> &str {
        self.url.host_str().unwrap_or("")
    }

    /// The address for logs: without user name, query and fragment.
    #[must_use]
    pub fn for_log(&self) -> String {
        for_log(&self.url)
    }
}

/// An address without user name, password, query and fragment.
#[must_use]
pub fn for_log(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), authority(url), url.path())
}

/// The same for an address that was not judged yet; one that cannot be read is not shown.
#[must_use]
pub fn written_for_log(written: &str) -> String {
    Url::parse(written)
        .ok()
        .filter(|url| written.len() <= MAX_URL_BYTES && url.has_host())
        .map_or_else(|| "an address that cannot be read".to_owned(), |url| for_log(&url))
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or("");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Judges a written address.
///
/// # Errors
/// The rule that refuses it.
pub fn judge(written: &str, rules: &Rules) -> Result<Target, UrlRefusal> {
    if written.len() > MAX_URL_BYTES {
        return Err(UrlRefusal::TooLong);
    }
    if written.contains(|c: char| c.is_control() || c == '\\' || c.is_whitespace()) {
        return Err(UrlRefusal::Characters);
    }
    let (scheme, rest) = written.split_once(':').ok_or(UrlRefusal::Unparsable)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(UrlRefusal::Scheme);
    }
    let rest = rest.strip_prefix("//").filter(|r| !r.starts_with('/')).ok_or(UrlRefusal::Slashes)?;
    let written_authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    if written_authority.contains('@') {
        return Err(UrlRefusal::UserInfo);
    }
    // A zone id means something on one machine only (RFC 6874).
    if written_authority.starts_with('[') && written_authority.contains('%') {
        return Err(UrlRefusal::Host);
    }
    let mut url = Url::parse(written).map_err(|e| match e {
        url::ParseError::InvalidPort => UrlRefusal::Port,
        url::ParseError::InvalidIpv4Address | url::ParseError::InvalidIpv6Address => UrlRefusal::NumericHost,
        url::ParseError::EmptyHost | url::ParseError::IdnaError | url::ParseError::InvalidDomainCharacter => {
            UrlRefusal::Host
        }
        _ => UrlRefusal::Unparsable,
    })?;
    url.set_fragment(None);
    let host = host(&url, written_authority, rules)?;
    let port = url.port_or_known_default().ok_or(UrlRefusal::Port)?;
    let serves_feeds = matches!(port, 80 | 443) || (port >= 1_024 && !REFUSED_PORTS.contains(&port));
    if !serves_feeds && !rules.opens_port(port) {
        return Err(UrlRefusal::Port);
    }
    Ok(Target { url, host, port })
}

fn host(url: &Url, written_authority: &str, rules: &Rules) -> Result<TargetHost, UrlRefusal> {
    let host = url.host().ok_or(UrlRefusal::Host)?.to_owned();
    let written_host = without_port(written_authority);
    match host {
        Host::Ipv4(address) => {
            // Octal, hexadecimal, short and dotted forms are read differently by different readers.
            if written_host != address.to_string() {
                return Err(UrlRefusal::NumericHost);
            }
            Ok(TargetHost::Address(IpAddr::V4(address)))
        }
        Host::Ipv6(address) => {
            let inner =
                written_host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).ok_or(UrlRefusal::NumericHost)?;
            if inner.parse() != Ok(address) {
                return Err(UrlRefusal::NumericHost);
            }
            Ok(TargetHost::Address(IpAddr::V6(address)))
        }
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
            check_name(&name, rules)?;
            Ok(TargetHost::Name(name))
        }
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

fn is_name(name: &str) -> bool {
    let label_ok = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    name.len() <= MAX_HOST_BYTES && name.split('.').all(label_ok)
}

/// A host name as a person writes it, as A-labels in lower case without a final dot; `None` where it is none.
#[must_use]
pub fn host_name(written: &str) -> Option<String> {
    match Host::parse(written.trim()) {
        Ok(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
            is_name(&name).then_some(name)
        }
        _ => None,
    }
}

fn check_name(name: &str, rules: &Rules) -> Result<(), UrlRefusal> {
    if !is_name(name) {
        return Err(UrlRefusal::Host);
    }
    let is_local = LOCAL_SUFFIXES
        .iter()
        .any(|suffix| name == *suffix || name.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.')));
    if (is_local || !name.contains('.')) && !rules.opens_host(name) {
        return Err(UrlRefusal::LocalName);
    }
    Ok(())
}

/// An address as users write it, made into one that can be judged: `feed:`, `feed://`, white space around it, spaces
/// in the path. Only for what people type, never for what a document or a redirect says.
#[must_use]
pub fn normalise(written: &str) -> String {
    let text = written.trim();
    let lower = text.get(..5).map(str::to_ascii_lowercase);
    let text = match (lower.as_deref(), text.get(5..)) {
        (Some("feed:"), Some(rest)) => {
            if let Some(authority) = rest.strip_prefix("//") {
                format!("http://{authority}")
            } else {
                rest.to_owned()
            }
        }
        _ => text.to_owned(),
    };
    // Spaces in the authority stay, so that the policy refuses them.
    let path_at = text.find("://").and_then(|at| text.get(at + 3..)?.find('/').map(|p| at + 3 + p));
    match path_at.and_then(|at| text.split_at_checked(at)) {
        Some((origin, path)) => format!("{origin}{}", path.replace(' ', "%20")),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(written: &str) -> Result<String, UrlRefusal> {
        judge(written, &Rules::default()).map(|t| t.url().to_string())
    }

    #[test]
    fn addresses_that_may_be_requested() {
        for (written, url) in [
            ("http://news.site.org", "http://news.site.org/"),
            ("HTTPS://News.Site.org:443/a?b#c", "https://news.site.org/a?b"),
            ("http://news.site.org:8080/", "http://news.site.org:8080/"),
            ("http://news.site.org./", "http://news.site.org./"),
            ("http://n%65ws.site.org/", "http://news.site.org/"),
            ("http://b\u{fc}cher.site.org/", "http://xn--bcher-kva.site.org/"),
            ("http://93.184.215.14/", "http://93.184.215.14/"),
            ("http://[2606:2800:220:1::1]:8080/", "http://[2606:2800:220:1::1]:8080/"),
            ("http://[2606:2800:0220:1:0:0:0:1]/", "http://[2606:2800:220:1::1]/"),
            ("http://my_host.site.org/", "http://my_host.site.org/"),
        ] {
            assert_eq!(verdict(written).as_deref(), Ok(url), "{written}");
        }
    }

    #[test]
    fn addresses_that_are_refused_with_their_rule() {
        use UrlRefusal::{Characters, Host, LocalName, NumericHost, Port, Scheme, Slashes, Unparsable, UserInfo};
        for (written, refusal) in [
            ("", Unparsable),
            ("news.site.org/feed", Unparsable),
            ("ftp://news.site.org/", Scheme),
            ("file:///etc/passwd", Scheme),
            ("http:news.site.org", Slashes),
            ("http:/news.site.org", Slashes),
            ("http:///news.site.org", Slashes),
            ("http:\\\\news.site.org", Characters),
            ("http://news.site.org\\@10.0.0.1/", Characters),
            ("http://news.site.org/a b", Characters),
            ("http://news.site.org/\t", Characters),
            ("http://user@news.site.org/", UserInfo),
            ("http://user:pass@news.site.org/", UserInfo),
            ("http://@news.site.org/", UserInfo),
            ("http://", Host),
            ("http://a..site.org/", Host),
            ("http://127.0.0.1../", Host),
            ("http://%31%32%37.0.0.1/", NumericHost),
            ("http://[fe80::1%25eth0]/", Host),
            ("http://2130706433/", NumericHost),
            ("http://0x7f.1/", NumericHost),
            ("http://0177.0.0.1/", NumericHost),
            ("http://127.1/", NumericHost),
            ("http://127.0.0.1./", NumericHost),
            ("http://\u{ff11}27.0.0.1/", NumericHost),
            ("http://[::ffff:127.0.0.1]x/", NumericHost),
            ("http://localhost/", LocalName),
            ("http://LOCALHOST./", LocalName),
            ("http://a.localhost/", LocalName),
            ("http://printer/", LocalName),
            ("http://metadata.google.internal/", LocalName),
            ("http://1.0.0.127.in-addr.arpa/", LocalName),
            ("http://news.site.org:22/", Port),
            ("http://news.site.org:6379/", Port),
            ("http://news.site.org:0/", Port),
            ("http://news.site.org:99999/", Port),
        ] {
            assert_eq!(verdict(written), Err(refusal), "{written}");
        }
    }

    #[test]
    fn what_people_type_is_made_into_an_address() {
        for (written, expected) in [
            (" https://a.site.org/x \n", "https://a.site.org/x"),
            ("feed://a.site.org/x", "http://a.site.org/x"),
            ("FEED:https://a.site.org/x", "https://a.site.org/x"),
            ("https://a.site.org/my feed.xml", "https://a.site.org/my%20feed.xml"),
            ("https://a site.org/x", "https://a site.org/x"),
            ("x", "x"),
        ] {
            assert_eq!(normalise(written), expected);
        }
    }
}
