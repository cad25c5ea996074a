//! Names to addresses: by DNS alone, fully qualified, both families, judged before anybody may dial.
//!
//! Owns the resolver's options and the rule that one refused address refuses the whole name. No hosts file, no search
//! list, no shortcut for `localhost`.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;

use super::address::Verdict;
use super::error::Failure;
use super::rules::Rules;
use super::url::{Target, TargetHost};

/// Addresses of one name that are looked at; a name with more is refused.
const MAX_ADDRESSES: usize = 64;

/// Addresses that were judged and may be dialed. Only this module makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    addresses: Vec<SocketAddr>,
}

impl Judged {
    /// The addresses, in the order in which they are tried.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// The answer to a look-up.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, Failure>> + Send + 'a>>;

/// Where names are looked up. The tests put a real DNS server behind it.
pub trait Resolve: Send + Sync {
    /// All addresses of a name of both families; `name` is A-labels without a final dot.
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// hickory over the system's servers, or over named ones.
pub struct Dns {
    resolver: TokioResolver,
}

impl std::fmt::Debug for Dns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dns")
    }
}

/// Time for one question to one server.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(2);

impl Dns {
    /// The servers of the system's configuration.
    ///
    /// # Errors
    /// Where the system has no usable configuration.
    pub fn system() -> Result<Self, Failure> {
        let builder = TokioResolver::builder_tokio().map_err(|e| Failure::Dns(e.to_string()))?;
        Self::build(builder)
    }

    /// Named servers.
    ///
    /// # Errors
    /// Where the resolver cannot be made.
    pub fn servers(servers: &[SocketAddr]) -> Result<Self, Failure> {
        let configs = servers
            .iter()
            .map(|server| {
                let mut config = NameServerConfig::udp_and_tcp(server.ip());
                for connection in &mut config.connections {
                    connection.port = server.port();
                }
                config
            })
            .collect();
        let config = ResolverConfig::from_name_servers(configs);
        Self::build(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()))
    }

    fn build(mut builder: hickory_resolver::ResolverBuilder<TokioRuntimeProvider>) -> Result<Self, Failure> {
        let options = builder.options_mut();
        options.use_hosts_file = ResolveHosts::Never;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.timeout = QUESTION_TIMEOUT;
        options.attempts = 2;
        // A name's answer is used once, for the connection that follows.
        options.cache_size = 0;
        let resolver = builder.build().map_err(|e| Failure::Dns(e.to_string()))?;
        Ok(Self { resolver })
    }
}

impl Resolve for Dns {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move {
            // hickory answers this name by itself.
            if name == "localhost" || name.ends_with(".localhost") {
                return Err(Failure::Dns("localhost is not looked up".to_owned()));
            }
            // The final dot keeps the search list out.
            let answer = self.resolver.lookup_ip(format!("{name}.")).await.map_err(|e| Failure::Dns(e.to_string()))?;
            Ok(answer.iter().collect())
        })
    }
}

/// Resolves the host of a target and judges every address.
///
/// # Errors
/// No answer, too many, or an address that the rules refuse.
pub async fn resolve(resolver: &dyn Resolve, target: &Target, rules: &Rules) -> Result<Judged, Failure> {
    let candidates = match target.host() {
        TargetHost::Address(address) => vec![*address],
        TargetHost::Name(name) => resolver.lookup(name).await?,
    };
    judge_all(candidates, target.port(), rules)
}

/// Judges the addresses of a host: one that is refused refuses them all.
///
/// # Errors
/// No address, too many, or a refused one.
pub fn judge_all(candidates: Vec<IpAddr>, port: u16, rules: &Rules) -> Result<Judged, Failure> {
    if candidates.is_empty() {
        return Err(Failure::Dns("the name has no address".to_owned()));
    }
    if candidates.len() > MAX_ADDRESSES {
        return Err(Failure::Dns("the name has more addresses than are looked at".to_owned()));
    }
    for address in &candidates {
        if let Verdict::Deny(range) = rules.judge(*address) {
            return Err(Failure::Address { address: *address, range });
        }
    }
    Ok(Judged { addresses: interleave(candidates).into_iter().map(|a| SocketAddr::new(a, port)).collect() })
}

/// IPv6 and IPv4 in turn, IPv6 first (RFC 8305, section 4).
fn interleave(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let (v6, v4): (Vec<_>, Vec<_>) = addresses.into_iter().partition(IpAddr::is_ipv6);
    let mut out = Vec::with_capacity(v6.len() + v4.len());
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    loop {
        match (v6.next(), v4.next()) {
            (None, None) => return out,
            (a, b) => out.extend(a.into_iter().chain(b)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|a| a.parse().unwrap()).collect()
    }

    #[test]
    fn one_refused_address_refuses_the_whole_name() {
        let rules = &Rules::default();
        let mixed = judge_all(addresses(&["93.184.215.14", "10.0.0.1"]), 80, rules);
        assert!(matches!(mixed, Err(Failure::Address { address, .. }) if address.to_string() == "10.0.0.1"));
        assert!(judge_all(addresses(&["93.184.215.14"]), 80, rules).is_ok());
        assert!(matches!(judge_all(Vec::new(), 80, rules), Err(Failure::Dns(_))));
        let many = vec![IpAddr::from([93, 184, 215, 14]); MAX_ADDRESSES + 1];
        assert!(matches!(judge_all(many, 80, rules), Err(Failure::Dns(_))));
    }

    #[test]
    fn families_are_tried_in_turn() {
        let judged = judge_all(addresses(&["1.1.1.1", "1.0.0.1", "2606:4700::1"]), 443, &Rules::default()).unwrap();
        let order: Vec<_> = judged.addresses().iter().map(ToString::to_string).collect();
        assert_eq!(order, ["[2606:4700::1]:443", "1.1.1.1:443", "1.0.0.1:443"]);
    }
}
