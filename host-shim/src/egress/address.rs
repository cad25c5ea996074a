//! The address policy: from an IP address to a verdict, without I/O.
//!
//! Owns the one list of refused ranges, with the name and the source of each. IPv4 goes by the special-purpose
//! registry, multicast and reserved space; IPv6 is allowed inside 2000::/3 only, less the blocks listed. Prefixes that
//! embed an IPv4 address are refused whole, whatever they embed: what such an address reaches is decided by a
//! translator somewhere, not by us.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A refused range.
#[derive(Debug, PartialEq, Eq)]
pub struct Range {
    /// The network.
    pub network: IpNet,
    /// What it is.
    pub name: &'static str,
    /// Where that is written.
    pub source: &'static str,
}

/// What the policy says of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be dialed.
    Allow,
    /// It may not, because of this range.
    Deny(&'static Range),
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8, name: &'static str, source: &'static str) -> Range {
    Range { network: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)), name, source }
}

const fn v6(segments: [u16; 8], prefix: u8, name: &'static str, source: &'static str) -> Range {
    let [a, b, c, d, e, f, g, h] = segments;
    Range { network: IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)), name, source }
}

/// Addresses by which cloud machines learn their own secrets; they stay refused where private ranges are allowed.
pub static METADATA: &[Range] = &[
    v4(169, 254, 169, 254, 32, "cloud metadata", "AWS, GCP, Azure, OCI, DigitalOcean, OpenStack, Hetzner"),
    v4(169, 254, 169, 253, 32, "cloud DNS", "AWS"),
    v4(169, 254, 169, 123, 32, "cloud time", "AWS"),
    v4(169, 254, 170, 2, 32, "container credentials", "AWS ECS"),
    v4(169, 254, 170, 23, 32, "pod identity", "AWS EKS"),
    v4(169, 254, 0, 23, 32, "cloud metadata", "Tencent Cloud"),
    v4(169, 254, 42, 42, 32, "cloud metadata", "Scaleway"),
    v4(100, 100, 100, 200, 32, "cloud metadata", "Alibaba Cloud"),
    v4(192, 0, 0, 192, 32, "cloud metadata", "Oracle Cloud Classic"),
    v4(168, 63, 129, 16, 32, "cloud platform address", "Azure WireServer"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, "cloud metadata", "AWS"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, "pod identity", "AWS EKS"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x253], 128, "cloud DNS", "AWS"),
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, "cloud metadata", "GCP"),
    v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128, "cloud metadata", "OCI"),
    v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, "cloud metadata", "Scaleway"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128, "cloud metadata", "OpenStack"),
];

/// The refused ranges. More exact ones come first, so that the name is the best there is.
pub static REFUSED: &[Range] = &[
    v4(0, 0, 0, 0, 8, "this network", "RFC 791 s3.2, RFC 1122 s3.2.1.3"),
    v4(10, 0, 0, 0, 8, "private use", "RFC 1918"),
    v4(100, 64, 0, 0, 10, "shared address space", "RFC 6598"),
    v4(127, 0, 0, 0, 8, "loopback", "RFC 1122 s3.2.1.3"),
    v4(169, 254, 0, 0, 16, "link local", "RFC 3927"),
    v4(172, 16, 0, 0, 12, "private use", "RFC 1918"),
    v4(192, 0, 0, 0, 24, "IETF protocol assignments", "RFC 6890 s2.1"),
    v4(192, 0, 2, 0, 24, "documentation (TEST-NET-1)", "RFC 5737"),
    v4(192, 31, 196, 0, 24, "AS112-v4", "RFC 7535"),
    v4(192, 52, 193, 0, 24, "automatic multicast tunneling", "RFC 7450"),
    v4(192, 88, 99, 0, 24, "6to4 relay anycast", "RFC 7526"),
    v4(192, 168, 0, 0, 16, "private use", "RFC 1918"),
    v4(192, 175, 48, 0, 24, "direct delegation AS112", "RFC 7534"),
    v4(198, 18, 0, 0, 15, "benchmarking", "RFC 2544"),
    v4(198, 51, 100, 0, 24, "documentation (TEST-NET-2)", "RFC 5737"),
    v4(203, 0, 113, 0, 24, "documentation (TEST-NET-3)", "RFC 5737"),
    v4(224, 0, 0, 0, 4, "multicast", "RFC 5771"),
    v4(255, 255, 255, 255, 32, "limited broadcast", "RFC 919"),
    v4(240, 0, 0, 0, 4, "reserved", "RFC 1112 s4"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified", "RFC 4291 s2.5.2"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback", "RFC 4291 s2.5.3"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, "IPv4-compatible", "RFC 4291 s2.5.5.1"),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "IPv4-mapped", "RFC 4291 s2.5.5.2"),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, "IPv4-translated", "RFC 7915"),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "NAT64 well-known prefix", "RFC 6052"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "NAT64 local use", "RFC 8215"),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discard only", "RFC 6666"),
    v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64, "dummy prefix", "RFC 9780"),
    v6([0x200, 0, 0, 0, 0, 0, 0, 0], 7, "NSAP-mapped", "RFC 4048"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "Teredo", "RFC 4380"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "IETF protocol assignments", "RFC 2928"),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation", "RFC 3849"),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4", "RFC 3056"),
    v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48, "direct delegation AS112", "RFC 7534"),
    v6([0x3ffe, 0, 0, 0, 0, 0, 0, 0], 16, "6bone, returned", "RFC 3701"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation", "RFC 9637"),
    v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "segment routing", "RFC 9602"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "unique local", "RFC 4193"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link local", "RFC 4291 s2.5.6"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "site local", "RFC 3879"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast", "RFC 4291 s2.7"),
];

/// Everything of IPv6 that is not global unicast.
static NOT_GLOBAL_UNICAST: Range =
    v6([0, 0, 0, 0, 0, 0, 0, 0], 0, "outside of global unicast (2000::/3)", "RFC 4291 s2.4, IANA IPv6 address space");

/// Where global unicast lies.
const GLOBAL_UNICAST: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// ISATAP interface identifiers embed an IPv4 address under any prefix.
static ISATAP: Range = v6([0, 0, 0, 0, 0, 0x5efe, 0, 0], 0, "ISATAP interface identifier", "RFC 5214 s6.1");

/// The verdict on an address.
#[must_use]
pub fn judge(address: IpAddr) -> Verdict {
    if let Some(range) = METADATA.iter().chain(REFUSED).find(|r| r.network.contains(&address)) {
        return Verdict::Deny(range);
    }
    match address {
        IpAddr::V4(_) => Verdict::Allow,
        IpAddr::V6(v6) => {
            let [.., e, f, _, _] = v6.segments();
            if f == 0x5efe && (e == 0 || e == 0x200) {
                Verdict::Deny(&ISATAP)
            } else if GLOBAL_UNICAST.contains(&v6) {
                Verdict::Allow
            } else {
                Verdict::Deny(&NOT_GLOBAL_UNICAST)
            }
        }
    }
}

/// Prefixes under which an IPv4 address may hide.
const EMBEDDING: [&str; 7] = [
    "IPv4-compatible",
    "IPv4-mapped",
    "IPv4-translated",
    "NAT64 well-known prefix",
    "NAT64 local use",
    "Teredo",
    "6to4",
];

/// Whether a network lies in the prefixes of NAT64.
#[must_use]
pub fn is_nat64(network: &IpNet) -> bool {
    REFUSED.iter().any(|r| r.name.starts_with("NAT64") && r.network.contains(network))
}

/// The verdict where an operator opened private addresses: metadata addresses stay refused, and so does every spelling
/// of IPv6 that could hide one.
#[must_use]
pub fn judge_open(address: IpAddr) -> Verdict {
    let embedding = || REFUSED.iter().filter(|r| EMBEDDING.contains(&r.name));
    match judge(address) {
        Verdict::Allow => Verdict::Allow,
        Verdict::Deny(range) if range == &ISATAP => Verdict::Deny(range),
        Verdict::Deny(_) if address.is_loopback() => Verdict::Allow,
        Verdict::Deny(_) => METADATA
            .iter()
            .chain(embedding())
            .find(|r| r.network.contains(&address))
            .map_or(Verdict::Allow, Verdict::Deny),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(address: &str) -> Option<&'static str> {
        match judge(address.parse().unwrap()) {
            Verdict::Allow => None,
            Verdict::Deny(range) => Some(range.name),
        }
    }

    /// The first and the last address of each range are refused; the neighbours are whatever another range says.
    #[test]
    fn every_range_is_refused_from_its_first_to_its_last_address() {
        for range in METADATA.iter().chain(REFUSED) {
            for address in [range.network.network(), range.network.broadcast()] {
                assert!(matches!(judge(address), Verdict::Deny(_)), "{address} of {}", range.name);
            }
        }
    }

    #[test]
    fn the_neighbours_of_the_ranges_are_allowed() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.31.195.255",
            "192.31.197.0",
            "192.52.192.255",
            "192.52.194.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "192.175.47.255",
            "192.175.49.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "168.63.129.15",
            "168.63.129.17",
            "2000::",
            "2001:200::",
            "2001:db7:ffff::",
            "2001:db9::",
            "2003::",
            "2620:4f:7fff::",
            "2620:4f:8001::",
            "3ffd::1",
            "2606:2800:220:1::1",
            "3ffe:0:0::1".replace("3ffe", "3ff0").as_str(),
        ] {
            assert_eq!(denied(address), None, "{address}");
        }
    }

    #[test]
    fn embedded_ipv4_is_refused_whole_even_when_it_is_public() {
        for (address, name) in [
            ("::ffff:93.184.215.14", "IPv4-mapped"),
            ("::93.184.215.14", "IPv4-compatible"),
            ("::ffff:0:93.184.215.14", "IPv4-translated"),
            ("64:ff9b::93.184.215.14", "NAT64 well-known prefix"),
            ("64:ff9b:1::1", "NAT64 local use"),
            ("2002:5db8:d70e::1", "6to4"),
            ("2001:0:5db8:d70e::1", "Teredo"),
            ("2606:2800::5efe:5db8:d70e", "ISATAP interface identifier"),
            ("2606:2800::200:5efe:5db8:d70e", "ISATAP interface identifier"),
            ("1fff::1", "outside of global unicast (2000::/3)"),
            ("4000::", "outside of global unicast (2000::/3)"),
            ("169.254.169.254", "cloud metadata"),
        ] {
            assert_eq!(denied(address), Some(name), "{address}");
        }
    }

    /// The same policy in numbers and in another order, so that a slip in one table shows.
    fn second(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => {
                let n = u32::from(v4);
                let [a, b, c, d] = v4.octets();
                let refused = n <= 0x00FF_FFFF
                    || n >= 0xE000_0000
                    || a == 10
                    || a == 127
                    || (0x6440_0000..=0x647F_FFFF).contains(&n)
                    || (a, b) == (169, 254)
                    || (a == 172 && b & 0xF0 == 16)
                    || (a, b) == (192, 168)
                    || (a == 192 && matches!((b, c), (0, 0 | 2) | (31, 196) | (52, 193) | (88, 99) | (175, 48)))
                    || (a == 198 && b | 1 == 19)
                    || matches!((a, b, c), (198, 51, 100) | (203, 0, 113))
                    || (a, b, c, d) == (168, 63, 129, 16);
                !refused
            }
            IpAddr::V6(v6) => {
                let n = u128::from(v6);
                let top = |bits: u32| n >> (128 - bits);
                let interface = (n & u128::from(u64::MAX)) >> 32;
                top(3) == 1
                    && top(23) != 0x2001_0000 >> 9
                    && top(32) != 0x2001_0DB8
                    && top(16) != 0x2002
                    && top(48) != 0x2620_004F_8000
                    && top(16) != 0x3FFE
                    && top(20) != 0x3_FFF0
                    && interface != 0x5EFE
                    && interface != 0x0200_5EFE
            }
        }
    }

    proptest::proptest! {
        // The same cases in every run.
        #![proptest_config(proptest::prelude::ProptestConfig {
            cases: 20_000,
            rng_seed: proptest::test_runner::RngSeed::Fixed(1),
            failure_persistence: None,
            ..proptest::prelude::ProptestConfig::default()
        })]

        #[test]
        fn both_tables_agree_on_any_address(n: u128, v4: u32, near in 0_usize..1_000, step in -2_i8..=2) {
            // Any address, any address with a prefix of IPv6 in use, and the edges of every range.
            let range = METADATA.iter().chain(REFUSED).nth(near % (METADATA.len() + REFUSED.len())).unwrap();
            let edge = if near % 2 == 0 { range.network.network() } else { range.network.broadcast() };
            let edge = match edge {
                IpAddr::V4(a) => IpAddr::from(Ipv4Addr::from(u32::from(a).wrapping_add_signed(step.into()))),
                IpAddr::V6(a) => IpAddr::from(Ipv6Addr::from(u128::from(a).wrapping_add_signed(step.into()))),
            };
            let used = n >> 3 | 1 << 125;
            for address in [
                IpAddr::from(Ipv6Addr::from(n)),
                IpAddr::from(Ipv6Addr::from(used)),
                IpAddr::from(Ipv6Addr::from(used & !(0xFFFF << 96) | 0x0001 << 112)),
                IpAddr::from(Ipv4Addr::from(v4)),
                edge,
            ] {
                proptest::prop_assert_eq!(judge(address) == Verdict::Allow, second(address), "{}", address);
            }
        }
    }

    #[test]
    fn metadata_stays_refused_where_private_addresses_are_open() {
        for (address, allowed) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("::1", true),
            ("169.254.169.254", false),
            ("::ffff:169.254.169.254", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("::a9fe:a9fe", false),
            ("2002:a9fe:a9fe::1", false),
            ("fd00::1", true),
            ("100.100.100.200", false),
            ("fd00:ec2::254", false),
        ] {
            assert_eq!(judge_open(address.parse().unwrap()) == Verdict::Allow, allowed, "{address}");
        }
    }
}
