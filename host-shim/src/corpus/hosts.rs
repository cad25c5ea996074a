//! Whose turn it is at each host, without I/O: how many requests at a time, how far apart, and who asked for rest.
//!
//! Owns the memory of hosts: two polls at a time and a gap between them, in the order in which they came, and the hosts
//! that turned a reader away. It is the schedule's part of politeness; `egress::turns` holds every single request to the
//! same numbers.

use std::collections::HashMap;

/// Hosts after which those that are idle are forgotten.
const MANY: usize = 4_096;

/// The numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Polls of one host at a time.
    pub at_once: u32,
    /// Time between two starts at one host.
    pub gap_ms: i64,
}

#[derive(Debug)]
struct Host {
    running: u32,
    /// When the last poll started.
    started: i64,
    /// The last place in the queue that was given away.
    promised: i64,
}

/// The hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    manners: Manners,
    hosts: HashMap<String, Host>,
    /// Hosts that asked for rest, until when.
    resting: HashMap<String, i64>,
}

/// What an instance is told when it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It may start; [`Hosts::done`] gives the turn back.
    Now,
    /// It has a place in the queue of its host.
    At(i64),
    /// The host asked for rest until then.
    Resting(i64),
}

impl Hosts {
    pub(super) fn new(manners: Manners) -> Self {
        Self { manners, hosts: HashMap::new(), resting: HashMap::new() }
    }

    /// Asks for a turn at a host.
    pub(super) fn ask(&mut self, name: &str, now: i64) -> Turn {
        if let Some(until) = self.resting(name, now) {
            return Turn::Resting(until);
        }
        let Manners { at_once, gap_ms } = self.manners;
        if self.hosts.len() >= MANY && !self.hosts.contains_key(name) {
            self.hosts.retain(|_, h| h.running > 0 || h.started.max(h.promised) + gap_ms > now);
        }
        let host = self.hosts.entry(name.to_owned()).or_insert(Host {
            running: 0,
            started: now - gap_ms,
            promised: now - gap_ms,
        });
        // A clock that was set back must not keep a host waiting for the time that never was.
        if host.started > now {
            (host.started, host.promised) = (now - gap_ms, now);
        }
        let free_at = host.started + gap_ms;
        if host.running < at_once.max(1) && free_at <= now {
            host.running += 1;
            host.started = now;
            return Turn::Now;
        }
        // Behind those that have a place already; at least a moment later, so that a queue never spins.
        host.promised = free_at.max(host.promised + gap_ms).max(now + gap_ms.max(1));
        Turn::At(host.promised)
    }

    /// Gives a turn back.
    pub(super) fn done(&mut self, name: &str) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.running = host.running.saturating_sub(1);
        }
    }

    /// Leaves a host alone until a time; a longer rest that it asked for before stands.
    pub(super) fn rest(&mut self, name: &str, until: i64) {
        let known = self.resting.entry(name.to_owned()).or_insert(until);
        *known = (*known).max(until);
    }

    /// Until when a host is left alone.
    pub(super) fn resting(&mut self, name: &str, now: i64) -> Option<i64> {
        let until = *self.resting.get(name)?;
        if until > now {
            return Some(until);
        }
        self.resting.remove(name);
        None
    }

    /// Forgets every rest: the clock was set back, so that their ends mean nothing.
    pub(super) fn forget_rests(&mut self) {
        self.resting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        Hosts::new(Manners { at_once: 2, gap_ms: 2_000 })
    }

    #[test]
    fn a_host_has_two_at_a_time_and_a_gap_in_order() {
        let mut hosts = hosts();
        assert_eq!(hosts.ask("a", 0), Turn::Now);
        // Another host does not wait.
        assert_eq!(hosts.ask("b", 0), Turn::Now);
        let places: Vec<Turn> = (0..3).map(|_| hosts.ask("a", 0)).collect();
        assert_eq!(places, [Turn::At(2_000), Turn::At(4_000), Turn::At(6_000)]);
        // Whoever comes at its place gets its turn, and a newcomer stands behind all.
        assert_eq!(hosts.ask("a", 2_000), Turn::Now);
        assert_eq!(hosts.ask("a", 2_500), Turn::At(8_000));
        // Two run: the third waits although its time has come.
        assert_eq!(hosts.ask("a", 4_000), Turn::At(10_000));
        hosts.done("a");
        assert_eq!(hosts.ask("a", 6_000), Turn::Now);
    }

    #[test]
    fn a_thousand_of_one_host_come_two_seconds_apart() {
        let mut hosts = hosts();
        let mut queue: Vec<(i64, u32)> = (0..1_000).map(|n| (0, n)).collect();
        let mut starts = Vec::new();
        while !queue.is_empty() {
            queue.sort_unstable();
            let (at, n) = queue.remove(0);
            match hosts.ask("a", at) {
                Turn::Now => {
                    starts.push((at, n));
                    hosts.done("a");
                }
                Turn::At(later) => queue.push((later, n)),
                Turn::Resting(_) => unreachable!(),
            }
        }
        assert!(starts.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 2_000));
        // First come, first served; the last after as long as it takes.
        assert!(starts.windows(2).all(|pair| pair[1].1 > pair[0].1));
        assert_eq!(starts.last().unwrap().0, 999 * 2_000);
    }

    #[test]
    fn a_host_that_asked_for_rest_is_left_alone() {
        let mut hosts = hosts();
        hosts.rest("a", 5_000);
        hosts.rest("a", 1_000);
        assert_eq!(hosts.ask("a", 0), Turn::Resting(5_000));
        assert_eq!(hosts.ask("a", 5_000), Turn::Now);
        hosts.rest("a", 1 << 60);
        hosts.forget_rests();
        assert_eq!(hosts.ask("a", 9_000), Turn::Now);
    }

    #[test]
    fn a_clock_that_is_set_back_and_many_hosts_do_no_harm() {
        let mut hosts = hosts();
        assert_eq!(hosts.ask("a", 1_000_000_000), Turn::Now);
        hosts.done("a");
        assert_eq!(hosts.ask("a", 5_000), Turn::Now);
        for n in 0..3 * i64::try_from(MANY).unwrap() {
            assert_eq!(hosts.ask(&format!("{n}.example"), n * 10_000), Turn::Now);
            hosts.done(&format!("{n}.example"));
        }
        assert!(hosts.hosts.len() <= MANY);
    }
}
