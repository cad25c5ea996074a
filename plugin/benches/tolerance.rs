//! What tolerance costs: a clean document against feed-rs alone, and hostile documents of 10 MiB against a good one, as
//! ratios of one run.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark talks to people and fails loudly"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use connector_rss::contract::{Http, HttpFailure, HttpRequest, HttpResponse, Invocation};
use connector_rss::fetch::fetch;
use connector_rss::notes::Notes;
use connector_rss::{decode, parse};
use criterion::{Criterion, criterion_group};

const SIZE: usize = 10 * 1_024 * 1_024;

/// A feed of so many items with bodies of so many bytes.
fn feed(items: usize, body: usize) -> String {
    let text = "<p class=\"c\">The <em>late</em> ferry of the <a href=\"/harbour\">harbour</a> &amp; its tide.</p>\n";
    let body = text.repeat(body / text.len());
    let items: String = (0..items)
        .map(|n| {
            format!(
                "<item><title>Item {n}</title><link>https://bench.example.org/{n}</link><guid>g{n}</guid>\
                 <pubDate>Wed, 02 Sep 2026 07:15:00 GMT</pubDate><description><![CDATA[{body}]]></description></item>"
            )
        })
        .collect();
    format!("<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>Bench</title>{items}</channel></rss>")
}

/// The hostile documents: each fills 10 MiB with one trick.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let filled = |piece: &str| {
        let body = piece.repeat((SIZE - 200) / piece.len());
        format!("<rss version=\"2.0\"><channel><title>x</title><item><guid>g</guid><title>a</title><description>{body}</description></item></channel></rss>")
            .into_bytes()
    };
    vec![
        ("ampersands", filled("& ")),
        ("angle brackets", filled("< ")),
        ("open tags", filled("<b>")),
        ("stray end tags", filled("</b>")),
        ("void tags", filled("<br>")),
        ("unquoted attributes", filled("<a b=c d e=f>x</a>")),
        ("quotes that never end", filled("<a b=\"")),
        ("comments that never end", filled("<!--")),
        ("CDATA that never ends", filled("<![CDATA[")),
        ("declarations", filled("<?xml version=\"1.0\" encoding=\"x\"?>")),
        ("document types", filled("<!DOCTYPE x [")),
        ("quotes in a document type", format!("<!DOCTYPE x {}>", "\"\" ".repeat(SIZE / 3)).into_bytes()),
        ("references", filled("&#65;")),
        ("unknown entities", filled("&nosuch;")),
        ("control characters", filled("\u{1}a")),
        ("undeclared prefixes", filled("<p:q/>")),
        ("items", format!("<rss><channel>{}</channel></rss>", "<item/>".repeat(SIZE / 7)).into_bytes()),
        (
            "attributes",
            format!("<rss><channel><item {}><title>a</title></item></channel></rss>", "a=\"b\" ".repeat(SIZE / 6))
                .into_bytes(),
        ),
        ("namespaces", filled("<x xmlns:a=\"b\" xmlns=\"c\"/>")),
        ("single bad bytes", b"<rss><channel><item><title>a\xFF</title></item></channel></rss>".repeat(SIZE / 62)),
        ("brackets of JSON", "[".repeat(SIZE).into_bytes()),
        (
            "empty items of JSON",
            format!("{{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{}0]}}", "{},".repeat(SIZE / 3))
                .into_bytes(),
        ),
    ]
}

fn read(bytes: Vec<u8>) -> usize {
    let notes = Notes::default();
    let text = decode::decode(bytes, None, &notes);
    parse::read(&text, None, &notes).map_or(0, |feed| feed.items.len())
}

struct Serves(Vec<u8>);

impl Http for Serves {
    fn send(&mut self, _request: &HttpRequest) -> Result<HttpResponse, HttpFailure> {
        Ok(HttpResponse { status: 200, body: std::mem::take(&mut self.0), ..HttpResponse::default() })
    }
}

/// The first page of a poll: decoding, reading, texts, hashes.
fn poll(bytes: Vec<u8>) -> usize {
    let call = Invocation {
        kind: "rss".into(),
        config: "{\"url\":\"https://bench.example.org/feed\"}".into(),
        now: "2026-09-28T12:00:00Z".into(),
        ..Invocation::default()
    };
    fetch(&mut Serves(bytes), &call).map_or(0, |page| page.items.len())
}

fn parsing(criterion: &mut Criterion) {
    for (name, document) in [("20-items", feed(20, 10_000)), ("1000-items", feed(1_000, 2_000))] {
        let mut group = criterion.benchmark_group(format!("parse-{name}"));
        group.sample_size(20);
        group.bench_function("tolerant", |b| b.iter(|| read(black_box(document.clone().into_bytes()))));
        group.bench_function("feed-rs", |b| {
            b.iter(|| {
                let bytes = black_box(document.clone().into_bytes());
                feed_rs::parser::Builder::new().sanitize_content(false).build().parse(bytes.as_slice()).unwrap()
            });
        });
        group.finish();
    }
}

/// The best of three: what the machine can do when nobody disturbs it.
fn best(bytes: &[u8]) -> Duration {
    let time = |_| {
        let copy = bytes.to_vec();
        let started = Instant::now();
        black_box(poll(copy));
        started.elapsed()
    };
    (0..3).map(time).min().unwrap_or_default()
}

fn report() {
    let good = best(feed(1_000, SIZE / 1_000 - 200).as_bytes());
    println!("\n10 MiB of a good feed: {:.1} ms", good.as_secs_f64() * 1e3);
    for (name, document) in hostile() {
        let time = best(&document);
        println!(
            "10 MiB of {name}: {:.1} ms, ratio to the good feed {:.2}",
            time.as_secs_f64() * 1e3,
            time.as_secs_f64() / good.as_secs_f64()
        );
    }
}

criterion_group!(benches, parsing);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    report();
}
