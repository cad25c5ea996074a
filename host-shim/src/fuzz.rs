//! What must hold for any bytes that a stranger sends: plain functions, run over a stored corpus by the tests and over
//! invented input by cargo-fuzz (`make fuzz`).
//!
//! Owns the statements, not the input. A body returns quietly or panics; a panic is a fault of the code it calls.

use std::net::IpAddr;

use crate::egress::client;
use crate::egress::coding::{Decoder, MAX_RATIO, RATIO_FREE_BYTES};
use crate::egress::redirect::{Chain, MAX_REDIRECTS, Next};
use crate::egress::resolver::judge_all;
use crate::egress::rules::Rules;
use crate::egress::url::{self, TargetHost};

/// A statement about any bytes.
pub type Body = fn(&[u8]);

/// Every body with its name, which is also the name of its corpus.
pub const BODIES: [(&str, Body); 4] =
    [("url", url_policy), ("redirect", redirects), ("coding", decompression), ("header", headers)];

fn hold(promise: bool, what: &str) {
    assert!(promise, "{what}");
}

/// URL policy: what passes is one plain address, passes again as it is, and leads to no refused address.
pub fn url_policy(data: &[u8]) {
    let written = String::from_utf8_lossy(data);
    for written in [written.as_ref(), url::normalise(&written).as_str()] {
        let Ok(target) = url::judge(written, &Rules::default()) else { continue };
        let shown = target.url().as_str();
        hold(matches!(target.url().scheme(), "http" | "https"), "only http and https pass");
        hold(target.url().username().is_empty() && target.url().password().is_none(), "no user-info passes");
        hold(!shown.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\'), "no trick passes");
        hold(!target.for_log().contains(['?', '#', '@']) || target.url().path().contains('@'), "logs are clean");
        let again = url::judge(shown, &Rules::default());
        hold(again.as_ref() == Ok(&target), "an address that passed passes again");
        if let TargetHost::Address(address) = target.host() {
            judged(*address, target.port());
        }
    }
    // Any 4 or 16 bytes are an address too.
    if let Some(v4) = data.first_chunk::<4>() {
        judged(IpAddr::from(*v4), 80);
    }
    if let Some(v6) = data.first_chunk::<16>() {
        judged(IpAddr::from(*v6), 80);
    }
}

fn judged(address: IpAddr, port: u16) {
    let Ok(judged) = judge_all(vec![address], port, &Rules::default()) else { return };
    for dialed in judged.addresses() {
        let public = match dialed.ip() {
            IpAddr::V4(v4) => {
                !(v4.is_private()
                    || v4.is_loopback()
                    || v4.is_link_local()
                    || v4.is_multicast()
                    || v4.is_broadcast()
                    || v4.is_documentation()
                    || v4.is_unspecified())
            }
            IpAddr::V6(v6) => v6.segments().first().is_some_and(|s| s >> 13 == 1) && v6.to_ipv4_mapped().is_none(),
        };
        hold(public, "only public addresses are dialed");
    }
}

/// Redirects: lines are Locations; the chain stays within its bound, never steps down from https, never repeats, and a
/// credential that was dropped stays dropped.
pub fn redirects(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let Ok(first) = url::judge(lines.next().unwrap_or(""), &Rules::default()) else { return };
    let mut chain = Chain::new(first.url().clone());
    let mut visited = vec![first.url().clone()];
    let mut kept = true;
    for location in lines {
        let Ok(Next::Follow(next)) = chain.next(302, Some(location)) else { return };
        let Ok(target) = url::judge(&next, &Rules::default()) else { return };
        let before = visited.last().is_some_and(|b| b.scheme() == "https");
        if chain.follow(target.url()).is_err() {
            return;
        }
        hold(!before || target.is_https(), "no step from https to http");
        hold(!visited.contains(target.url()), "no circle");
        visited.push(target.url().clone());
        hold(visited.len() <= MAX_REDIRECTS + 1, "no more redirects than the bound");
        hold(kept || !chain.keeps_credential(), "a dropped credential stays dropped");
        kept = chain.keeps_credential();
    }
}

/// Decompression: the first byte chooses the coding, the second the size of the pieces; the result keeps both bounds.
pub fn decompression(data: &[u8]) {
    const BOUND: usize = 4 * 1_024 * 1_024;
    let [coding, step, body @ ..] = data else { return };
    let coding = match coding % 6 {
        0 => None,
        1 => Some("gzip"),
        2 => Some("deflate"),
        3 => Some("br"),
        4 => Some("zstd"),
        _ => Some("identity"),
    };
    let Ok(mut decoder) = Decoder::new(coding, BOUND) else { return };
    for piece in body.chunks(usize::from(*step).max(1)) {
        if decoder.push(piece).is_err() {
            return;
        }
    }
    if let Ok(decoded) = decoder.finish() {
        hold(decoded.len() <= BOUND, "the bound holds");
        hold(decoded.len() <= RATIO_FREE_BYTES.max(body.len() * MAX_RATIO), "the ratio holds");
    }
}

/// Header fields of the guest: lines `name: value`; what is accepted is none of the host's own and breaks no line.
pub fn headers(data: &[u8]) {
    let fields: Vec<(String, Vec<u8>)> = data
        .split(|b| *b == b'\n')
        .map(|line| {
            let at = line.iter().position(|b| *b == b':').unwrap_or(line.len());
            let (name, value) = line.split_at_checked(at).unwrap_or((line, &[]));
            (String::from_utf8_lossy(name).into_owned(), value.get(1..).unwrap_or(&[]).to_vec())
        })
        .collect();
    let Ok(accepted) = client::guest_headers(&fields) else { return };
    for (name, value) in &accepted {
        hold(!client::is_own(name.as_str()), "no field of the host's own");
        hold(!value.as_bytes().iter().any(|b| matches!(b, b'\r' | b'\n' | 0)), "no value breaks a line");
    }
}
