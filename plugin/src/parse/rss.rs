//! RSS 0.90 to 2.0 and RSS 1.0 (RDF).
//!
//! Owns which element of these dialects is which field. Sources: RSS 2.0 (rssboard.org), RSS 1.0 and its modules
//! Dublin Core, Content and Syndication, the iTunes podcast tags. Must not know Atom feeds or records.

use super::fields::{Source, add_category, add_link, address, enclosure, language_tag, person, rss_text};
use super::more;
use super::outline::{Node, Ns, Outline};
use crate::contract::Weekday;
use crate::model::{Author, Dialect, Feed, FeedMeta, IdOrigin, Item, Pace, Text};
use crate::notes::Notes;

/// Periods of the syndication module in seconds; a month is 30 days, a year 365.
const PERIODS: [(&str, u64); 5] =
    [("hourly", 3_600), ("daily", 86_400), ("weekly", 604_800), ("monthly", 2_592_000), ("yearly", 31_536_000)];

pub(super) fn read(document: &str, outline: &Outline<'_>, notes: &Notes) -> Feed {
    let root = &outline.root;
    let channel = root.first(Ns::Rss, "channel").unwrap_or(root);
    let (dialect, version) = version(outline);
    let meta = FeedMeta { declared: declared(root, &version), ..meta(document, channel, dialect, version) };
    let source = Source { document, notes, feed_link: &meta.link };
    Feed {
        pace: pace(channel),
        items: outline.items.iter().map(|node| item(&source, node, dialect)).collect(),
        meta,
        items_in_document: outline.items_in_document,
    }
}

/// What the document says that it is.
fn declared(root: &Node<'_>, version: &str) -> String {
    match root.name.to_ascii_lowercase().as_str() {
        "rss" | "rdf" if !version.is_empty() => format!("rss-{version}"),
        "rss" => "rss".to_owned(),
        _ if version == "1.1" => "rss-1.1".to_owned(),
        _ => format!("unknown:{}", root.name),
    }
}

fn version(outline: &Outline<'_>) -> (Dialect, String) {
    let root = &outline.root;
    if root.name.eq_ignore_ascii_case("rdf") {
        let netscape = root.children.iter().any(|c| c.ns == Ns::Rss)
            && outline.items.iter().all(|i| i.attribute("rdf:about").is_none())
            && root.first(Ns::Rss, "channel").is_some_and(|c| c.attribute("rdf:about").is_none());
        return if netscape { (Dialect::Rss09, "0.90".to_owned()) } else { (Dialect::Rss10, "1.0".to_owned()) };
    }
    if outline.root_namespace.as_deref().is_some_and(|n| n.contains("purl.org/net/rss1.1")) {
        return (Dialect::Rss10, "1.1".to_owned());
    }
    let declared = root.attribute("version").unwrap_or("").trim().to_owned();
    let dialect = if declared.starts_with("0.") { Dialect::Rss09 } else { Dialect::Rss20 };
    (dialect, declared)
}

fn meta(document: &str, channel: &Node<'_>, dialect: Dialect, version: String) -> FeedMeta {
    let base = channel.base.as_deref();
    let link =
        channel.text_of(Ns::Rss, "link").map(|l| address(l, base)).or_else(|| alternate(channel)).unwrap_or_default();
    let text = |name| channel.first(Ns::Rss, name).map(|n| rss_text(document, n)).unwrap_or_default();
    let icon = channel
        .first(Ns::Rss, "image")
        .and_then(|i| i.text_of(Ns::Rss, "url"))
        .or_else(|| channel.first(Ns::Itunes, "image").and_then(|i| i.attribute("href")));
    FeedMeta {
        dialect,
        version,
        title: text("title"),
        link,
        description: text("description"),
        language: channel
            .text_of(Ns::Rss, "language")
            .or_else(|| channel.text_of(Ns::Dc, "language"))
            .map(language_tag)
            .unwrap_or_default(),
        icon: icon.map(|i| address(i, base)).unwrap_or_default(),
        declared: String::new(),
    }
}

/// The address of an `atom:link` that leads to the thing itself (RFC 4287, section 4.2.7.2).
fn alternate(node: &Node<'_>) -> Option<String> {
    node.all(Ns::Atom, "link")
        .filter(|l| l.attribute("rel").is_none_or(|r| r.trim().eq_ignore_ascii_case("alternate")))
        .filter_map(|l| l.attribute("href").map(|h| address(h, l.base.as_deref())))
        .find(|h| !h.is_empty())
}

fn item(source: &Source<'_>, node: &Node<'_>, dialect: Dialect) -> Item {
    let text = |ns, name| node.first(ns, name).map(|n| source.rss_text(n)).filter(|t| !t.raw.trim().is_empty());
    let (guid, guid_origin, permalink) = guid(node);
    let link = link(node, permalink);
    let (guid, guid_origin) = if guid.is_empty() && dialect != Dialect::Rss20 {
        // RSS 1.0: rdf:about names the item; where it repeats the link it says nothing more.
        let about = node.attribute("rdf:about").unwrap_or("").trim();
        if about == link { (String::new(), guid_origin) } else { (about.to_owned(), IdOrigin::RdfAbout) }
    } else {
        (guid, guid_origin)
    };
    let date_of = |ns, name| node.all(ns, name).find_map(|n| source.date(n));
    let dc_date = date_of(Ns::Dc, "date");
    let published = date_of(Ns::Rss, "pubDate")
        .or(dc_date)
        .or_else(|| date_of(Ns::DcTerms, "issued"))
        .or_else(|| date_of(Ns::DcTerms, "created"))
        .or_else(|| date_of(Ns::Atom, "published"));
    let updated = date_of(Ns::Atom, "updated").or_else(|| date_of(Ns::DcTerms, "modified")).or(dc_date);
    let links = links(node, &link);
    Item {
        guid,
        guid_origin,
        links,
        base_url: source.base_address(node, &link),
        more: more::item(node),
        link,
        title: text(Ns::Rss, "title").or_else(|| text(Ns::Dc, "title")).unwrap_or_default(),
        content: text(Ns::Content, "encoded")
            .or_else(|| node.first(Ns::Atom, "content").map(|n| source.atom_text(n)))
            .or_else(|| text(Ns::Rss, "encoded"))
            .unwrap_or_default(),
        summary: description(source, node),
        authors: authors(node),
        published,
        updated,
        categories: categories(node),
        enclosures: node.all(Ns::Rss, "enclosure").filter_map(|e| enclosure(e, "url")).collect(),
    }
}

fn description(source: &Source<'_>, node: &Node<'_>) -> Text {
    [(Ns::Rss, "description"), (Ns::Dc, "description"), (Ns::Atom, "summary"), (Ns::Itunes, "summary")]
        .into_iter()
        .filter_map(|(ns, name)| node.first(ns, name))
        .map(|n| if n.ns == Ns::Atom { source.atom_text(n) } else { source.rss_text(n) })
        .find(|t| !t.raw.trim().is_empty())
        .or_else(|| source.media_description(node))
        .unwrap_or_default()
}

/// The guid, and whether it is a permalink: yes unless the attribute says otherwise (RSS 2.0, `guid`).
fn guid(node: &Node<'_>) -> (String, IdOrigin, bool) {
    let Some(element) = node.all(Ns::Rss, "guid").find(|g| !g.text.trim().is_empty()) else {
        return (String::new(), IdOrigin::Guid, false);
    };
    let permalink = element.attribute("isPermaLink").is_none_or(|v| v.trim().eq_ignore_ascii_case("true"));
    (element.text.trim().to_owned(), IdOrigin::Guid, permalink)
}

fn link(node: &Node<'_>, permalink: bool) -> String {
    let written = node
        .all(Ns::Rss, "link")
        .map(|l| if l.text.trim().is_empty() { l.attribute("href").unwrap_or("") } else { l.text.as_ref() })
        .find(|l| !l.trim().is_empty());
    if let Some(written) = written {
        return address(written, node.base.as_deref());
    }
    alternate(node)
        .or_else(|| {
            let guid = node.text_of(Ns::Rss, "guid")?.trim();
            let is_web = guid.starts_with("http://") || guid.starts_with("https://");
            (permalink && is_web).then(|| guid.to_owned())
        })
        .unwrap_or_default()
}

fn links(node: &Node<'_>, first: &str) -> Vec<String> {
    let mut links = Vec::new();
    for l in node.all(Ns::Rss, "link") {
        add_link(&mut links, first, address(&l.text, l.base.as_deref()));
    }
    links
}

/// The authors by the first element that names any: `author`, `dc:creator`, `itunes:author`, `atom:author`.
fn authors(node: &Node<'_>) -> Vec<Author> {
    for (ns, name) in [(Ns::Rss, "author"), (Ns::Dc, "creator"), (Ns::Dc, "author"), (Ns::Itunes, "author")] {
        let found: Vec<Author> =
            node.all(ns, name).map(|a| a.text.trim()).filter(|t| !t.is_empty()).map(person).collect();
        if !found.is_empty() {
            return found;
        }
    }
    super::atom::authors(node)
}

fn categories(node: &Node<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for category in node.all(Ns::Rss, "category") {
        add_category(&mut out, &category.text);
    }
    for keywords in node.all(Ns::Itunes, "keywords") {
        for keyword in keywords.text.split(',') {
            add_category(&mut out, keyword);
        }
    }
    for subject in node.all(Ns::Dc, "subject") {
        add_category(&mut out, &subject.text);
    }
    for category in node.all(Ns::Atom, "category") {
        add_category(&mut out, category.attribute("term").unwrap_or(""));
    }
    out
}

/// `ttl`, `skipHours`, `skipDays` (RSS 2.0) and the syndication module (RSS 1.0).
pub(super) fn pace(channel: &Node<'_>) -> Pace {
    let ttl_minutes = channel.text_of(Ns::Rss, "ttl").and_then(|t| t.trim().parse::<u64>().ok()).filter(|m| *m > 0);
    let period = channel.text_of(Ns::Sy, "updatePeriod").map(|p| p.trim().to_ascii_lowercase());
    let frequency = channel.text_of(Ns::Sy, "updateFrequency").and_then(|f| f.trim().parse::<u64>().ok());
    let update_period_seconds = (period.is_some() || frequency.is_some())
        .then(|| {
            let name = period.as_deref().unwrap_or("daily");
            let seconds = PERIODS.iter().find(|(n, _)| *n == name)?.1;
            Some(seconds / frequency.filter(|f| *f > 0).unwrap_or(1))
        })
        .flatten()
        .filter(|s| *s > 0);
    Pace { ttl_minutes, update_period_seconds, skip_hours: skip_hours(channel), skip_days: skip_days(channel) }
}

fn skip_hours(channel: &Node<'_>) -> Vec<u8> {
    let mut hours: Vec<u8> = channel
        .all(Ns::Rss, "skipHours")
        .flat_map(|s| s.all(Ns::Rss, "hour"))
        .filter_map(|h| h.text.trim().parse::<u8>().ok())
        // RSS 0.91 counted to 24, which is midnight.
        .filter_map(|h| if h == 24 { Some(0) } else { (h < 24).then_some(h) })
        .collect();
    hours.sort_unstable();
    hours.dedup();
    hours
}

fn skip_days(channel: &Node<'_>) -> Vec<Weekday> {
    let mut days = Vec::new();
    for day in channel.all(Ns::Rss, "skipDays").flat_map(|s| s.all(Ns::Rss, "day")) {
        let day = match day.text.trim().to_ascii_lowercase().as_str() {
            "monday" => Weekday::Monday,
            "tuesday" => Weekday::Tuesday,
            "wednesday" => Weekday::Wednesday,
            "thursday" => Weekday::Thursday,
            "friday" => Weekday::Friday,
            "saturday" => Weekday::Saturday,
            "sunday" => Weekday::Sunday,
            _ => continue,
        };
        if !days.contains(&day) {
            days.push(day);
        }
    }
    days
}
