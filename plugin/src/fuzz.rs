//! What must hold for any bytes in a feed's place: plain functions, run over stored documents by the tests and over
//! invented ones by cargo-fuzz (`make fuzz`).
//!
//! Owns the statements, not the input. A body returns quietly or panics; a panic is a fault of the code it calls.

use crate::contract::{Header, Http, HttpFailure, HttpRequest, HttpResponse, Invocation, Page};
use crate::fetch::fetch;
use crate::model::Markup;
use crate::notes::Notes;
use crate::{date, decode, parse};

/// A statement about any bytes.
pub type Body = fn(&[u8]);

/// Every body with its name.
pub const BODIES: [(&str, Body); 6] = [
    ("decode", decoding),
    ("repair", repairing),
    ("date", dates),
    ("parse", parsing),
    ("fetch", fetching),
    ("render", rendering),
];

fn hold(promise: bool, what: &str) {
    assert!(promise, "{what}");
}

/// Numbers that are the same in every run.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below a bound; 0 where the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }
}

/// An input made from another: one to four changes, each a bit, a byte, a piece doubled, cut out or taken from a third.
#[must_use]
pub fn mutant(seed: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    const SIGNS: &[u8] = b"<>&;\"'=/![]{}\0\x80 ";
    let mut out = seed.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(out.len());
        let to = (at + numbers.below(24)).min(out.len());
        let byte = (numbers.below(8), SIGNS.get(numbers.below(SIGNS.len())).copied().unwrap_or(0));
        match (numbers.below(5), out.get_mut(at)) {
            (0, Some(place)) => *place ^= 1 << byte.0,
            (1, Some(place)) => *place = byte.1,
            (2, Some(_)) => {
                let piece = out.get(at..to).unwrap_or(&[]).to_vec();
                drop(out.splice(at..at, piece));
            }
            (3, Some(_)) => drop(out.drain(at..to)),
            _ => {
                let from = numbers.below(other.len());
                let piece = other.get(from..(from + numbers.below(24)).min(other.len())).unwrap_or(&[]).to_vec();
                drop(out.splice(at..at, piece));
            }
        }
    }
    out
}

/// Decoding: some text comes of any bytes; UTF-8 stays what it is.
pub fn decoding(data: &[u8]) {
    for charset in [None, Some("windows-1251"), Some("utf-16"), Some("no such")] {
        let notes = Notes::default();
        let text = decode::decode(data.to_vec(), charset, &notes);
        let is_plain = !data.is_ascii() && !data.starts_with(b"\xEF\xBB\xBF") && !data.contains(&0);
        if is_plain && std::str::from_utf8(data).is_ok() {
            hold(text.as_bytes() == data, "UTF-8 stays what it is");
        }
    }
}

/// The repair ladder: what was repaired needs no repair, and no note comes of nothing.
pub fn repairing(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let notes = Notes::default();
    match parse::repaired(&text, &notes) {
        Some(repaired) => {
            hold(!notes.list().is_empty(), "a repair is noted");
            hold(parse::repaired(&repaired, &Notes::default()).is_none(), "a repaired document needs no repair");
        }
        None => hold(notes.list().is_empty(), "no note without a repair"),
    }
}

/// Dates: what is read can be written and is read again as the same.
pub fn dates(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(read) = date::read(&text) {
        let written = date::rfc3339(read.seconds);
        let again = date::read(&written);
        hold(again == Some(date::Date { seconds: read.seconds, zone_guessed: false }), "a written date is the same");
    }
}

/// Every dialect: a feed or a refusal with its stage, within the bounds.
pub fn parsing(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let base = url::Url::parse("https://feeds.example.org/dir/feed").ok();
    let notes = Notes::default();
    match parse::read(&text, base.as_ref(), &notes) {
        Ok(feed) => {
            hold(feed.items.len() <= parse::MAX_ITEMS, "no more items than the bound");
            hold(feed.items.len() <= feed.items_in_document, "no item that is not in the document");
        }
        Err(error) => hold(error.to_string().contains("stage"), "a refusal names its stage"),
    }
}

struct Serves<'d>(&'d [u8]);

impl Http for Serves<'_> {
    fn send(&mut self, _request: &HttpRequest) -> Result<HttpResponse, HttpFailure> {
        Ok(HttpResponse {
            status: 200,
            headers: vec![Header { name: "content-type".to_owned(), value: b"text/xml".to_vec() }],
            body: self.0.to_vec(),
            final_url: "https://feeds.example.org/dir/feed".to_owned(),
            ..HttpResponse::default()
        })
    }
}

/// All pages of one run; the checkpoint behind the last.
fn run(document: &[u8], mut checkpoint: Option<String>) -> Option<(Vec<Page>, Option<String>)> {
    let mut pages = Vec::new();
    loop {
        let call = Invocation {
            kind: "rss".to_owned(),
            config: "{\"url\":\"https://feeds.example.org/dir/feed\",\"honor_ttl\":false}".to_owned(),
            checkpoint: checkpoint.clone(),
            now: "2026-09-28T12:00:00Z".to_owned(),
            page_in_run: u32::try_from(pages.len()).unwrap_or(u32::MAX),
            ..Invocation::default()
        };
        let page = fetch(&mut Serves(document), &call).ok()?;
        hold(page.checkpoint != checkpoint.clone().unwrap_or_default() || !page.more, "a page with more moves on");
        checkpoint = Some(page.checkpoint.clone());
        let more = page.more;
        pages.push(page);
        if !more {
            return Some((pages, checkpoint));
        }
    }
}

/// A whole poll: it ends, a second one of the same document brings nothing, and a document in UTF-16 brings the same.
pub fn fetching(data: &[u8]) {
    let Some((pages, checkpoint)) = run(data, None) else { return };
    let items: Vec<_> = pages.iter().flat_map(|p| &p.items).collect();
    for item in &items {
        hold(
            !item.record_key.is_empty() && item.record_key.len() <= crate::identity::MAX_KEY_BYTES,
            "keys are bounded",
        );
        hold(!item.parts.is_empty() && item.parts.iter().all(|p| !p.text.contains('\0')), "parts are texts");
        for extension in &item.extensions {
            hold(serde_json::from_str::<serde_json::Value>(&extension.data).is_ok(), "extensions are JSON");
        }
    }
    let (again, _) = run(data, checkpoint).unwrap_or_default();
    // A policy that switched at the second look sends records on under new keys; nothing else may come.
    let new = again.iter().flat_map(|p| &p.items).filter(|i| i.previous_key.is_none()).count();
    hold(new == 0, "the same document twice brings nothing new");
    // A NUL behind the mark of UTF-16 would make it that of UTF-32.
    if let Ok(text) = std::str::from_utf8(data)
        && !data.contains(&0)
        && decode::decode(data.to_vec(), None, &Notes::default()) == text
    {
        let wide: Vec<u8> = [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let twin = run(&wide, None).map(|(pages, _)| pages).unwrap_or_default();
        let twins: Vec<_> = twin.iter().flat_map(|p| &p.items).collect();
        hold(twins == items, "another encoding changes no record");
    }
}

/// Renderings: each form comes of any bytes, twice the same; entry XML is well-formed, HTML for pages is a fixed point.
pub fn rendering(data: &[u8]) {
    use crate::render::{Form, render};
    let source = String::from_utf8_lossy(data);
    let base = Some("https://a.example.org/dir/post");
    let forms = [Form::Text, Form::Markdown, Form::EntryXml, Form::SafeHtml];
    for markup in [Markup::Html, Markup::Xhtml, Markup::Text] {
        let together = render(&source, markup, base, &forms);
        hold(together.len() == forms.len(), "each form has its output");
        for (form, first) in forms.into_iter().zip(together) {
            hold(first.output.len() <= crate::render::MAX_OUTPUT_BYTES, "an output is bounded");
            let alone = render(&source, markup, base, &[form]);
            hold(alone == [first.clone()], "the same fragment gives the same bytes, alone and beside other forms");
            match form {
                Form::EntryXml => hold(is_well_formed(&first.output), "entry XML is well-formed"),
                Form::SafeHtml => {
                    let again = render(&first.output, Markup::Html, None, &[form]);
                    let same = again.iter().all(|r| r.output == first.output);
                    hold(same, "HTML for pages is a fixed point of itself");
                }
                Form::Text if markup == Markup::Text => hold(first.output == source, "text passes through exactly"),
                Form::Text | Form::Markdown => {}
            }
        }
    }
}

/// Whether a text is one well-formed element of XML without declarations, with the five entities and no other.
fn is_well_formed(text: &str) -> bool {
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let (mut depth, mut roots) = (0_usize, 0_usize);
    let allowed = text.chars().all(crate::html::is_xml_char);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Start(tag)) => {
                roots += usize::from(depth == 0);
                depth += 1;
                if tag.attributes().any(|a| a.is_err()) {
                    return false;
                }
            }
            Ok(quick_xml::events::Event::Empty(tag)) => {
                if depth == 0 || tag.attributes().any(|a| a.is_err()) {
                    return false;
                }
            }
            Ok(quick_xml::events::Event::End(_)) => depth -= 1,
            Ok(quick_xml::events::Event::GeneralRef(name)) => {
                if !matches!(&*name.into_inner(), "lt" | "gt" | "amp" | "quot" | "apos") {
                    return false;
                }
            }
            Ok(quick_xml::events::Event::Text(_)) => {}
            Ok(quick_xml::events::Event::Eof) => return allowed && depth == 0 && roots == 1,
            Ok(_) | Err(_) => return false,
        }
    }
}
