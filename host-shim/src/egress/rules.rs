//! What an operator opened for one pin, beyond public addresses, public names and the ports of feeds.
//!
//! Owns the members of a pin's configuration that the host acts on, their reading and the verdicts under them. Each is
//! exact: a network opens its addresses, a host its name, a port itself. Metadata addresses, and every IPv6 spelling
//! that embeds an IPv4 address, stay refused unless that one address is named.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::address::{self, Verdict};
use super::url;

/// Entries of one list; a pin that needs more opens too much.
const MAX_ENTRIES: usize = 256;

/// Members of a pin's configuration that are the host's alone; the component never sees them.
const HOST_MEMBERS: [&str; 4] = ["allow_networks", "allow_hosts", "allow_ports", "nat64_prefixes"];

/// The member that Quivr has too; the component's schema knows it.
const ALLOW_PRIVATE: &str = "allow_private_addresses";

/// Why a pin's configuration opens nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// Not an object, a member of another type, too many entries.
    #[error("the pin's configuration cannot be read: {0}")]
    Form(String),
    /// A host that is no name.
    #[error("allow_hosts: {0:?} is not a host name; write the name alone, without scheme, port or wildcard")]
    Host(String),
    /// Port 0.
    #[error("allow_ports: 0 is not a port")]
    Port,
    /// A NAT64 prefix of an impossible length.
    #[error("{0} is not a NAT64 prefix; its length is 32, 40, 48, 56, 64 or 96 (RFC 6052, section 2.2)")]
    Nat64(Ipv6Net),
}

/// What requests of a pin may reach beyond what every request may.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Rules {
    /// Every private address and every port is open: for local tests.
    pub private_addresses: bool,
    /// Networks whose addresses may be dialed.
    pub networks: Vec<IpNet>,
    /// Names that may be resolved though they look local; their addresses are judged all the same.
    pub hosts: BTreeSet<String>,
    /// Ports that may be dialed beside those of feeds.
    pub ports: BTreeSet<u16>,
    /// Prefixes of this network's own translator: an address below one is judged by the IPv4 address inside.
    pub nat64_prefixes: Vec<Ipv6Net>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Members {
    allow_private_addresses: bool,
    allow_networks: Vec<IpNet>,
    allow_hosts: Vec<String>,
    allow_ports: Vec<u16>,
    nat64_prefixes: Vec<Ipv6Net>,
}

impl Rules {
    /// Everything private is open, for local tests.
    #[must_use]
    pub fn open() -> Self {
        Self { private_addresses: true, ..Self::default() }
    }

    /// Reads a pin's configuration: the rules, and the configuration that is left for the component.
    ///
    /// # Errors
    /// What is wrong, with the member.
    pub fn of(configuration: &str) -> Result<(Self, String), RulesError> {
        let form = |e: serde_json::Error| RulesError::Form(e.to_string());
        let mut object: Map<String, Value> = serde_json::from_str(configuration).map_err(form)?;
        let mut own: Map<String, Value> =
            HOST_MEMBERS.iter().filter_map(|m| object.remove(*m).map(|v| ((*m).to_owned(), v))).collect();
        if let Some(value) = object.get(ALLOW_PRIVATE) {
            own.insert(ALLOW_PRIVATE.to_owned(), value.clone());
        }
        let members: Members = serde_json::from_value(Value::Object(own)).map_err(form)?;
        Ok((Self::checked(members)?, Value::Object(object).to_string()))
    }

    fn checked(members: Members) -> Result<Self, RulesError> {
        let longest = members
            .allow_networks
            .len()
            .max(members.allow_hosts.len())
            .max(members.allow_ports.len())
            .max(members.nat64_prefixes.len());
        if longest > MAX_ENTRIES {
            return Err(RulesError::Form(format!("a list has more than {MAX_ENTRIES} entries")));
        }
        let host = |written: String| url::host_name(&written).ok_or(RulesError::Host(written));
        // A translator's prefix is no network of hosts: what it reaches is decided by the address inside.
        let (translated, networks): (Vec<IpNet>, Vec<IpNet>) =
            members.allow_networks.into_iter().map(|n| n.trunc()).partition(address::is_nat64);
        let translated = translated.into_iter().filter_map(|n| match n {
            IpNet::V6(n) => Some(n),
            IpNet::V4(_) => None,
        });
        let nat64_prefixes: Vec<Ipv6Net> =
            members.nat64_prefixes.into_iter().map(|n| n.trunc()).chain(translated).collect();
        if let Some(bad) = nat64_prefixes.iter().find(|p| !matches!(p.prefix_len(), 32 | 40 | 48 | 56 | 64 | 96)) {
            return Err(RulesError::Nat64(*bad));
        }
        if members.allow_ports.contains(&0) {
            return Err(RulesError::Port);
        }
        Ok(Self {
            private_addresses: members.allow_private_addresses,
            networks,
            hosts: members.allow_hosts.into_iter().map(host).collect::<Result<_, _>>()?,
            ports: members.allow_ports.into_iter().collect(),
            nat64_prefixes,
        })
    }

    /// The verdict on an address.
    #[must_use]
    pub fn judge(&self, address: IpAddr) -> Verdict {
        if self.networks.iter().any(|n| n.prefix_len() == n.max_prefix_len() && n.addr() == address) {
            return Verdict::Allow;
        }
        if let IpAddr::V6(outer) = address
            && let Some(prefix) = self.nat64_prefixes.iter().find(|p| p.contains(&outer))
        {
            return match embedded(*prefix, outer) {
                Some(inner) => self.judge(IpAddr::V4(inner)),
                None => address::judge(address),
            };
        }
        let opened = self.private_addresses || self.networks.iter().any(|n| n.contains(&address));
        if opened { address::judge_open(address) } else { address::judge(address) }
    }

    /// Whether a name may be resolved though it can only be local.
    #[must_use]
    pub fn opens_host(&self, name: &str) -> bool {
        self.hosts.contains(name)
    }

    /// Whether a port may be dialed though no feeds are served on it.
    #[must_use]
    pub fn opens_port(&self, port: u16) -> bool {
        port != 0 && (self.private_addresses || self.ports.contains(&port))
    }

    /// What is open, one sentence each; empty where nothing is.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
            items.into_iter().map(|i| i.to_string()).collect::<Vec<_>>().join(", ")
        }
        let mut out = Vec::new();
        if self.private_addresses {
            out.push("every private address and every port (allow_private_addresses)".to_owned());
        }
        if !self.networks.is_empty() {
            out.push(format!("the networks {} (allow_networks)", list(&self.networks)));
        }
        if !self.hosts.is_empty() {
            out.push(format!("the names {} (allow_hosts)", list(&self.hosts)));
        }
        if !self.ports.is_empty() {
            out.push(format!("the ports {} (allow_ports)", list(&self.ports)));
        }
        if !self.nat64_prefixes.is_empty() {
            out.push(format!("public addresses behind the translator {} (nat64_prefixes)", list(&self.nat64_prefixes)));
        }
        out
    }
}

/// The IPv4 address inside a translated one (RFC 6052, section 2.2); `None` where the reserved octet is not zero.
fn embedded(prefix: Ipv6Net, address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = u128::from(address);
    if prefix.prefix_len() < 96 && (bits >> 56) & 0xFF != 0 {
        return None;
    }
    // Bits 64 to 71 are the reserved octet; the address goes around it.
    let without_octet = ((bits >> 64) << 56) | (bits & ((1 << 56) - 1));
    let inner = match prefix.prefix_len() {
        96 => bits,
        length => without_octet >> (120 - u32::from(length) - 32),
    };
    Some(Ipv4Addr::from(u32::try_from(inner & u128::from(u32::MAX)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(json: Value) -> Rules {
        Rules::of(&json.to_string()).unwrap().0
    }

    fn allows(rules: &Rules, address: &str) -> bool {
        rules.judge(address.parse().unwrap()) == Verdict::Allow
    }

    #[test]
    fn what_is_the_hosts_does_not_reach_the_component() {
        let (rules, rest) = Rules::of(
            r#"{"allow_private_addresses":true,"allow_networks":["10.20.0.0/16"],"allow_hosts":["NAS.lan."],"allow_ports":[81],"x":1}"#,
        )
        .unwrap();
        assert_eq!(rest, r#"{"allow_private_addresses":true,"x":1}"#);
        assert!(rules.private_addresses && rules.opens_host("nas.lan") && rules.opens_port(81));
        assert_eq!(rules.sentences().len(), 4);
        assert_eq!(Rules::of("{}").unwrap(), (Rules::default(), "{}".to_owned()));
        assert!(Rules::default().sentences().is_empty());
    }

    #[test]
    fn a_network_opens_its_addresses_and_no_other() {
        let rules = rules(serde_json::json!({"allow_networks": ["10.20.0.0/16", "fd00:12::/32"]}));
        for (address, allowed) in [
            ("10.20.0.0", true),
            ("10.20.255.255", true),
            ("10.19.255.255", false),
            ("10.21.0.0", false),
            ("fd00:12::1", true),
            ("fd00:13::1", false),
            ("::ffff:10.20.0.1", false),
            ("127.0.0.1", false),
            ("93.184.215.14", true),
        ] {
            assert_eq!(allows(&rules, address), allowed, "{address}");
        }
        assert!(!rules.opens_port(22) && !rules.opens_host("nas.lan"));
    }

    #[test]
    fn metadata_and_embedded_addresses_need_their_exact_name() {
        let wide = rules(serde_json::json!({"allow_networks": ["0.0.0.0/0", "::/0"]}));
        for address in ["169.254.169.254", "::ffff:169.254.169.254", "2002:a9fe:a9fe::1", "fd00:ec2::254"] {
            assert!(!allows(&wide, address), "{address}");
        }
        assert!(allows(&wide, "192.168.1.1") && allows(&wide, "fd12::1"));
        let exact = rules(serde_json::json!({"allow_networks": ["169.254.169.254/32"]}));
        assert!(allows(&exact, "169.254.169.254") && !allows(&exact, "169.254.169.253"));
    }

    /// The addresses are the examples of RFC 6052, section 2.4, for 192.0.2.33, here with 93.184.215.14 (5db8:d70e).
    #[test]
    fn a_translators_prefix_is_unwrapped_and_the_inner_address_is_judged() {
        for (prefix, public, private) in [
            ("64:ff9b::/96", "64:ff9b::5db8:d70e", "64:ff9b::a00:1"),
            ("2001:db8::/32", "2001:db8:5db8:d70e::", "2001:db8:a00:1::"),
            ("2001:db8:100::/40", "2001:db8:15d:b8d7:e::", "2001:db8:10a:0:1::"),
            ("2001:db8:122::/48", "2001:db8:122:5db8:d7:e00::", "2001:db8:122:a00:0:100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:35d:b8:d70e::", "2001:db8:122:30a:0:1::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:5d:b8d7:e00:0", "2001:db8:122:344:a:0:100:0"),
        ] {
            let rules = rules(serde_json::json!({"nat64_prefixes": [prefix]}));
            assert!(allows(&rules, public), "{public}");
            assert!(!allows(&rules, private), "{private}");
            assert!(!allows(&Rules::default(), public), "{public} without the prefix");
        }
        // The reserved octet is not zero.
        let rules = rules(serde_json::json!({"allow_networks": ["64:ff9b:1::/48"]}));
        assert!(!allows(&rules, "64:ff9b:1:5db8:1d7:e00::"));
        assert!(allows(&rules, "64:ff9b:1:5db8:d7:e00::"));
    }

    #[test]
    fn what_is_not_valid_is_named() {
        for (json, word) in [
            ("[]", "cannot be read"),
            (r#"{"allow_networks":"10.0.0.0/8"}"#, "cannot be read"),
            (r#"{"allow_networks":["10.0.0.0/33"]}"#, "cannot be read"),
            (r#"{"allow_private_addresses":"yes"}"#, "cannot be read"),
            (r#"{"allow_hosts":["http://nas.lan/"]}"#, "allow_hosts"),
            (r#"{"allow_hosts":["*.lan"]}"#, "allow_hosts"),
            (r#"{"allow_ports":[0]}"#, "not a port"),
            (r#"{"nat64_prefixes":["64:ff9b::/95"]}"#, "RFC 6052"),
        ] {
            let error = Rules::of(json).unwrap_err().to_string();
            assert!(error.contains(word), "{json}: {error}");
        }
    }
}
