//! One poll in the sandbox against the same poll natively and against bare parsers, as ratios of one run.
//!
//! The documents are generated from a seed. criterion measures; the ratios are read from what it wrote, so that all
//! figures of a report come from one run of one machine.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark talks to people and fails loudly"
)]

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use connector_rss::contract::{Http, HttpFailure, HttpRequest, HttpResponse};
use criterion::{Criterion, criterion_group};
use host_shim::engine::image::Cache;
use host_shim::engine::limits::Limits;
use host_shim::engine::pin::Pin;
use host_shim::engine::plugin::{Form, Fragment, FragmentKind, Invocation, Plugin};
use host_shim::engine::runtime::Runtime;
use host_shim::engine::upstream::{Response, Upstream};
use host_shim::runner::Session;
use host_shim::runner::document::Document;

const URL: &str = "https://feeds.example.org/feed";
const NOW: &str = "2026-09-28T12:00:00Z";

/// A generator of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A feed of so many items and about so many bytes, with the markup that blogs have.
fn feed(items: usize, bytes: usize, seed: u64) -> String {
    const WORDS: [&str; 12] =
        ["harbour", "the", "of", "night", "ferry", "tide", "and", "a", "late", "&eacute;t&eacute;", "river", "is"];
    let mut numbers = Numbers(seed);
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rss version=\"2.0\" \
         xmlns:content=\"http://purl.org/rss/1.0/modules/content/\"><channel><title>Bench</title>\
         <link>https://bench.example.org/</link><description>Generated</description>",
    );
    for n in 0..items {
        let mut body = String::new();
        while body.len() < bytes / items {
            body.push_str("<p class=\"c\">");
            for _ in 0..40 {
                let word = WORDS.get(usize::try_from(numbers.below(12)).unwrap()).unwrap();
                match numbers.below(12) {
                    0 => write!(body, "<a href=\"https://bench.example.org/{word}\">{word}</a> ").unwrap(),
                    1 => write!(body, "<em>{word}</em> ").unwrap(),
                    _ => write!(body, "{word} ").unwrap(),
                }
            }
            body.push_str("</p>\n");
        }
        write!(
            out,
            "<item><title>Item {n}</title><link>https://bench.example.org/{n}</link><guid isPermaLink=\"false\">g{n}</guid>\
             <pubDate>Wed, 02 Sep 2026 07:15:00 GMT</pubDate><category>bench</category>\
             <content:encoded><![CDATA[{body}]]></content:encoded></item>"
        )
        .unwrap();
    }
    out.push_str("</channel></rss>");
    out
}

struct Serves(HttpResponse);

impl Http for Serves {
    fn send(&mut self, _request: &HttpRequest) -> Result<HttpResponse, HttpFailure> {
        Ok(self.0.clone())
    }
}

fn native(document: &str) -> connector_rss::contract::Page {
    let response =
        HttpResponse { status: 200, body: document.into(), final_url: URL.into(), ..HttpResponse::default() };
    let call = connector_rss::contract::Invocation {
        kind: "rss".into(),
        config: format!("{{\"url\":\"{URL}\"}}"),
        now: NOW.into(),
        ..connector_rss::contract::Invocation::default()
    };
    connector_rss::fetch::fetch(&mut Serves(response), &call).unwrap()
}

/// Every event of the document, without looking at it.
fn scan(document: &str) -> usize {
    let mut reader = quick_xml::Reader::from_str(document);
    let mut events = 0;
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => return events,
            event => {
                black_box(&event);
                events += 1;
            }
        }
    }
}

struct Sandbox {
    tokio: tokio::runtime::Runtime,
    plugin: Plugin,
}

impl Sandbox {
    fn call(checkpoint: Option<String>) -> Invocation {
        Invocation {
            instance_id: "bench".into(),
            kind: "rss".into(),
            config: format!("{{\"url\":\"{URL}\"}}"),
            checkpoint,
            now: NOW.into(),
            ..Invocation::default()
        }
    }

    /// One page, as a poll of a feed that fits one.
    fn page(&self, upstream: &Arc<dyn Upstream>, checkpoint: Option<&String>) -> usize {
        let call = Self::call(checkpoint.cloned());
        let (page, _) = self.tokio.block_on(self.plugin.fetch(&call, Arc::clone(upstream)));
        page.unwrap().unwrap().items.len()
    }

    /// A whole run: its checkpoint, its peak memory in bytes, its time.
    fn run(&self, document: &str) -> (String, usize, Duration) {
        let response = Response { status: 200, body: document.into(), final_url: URL.into(), ..Response::default() };
        let mut session = Session::new(self.plugin.clone(), Arc::new(Document::new(response)), Self::call(None));
        let started = Instant::now();
        let mut checkpoint = String::new();
        while let Some(page) = self.tokio.block_on(session.next()) {
            checkpoint = page.unwrap().checkpoint;
        }
        (checkpoint, session.usage.peak_memory, started.elapsed())
    }
}

fn component() -> PathBuf {
    // target/release/deps/poll-… → target/release
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("connector.rss.wasm")
}

fn load(tokio: &tokio::runtime::Runtime, runtime: &Runtime, cache: Option<&Cache>) -> Plugin {
    let pin = Pin { path: component(), sha256: None, configuration: "{}".into() };
    tokio.block_on(Plugin::load(runtime, &pin, cache)).unwrap()
}

fn sandbox() -> Sandbox {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let plugin = load(&tokio, &Runtime::new(Limits::DEFAULT).unwrap(), None);
    Sandbox { tokio, plugin }
}

fn answers(status: u16, body: &str) -> Arc<dyn Upstream> {
    let response = Response { status, body: body.into(), final_url: URL.into(), ..Response::default() };
    Arc::new(Document::new(response))
}

/// The documents: name, items, bytes.
const DOCUMENTS: [(&str, usize, usize); 2] = [("20-items", 20, 200_000), ("1000-items", 1_000, 2_000_000)];

fn polls(criterion: &mut Criterion) {
    let sandbox = sandbox();
    for (name, items, bytes) in DOCUMENTS {
        let document = feed(items, bytes, 7);
        let upstream = answers(200, &document);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        group.bench_function("sandbox", |b| b.iter(|| sandbox.page(&upstream, None)));
        group.bench_function("native", |b| b.iter(|| native(&document)));
        group.bench_function("feed-rs", |b| {
            b.iter(|| {
                feed_rs::parser::Builder::new().sanitize_content(false).build().parse(document.as_bytes()).unwrap()
            });
        });
        group.bench_function("quick-xml", |b| b.iter(|| scan(&document)));
        group.finish();
    }
    let mut group = criterion.benchmark_group("small");
    group.bench_function("instance", |b| {
        b.iter(|| sandbox.tokio.block_on(sandbox.plugin.render(Vec::new(), &[Form::Text])).unwrap());
    });
    for known in [20, 2_000] {
        let seen: Vec<String> = (0..known).map(|n| format!("{{\"k\":\"{n:016x}\",\"r\":\"{n:016x}\"}}")).collect();
        let checkpoint =
            format!("{{\"etag\":\"\\\"x\\\"\",\"seen\":[{}],\"reader\":\"connector.rss/1\"}}", seen.join(","));
        let upstream = answers(304, "");
        group.bench_function(format!("304-{known}"), |b| b.iter(|| sandbox.page(&upstream, Some(&checkpoint))));
    }
    group.finish();
}

/// The forms of rendering.
const FORMS: [(&str, Form, connector_rss::render::Form); 4] = [
    ("text", Form::Text, connector_rss::render::Form::Text),
    ("markdown", Form::Markdown, connector_rss::render::Form::Markdown),
    ("entry-xml", Form::EntryXml, connector_rss::render::Form::EntryXml),
    ("safe-html", Form::SafeHtml, connector_rss::render::Form::SafeHtml),
];

/// Markup of so many bytes, as blogs have it.
fn markup(bytes: usize) -> String {
    let document = feed(1, bytes, 11);
    let inner = document.split("<![CDATA[").nth(1).unwrap_or("");
    inner.split("]]>").next().unwrap_or("").to_owned()
}

fn renderings(criterion: &mut Criterion) {
    let sandbox = sandbox();
    let source = markup(100_000);
    let boxed = |forms: &[Form]| {
        let fragment = Fragment { source: source.clone(), kind: FragmentKind::Html, base_url: Some(URL.into()) };
        sandbox.tokio.block_on(sandbox.plugin.render(vec![fragment], forms)).unwrap()
    };
    let mut group = criterion.benchmark_group("render");
    group.sample_size(30);
    group.bench_function("ammonia", |b| b.iter(|| ammonia::clean(black_box(&source))));
    for (name, form, native) in FORMS {
        group.bench_function(format!("{name}-native"), |b| {
            b.iter(|| connector_rss::render::render(&source, connector_rss::model::Markup::Html, Some(URL), &[native]));
        });
        group.bench_function(format!("{name}-sandbox"), |b| b.iter(|| boxed(&[form])));
    }
    group.bench_function("all-native", |b| {
        b.iter(|| {
            let forms = FORMS.map(|(.., native)| native);
            connector_rss::render::render(&source, connector_rss::model::Markup::Html, Some(URL), &forms)
        });
    });
    group.bench_function("all-sandbox", |b| b.iter(|| boxed(&FORMS.map(|(_, form, _)| form))));
    group.finish();
}

/// The median of a benchmark of this run, in nanoseconds.
fn median(group: &str, name: &str) -> f64 {
    let folder = component().parent().unwrap().parent().unwrap().join("criterion");
    let path = folder.join(group).join(name).join("new/estimates.json");
    let estimates: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    estimates.pointer("/median/point_estimate").unwrap().as_f64().unwrap()
}

fn report() {
    println!("\nratios of this run");
    for (name, ..) in DOCUMENTS {
        let at = |bench| median(name, bench);
        let (sandbox, native, feed_rs) = (at("sandbox"), at("native"), at("feed-rs"));
        println!(
            "{name}: quick-xml scan {:.3} ms, feed-rs {:.3} ms, native {:.3} ms, sandbox {:.3} ms; \
             sandbox/native {:.2}, sandbox/feed-rs {:.2}, native/feed-rs {:.2}",
            at("quick-xml") / 1e6,
            feed_rs / 1e6,
            native / 1e6,
            sandbox / 1e6,
            sandbox / native,
            sandbox / feed_rs,
            native / feed_rs,
        );
    }
    let ammonia = median("render", "ammonia");
    let bytes = markup(100_000).len() as f64;
    for name in FORMS.iter().map(|(name, ..)| *name).chain(["all"]) {
        let (native, boxed) =
            (median("render", &format!("{name}-native")), median("render", &format!("{name}-sandbox")));
        println!(
            "render {name}: sandbox {:.1} MB/s, native {:.1} MB/s; sandbox to ammonia's clean natively {:.2}",
            bytes / boxed * 1e3,
            bytes / native * 1e3,
            boxed / ammonia,
        );
    }
    for name in ["instance", "304-20", "304-2000"] {
        println!("{name}: {:.1} \u{b5}s", median("small", name) / 1e3);
    }
    println!("component: {} bytes", fs::metadata(component()).unwrap().len());
    let folder = std::env::temp_dir().join(format!("bench-images-{}", std::process::id()));
    let cache = Cache::open(&folder);
    let sandbox = sandbox();
    let timed = |what: &str| {
        let runtime = Runtime::new(Limits::DEFAULT).unwrap();
        let started = Instant::now();
        load(&sandbox.tokio, &runtime, cache.as_ref());
        println!("{what}: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    };
    timed("load, compiled anew (digest, compilation, descriptor)");
    timed("load, image from the cache (digest, image, descriptor)");
    bounds(&sandbox);
    remove(&folder);
}

/// Peak memory and time on documents at their bounds.
fn bounds(sandbox: &Sandbox) {
    let megabyte = feed(9, 9 * 1_024 * 1_024, 3);
    for (what, document) in [
        ("1,000 items, 2 MB", feed(1_000, 2_000_000, 7)),
        ("5,000 items, 10 MB", feed(5_000, 9_000_000, 7)),
        ("9 items of 1 MiB", megabyte),
    ] {
        let (checkpoint, peak, time) = sandbox.run(&document);
        println!(
            "whole run of {what}: {:.0} ms, peak guest memory {:.1} MiB, checkpoint {} bytes",
            time.as_secs_f64() * 1e3,
            peak as f64 / f64::from(1 << 20),
            checkpoint.len()
        );
    }
}

fn remove(folder: &Path) {
    // It lies in the temporary folder, where a leftover does no harm.
    let _ = fs::remove_dir_all(folder);
}

criterion_group!(benches, polls, renderings);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    report();
}
