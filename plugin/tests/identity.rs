//! Identity over several polls: what a scripted host serves, and the keys that come of it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails loudly")]

use connector_rss::contract::{Http, HttpFailure, HttpRequest, HttpResponse, Invocation, Page};
use connector_rss::fetch::fetch;
use serde_json::{Value, json};

/// A host that serves one document.
struct Serves(String);

impl Http for Serves {
    fn send(&mut self, _request: &HttpRequest) -> Result<HttpResponse, HttpFailure> {
        Ok(HttpResponse { status: 200, body: self.0.clone().into_bytes(), ..HttpResponse::default() })
    }
}

/// One instance over its polls.
struct Instance {
    config: Value,
    checkpoint: Option<String>,
}

impl Instance {
    fn new() -> Self {
        Self::with(json!({"url": "https://a.example.org/feed"}))
    }

    fn with(config: Value) -> Self {
        Self { config, checkpoint: None }
    }

    /// All pages of one poll, as one.
    fn poll(&mut self, document: &str) -> Page {
        let mut whole = Page::default();
        for page_in_run in 0.. {
            let call = Invocation {
                kind: "rss".into(),
                config: self.config.to_string(),
                checkpoint: self.checkpoint.clone(),
                now: "2026-09-28T12:00:00Z".into(),
                page_in_run,
                ..Invocation::default()
            };
            let page = fetch(&mut Serves(document.to_owned()), &call).unwrap();
            self.checkpoint = Some(page.checkpoint.clone());
            whole.items.extend(page.items);
            if page_in_run == 0 {
                whole.diagnostics = page.diagnostics;
            }
            if !page.more {
                whole.window = page.window;
                break;
            }
        }
        whole
    }
}

/// Items as (guid, link, title); an empty one is left out.
fn rss(items: &[(&str, &str, &str)]) -> String {
    let element =
        |name: &str, text: &str| if text.is_empty() { String::new() } else { format!("<{name}>{text}</{name}>") };
    let items: String = items
        .iter()
        .map(|(guid, link, title)| {
            format!("<item>{}{}{}</item>", element("guid", guid), element("link", link), element("title", title))
        })
        .collect();
    format!("<rss version=\"2.0\"><channel>{items}</channel></rss>")
}

fn keys(page: &Page) -> Vec<&str> {
    page.items.iter().map(|i| i.record_key.as_str()).collect()
}

fn moves(page: &Page) -> Vec<Option<&str>> {
    page.items.iter().map(|i| i.previous_key.as_deref()).collect()
}

fn policy(page: &Page) -> Value {
    serde_json::from_str::<Value>(&page.diagnostics).unwrap()["identity"].clone()
}

#[test]
fn a_guid_that_repeats_with_other_links_is_joined_with_the_link_and_its_record_goes_on() {
    let mut instance = Instance::new();
    let sound = rss(&[("b", "/b", "B"), ("a", "/a", "A")]);
    assert_eq!(keys(&instance.poll(&sound)), ["a", "b"]);
    let broken = rss(&[("a", "/c", "C"), ("b", "/b", "B"), ("a", "/a", "A")]);
    let page = instance.poll(&broken);
    assert_eq!(policy(&page), json!({"policy": "guid+link", "from": "guid", "because": "repeated_guid"}));
    // Reverse document order: /a, /b, /c. The first of the document that was "a" goes on as it; the other is new.
    assert_eq!(moves(&page), [None, Some("b"), Some("a")]);
    let distinct: std::collections::BTreeSet<_> = keys(&page).into_iter().collect();
    assert_eq!(distinct.len(), 3);
    // It sticks, and nothing is sent again.
    let again = instance.poll(&broken);
    assert!(again.items.is_empty());
    assert_eq!(policy(&again), json!({"policy": "guid+link"}));
    assert_eq!(instance.poll(&sound).items.len(), 0);
}

#[test]
fn the_same_guid_and_link_count_once_the_first_of_the_document() {
    let page = Instance::new().poll(&rss(&[("a", "/a", "first"), ("a", "/a", "second"), ("a", "", "third")]));
    assert_eq!(keys(&page), ["a"]);
    assert_eq!(page.items[0].parts[0].text, "first");
    assert_eq!(policy(&page), json!({"policy": "guid"}));
}

#[test]
fn links_in_place_of_guids_that_repeat_are_joined_with_the_title() {
    let mut instance = Instance::new();
    assert_eq!(keys(&instance.poll(&rss(&[("", "/status", "EU down")]))), ["/status"]);
    let page = instance.poll(&rss(&[("", "/status", "EU up"), ("", "/status", "EU down"), ("g", "/g", "G")]));
    assert_eq!(policy(&page)["policy"], "link+title");
    // The record of the link goes on as the first of the document; a guid keeps its key.
    assert_eq!(moves(&page), [None, None, Some("/status")]);
    assert_eq!(keys(&page)[0], "g");
    assert!(
        instance.poll(&rss(&[("", "/status", "EU up"), ("", "/status", "EU down"), ("g", "/g", "G")])).items.is_empty()
    );
}

fn volatile(round: usize, links: bool) -> String {
    let items: Vec<(String, String, String)> = (0..4)
        .map(|n| {
            let link = if links { format!("/{n}") } else { String::new() };
            (format!("guid-{round}-{n}"), link, format!("Title {n}"))
        })
        .collect();
    rss(&items.iter().map(|(g, l, t)| (g.as_str(), l.as_str(), t.as_str())).collect::<Vec<_>>())
}

#[test]
fn guids_that_change_at_every_poll_are_given_up_at_the_second_and_records_go_on() {
    for (links, expected) in [(true, "link"), (false, "content")] {
        let mut instance = Instance::new();
        assert_eq!(instance.poll(&volatile(0, links)).items.len(), 4);
        let strike = instance.poll(&volatile(1, links));
        assert_eq!((strike.items.len(), policy(&strike)), (4, json!({"policy": "guid"})));
        let switch = instance.poll(&volatile(2, links));
        assert_eq!(policy(&switch), json!({"policy": expected, "from": "guid", "because": "volatile_guids"}));
        assert_eq!(moves(&switch), [Some("guid-1-3"), Some("guid-1-2"), Some("guid-1-1"), Some("guid-1-0")]);
        for round in 3..6 {
            let page = instance.poll(&volatile(round, links));
            assert!(page.items.is_empty(), "{expected} {round}");
        }
        assert!(!instance.checkpoint.as_ref().unwrap().contains("trail"));
    }
}

#[test]
fn a_feed_that_is_only_busy_keeps_its_guids() {
    let mut instance = Instance::new();
    for round in 0..5 {
        let items: Vec<(String, String)> =
            (0..4).map(|n| (format!("g{round}-{n}"), format!("News {round} {n}"))).collect();
        let document = rss(&items.iter().map(|(g, t)| (g.as_str(), "", t.as_str())).collect::<Vec<_>>());
        let page = instance.poll(&document);
        assert_eq!((page.items.len(), policy(&page)), (4, json!({"policy": "guid"})), "{round}");
    }
    // One strike alone, with a sound poll behind it, is forgotten.
    let mut instance = Instance::new();
    for round in [0, 1, 1, 2, 2, 3] {
        assert_eq!(policy(&instance.poll(&volatile(round, true)))["policy"], "guid");
    }
}

#[test]
fn a_configured_policy_holds_whatever_the_documents_show() {
    let document = rss(&[("g1", "/1", "One"), ("g2", "/2", "Two"), ("g2", "/3", "Three")]);
    for (name, expected) in [("guid", vec!["g2", "g1"]), ("link", vec!["/3", "/2", "/1"])] {
        let mut instance = Instance::with(json!({"url": "https://a.example.org/feed", "identity": name}));
        assert_eq!(keys(&instance.poll(&document)), expected, "{name}");
    }
    for name in ["guid+link", "content"] {
        let mut instance = Instance::with(json!({"url": "https://a.example.org/feed", "identity": name}));
        let page = instance.poll(&document);
        assert_eq!(page.items.len(), 3, "{name}");
        assert!(keys(&page).iter().all(|k| k.starts_with("sha256:")), "{name}");
    }
}

#[test]
fn an_operator_may_change_the_policy_and_records_go_on() {
    let document = rss(&[("g1", "/1", "One"), ("g2", "/2", "Two")]);
    let mut instance = Instance::new();
    instance.poll(&document);
    instance.config = json!({"url": "https://a.example.org/feed", "identity": "link"});
    let page = instance.poll(&document);
    assert_eq!((keys(&page), moves(&page)), (vec!["/2", "/1"], vec![Some("g2"), Some("g1")]));
    assert_eq!(policy(&page)["because"], "configured");
    assert!(instance.poll(&document).items.is_empty());
}

#[test]
fn a_switch_of_a_long_feed_goes_on_over_its_pages() {
    let items: Vec<(String, String, String)> =
        (0..600).map(|n| (format!("g{n}"), format!("/{n}"), format!("Title {n}"))).collect();
    let listed = |extra: &[(&str, &str, &str)]| {
        let mut all: Vec<(&str, &str, &str)> = extra.to_vec();
        all.extend(items.iter().map(|(g, l, t)| (g.as_str(), l.as_str(), t.as_str())));
        rss(&all)
    };
    let mut instance = Instance::new();
    assert_eq!(instance.poll(&listed(&[])).items.len(), 600);
    let broken = listed(&[("g0", "/other", "Other")]);
    let page = instance.poll(&broken);
    assert_eq!(page.items.len(), 601);
    // Every known item goes on, each once; the first of the document takes the record of the repeated guid.
    let moved: std::collections::BTreeSet<_> = moves(&page).into_iter().flatten().collect();
    assert_eq!(moved.len(), 600);
    assert!(instance.poll(&broken).items.is_empty());
}

#[test]
fn a_renamed_feed_and_a_new_build_date_mint_nothing() {
    let feed = |title: &str, date: &str| {
        format!(
            "<rss version=\"2.0\"><channel><title>{title}</title><lastBuildDate>{date}</lastBuildDate>\
             <item><guid>g</guid><title>t</title></item></channel></rss>"
        )
    };
    let mut instance = Instance::new();
    assert_eq!(instance.poll(&feed("Old", "Mon, 28 Sep 2026 10:00:00 GMT")).items.len(), 1);
    assert!(instance.poll(&feed("New", "Mon, 28 Sep 2026 11:00:00 GMT")).items.is_empty());
}

#[test]
fn five_thousand_items_give_the_first_thousand_and_two_thousand_known_ones_stay_known() {
    let items = |from: usize, count: usize| {
        let list: Vec<(String, String)> = (from..from + count).map(|n| (format!("g{n}"), format!("T{n}"))).collect();
        rss(&list.iter().map(|(g, t)| (g.as_str(), "", t.as_str())).collect::<Vec<_>>())
    };
    let mut instance = Instance::new();
    assert_eq!(instance.poll(&items(0, 5_000)).items.len(), 1_000);
    assert_eq!(instance.poll(&items(1_000, 1_000)).items.len(), 1_000);
    assert!(instance.checkpoint.as_ref().unwrap().len() <= 120 * 1_024);
    assert!(instance.poll(&items(1_000, 1_000)).items.is_empty());
}

#[test]
fn the_thousandth_item_is_read_and_the_next_is_counted() {
    for (count, beyond) in [(1_000, 0), (1_001, 1)] {
        let list: Vec<String> = (0..count).map(|n| format!("g{n}")).collect();
        let page = Instance::new().poll(&rss(&list.iter().map(|g| (g.as_str(), "", "T")).collect::<Vec<_>>()));
        let told: Value = serde_json::from_str(&page.diagnostics).unwrap();
        assert_eq!((page.items.len(), &told["counts"]["beyond_bound"]), (1_000, &json!(beyond)));
        assert_eq!(page.window.unwrap().len(), 1_000);
    }
}

/// The text is cut at 384 KiB and the markup, past the budget of 768 KiB, is left out; the hash sees every byte.
#[test]
fn an_item_of_a_mebibyte_is_cut_and_its_last_byte_still_makes_a_revision() {
    let item = |last: char| {
        let text = "word ".repeat(1_024 * 1_024 / 5);
        format!(
            "<rss version=\"2.0\"><channel><item><guid>g</guid><description>&lt;p&gt;{text}{last}&lt;/p&gt;</description></item></channel></rss>"
        )
    };
    let mut instance = Instance::new();
    let page = instance.poll(&item('a'));
    let parts: Vec<_> = page.items[0].parts.iter().map(|p| (p.key, p.text.len())).collect();
    // 384 KiB end inside "word ", whose white space stays as it is.
    assert_eq!(parts, [("body", 384 * 1_024)]);
    let data: Value = serde_json::from_str(&page.items[0].extensions[0].data).unwrap();
    assert_eq!(data["item"]["truncated"], true);
    assert!(instance.poll(&item('a')).items.is_empty());
    assert_eq!(instance.poll(&item('b')).items.len(), 1);
}
