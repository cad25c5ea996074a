//! The fuzz bodies over the stored corpus, and over inputs made from it: the short form of `make fuzz`.

use std::fs;
use std::path::Path;

use connector_rss::fuzz::{Numbers, mutant};
use host_shim::fuzz::BODIES;

/// Inputs made from each stored one.
const MUTANTS: usize = 300;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{}", folder.display());
    files.iter().map(|f| fs::read(f).unwrap()).collect()
}

#[test]
fn every_body_holds_over_its_corpus_and_what_is_made_from_it() {
    for (name, body) in BODIES {
        let corpus = corpus(name);
        let mut numbers = Numbers::new(1);
        for (n, seed) in corpus.iter().enumerate() {
            body(seed);
            let other = &corpus[(n + 1) % corpus.len()];
            for _ in 0..MUTANTS {
                body(&mutant(seed, other, &mut numbers));
            }
        }
    }
}

#[test]
fn ten_thousand_random_addresses_break_nothing() {
    const PIECES: [&str; 40] = [
        "http",
        "https",
        "HTTP",
        "feed",
        ":",
        "//",
        "/",
        "\\",
        "@",
        "?",
        "#",
        "%",
        "%2e",
        "[",
        "]",
        "::",
        "ffff",
        "127",
        "0x7f",
        "0177",
        "10",
        "192.168.0.1",
        ".",
        "..",
        "localhost",
        "site.org",
        "a",
        "xn--",
        "\u{fc}",
        "\u{ff11}",
        "\u{3002}",
        "\u{ad}",
        " ",
        "\t",
        "\0",
        "65536",
        "80",
        "6379",
        "0",
        "1",
    ];
    let mut numbers = Numbers::new(2);
    for n in 0..10_000 {
        let mut text = String::from(if n % 2 == 0 { "http://" } else { "" });
        for _ in 0..numbers.below(12) {
            text.push_str(PIECES[numbers.below(PIECES.len())]);
        }
        host_shim::fuzz::url_policy(text.as_bytes());
    }
}
