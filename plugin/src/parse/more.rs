//! What a feed says beyond the core fields: the extension `connector.rss.more`.
//!
//! Owns its members, their order and their bounds: media objects, podcast elements, source, rights, language, comments,
//! place, and every element of a namespace that nobody modelled, so that nothing is lost. It never enters a revision.

use super::fields::{address, length};
use super::outline::{Node, Ns};
use crate::canonical::{self, Object, Sink};
use crate::identity::clip;

/// Bytes of the whole object.
const MAX_BYTES: usize = 32 * 1_024;

/// Bytes of one text in it.
const MAX_TEXT_BYTES: usize = 2 * 1_024;

/// Media objects and thumbnails of one item.
const MAX_MEDIA: usize = 32;

/// Elements inside one unmodelled element, and levels of them.
const MAX_CHILDREN: usize = 64;
const MAX_LEVELS: usize = 4;

/// Addresses of namespaces with members of their own, in lower case without scheme.
const PODCAST: [&str; 2] =
    ["podcastindex.org/namespace/1.0", "github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md"];
const GEO: [&str; 3] = ["www.w3.org/2003/01/geo/wgs84_pos", "www.georss.org/georss", "www.opengis.net/gml"];

fn text(written: &str) -> &str {
    clip(written.trim(), MAX_TEXT_BYTES)
}

/// The object of one item; empty where there is nothing to say.
pub(super) fn item(node: &Node<'_>) -> String {
    let mut out = Object::new();
    out.list_unless_empty("media", &media(node), |out, m| out.put(m));
    let itunes = itunes(node);
    if itunes != "{}" {
        out.raw("itunes", &itunes);
    }
    out.list_unless_empty("podcast", &elements(node, |n| is_of(n, &PODCAST)), |out, e| out.put(e));
    let source = source(node);
    if source != "{}" {
        out.raw("source", &source);
    }
    let first = |names: &[(Ns, &str)]| names.iter().find_map(|(ns, name)| node.text_of(*ns, name)).unwrap_or("");
    let rights = first(&[(Ns::Dc, "rights"), (Ns::Atom, "rights"), (Ns::Rss, "rights"), (Ns::Rss, "copyright")]);
    out.text_unless_empty("rights", text(rights));
    let language = node.text_of(Ns::Dc, "language").or_else(|| node.attribute("xml:lang")).unwrap_or("");
    out.text_unless_empty("language", text(language));
    let comments = node.text_of(Ns::Rss, "comments").map(|c| address(c, node.base.as_deref())).unwrap_or_default();
    out.text_unless_empty("comments", text(&comments));
    out.list_unless_empty("geo", &elements(node, |n| is_of(n, &GEO)), |out, e| out.put(e));
    let other = elements(node, |n| n.ns == Ns::Other && !is_of(n, &PODCAST) && !is_of(n, &GEO));
    out.list_unless_empty("other", &other, |out, e| out.put(e));
    let out = out.finish();
    if out == "{}" { String::new() } else { out }
}

fn is_of(node: &Node<'_>, addresses: &[&str]) -> bool {
    let Some(namespace) = &node.namespace else { return false };
    let lower = namespace.trim().to_ascii_lowercase();
    let key = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://")).unwrap_or(&lower);
    addresses.contains(&key.trim_end_matches(['/', '#']))
}

/// Media objects of an item and of its groups (Media RSS 1.5.1): content first, then thumbnails.
fn media(node: &Node<'_>) -> Vec<String> {
    let groups = node.all(Ns::Media, "group");
    let holders: Vec<&Node<'_>> = std::iter::once(node).chain(groups).collect();
    let mut out = Vec::new();
    for (kind, name) in [("content", "content"), ("thumbnail", "thumbnail"), ("player", "player")] {
        for element in holders.iter().flat_map(|h| h.all(Ns::Media, name)) {
            if out.len() >= MAX_MEDIA {
                return out;
            }
            out.push(media_object(kind, element));
            for inner in element.all(Ns::Media, "thumbnail").take(MAX_MEDIA - out.len()) {
                out.push(media_object("thumbnail", inner));
            }
        }
    }
    out
}

fn media_object(kind: &str, element: &Node<'_>) -> String {
    let attribute = |name| text(element.attribute(name).unwrap_or(""));
    let mut json = Object::new();
    json.text("kind", kind);
    let url = element.attribute("url").map(|u| address(u, element.base.as_deref())).unwrap_or_default();
    json.text_unless_empty("url", text(&url));
    json.text_unless_empty("type", attribute("type"));
    json.text_unless_empty("medium", attribute("medium"));
    json.text_unless_empty("length", &length(element.attribute("fileSize")));
    if let Some(seconds) = duration(attribute("duration")) {
        json.raw("duration_seconds", &seconds.to_string());
    }
    json.text_unless_empty("width", attribute("width"));
    json.text_unless_empty("height", attribute("height"));
    json.text_unless_empty("title", text(element.text_of(Ns::Media, "title").unwrap_or("")));
    json.text_unless_empty("description", text(element.text_of(Ns::Media, "description").unwrap_or("")));
    json.finish()
}

/// The podcast elements of Apple that say something of an item.
fn itunes(node: &Node<'_>) -> String {
    let of = |name| text(node.text_of(Ns::Itunes, name).unwrap_or(""));
    let mut json = Object::new();
    if let Some(seconds) = duration(of("duration")) {
        json.raw("duration_seconds", &seconds.to_string());
    }
    for (member, name) in [
        ("title", "title"),
        ("subtitle", "subtitle"),
        ("author", "author"),
        ("season", "season"),
        ("episode", "episode"),
        ("episode_type", "episodeType"),
        ("explicit", "explicit"),
        ("block", "block"),
    ] {
        json.text_unless_empty(member, of(name));
    }
    let image = node.first(Ns::Itunes, "image").and_then(|i| i.attribute("href")).unwrap_or("");
    json.text_unless_empty("image", text(&address(image, node.base.as_deref())));
    json.finish()
}

/// Where a re-posted item came from: `source` of RSS 2.0, or of Atom (RFC 4287, section 4.2.11).
fn source(node: &Node<'_>) -> String {
    let mut json = Object::new();
    let Some(source) = node.first(Ns::Rss, "source").or_else(|| node.first(Ns::Atom, "source")) else {
        return json.finish();
    };
    let of = |name| source.text_of(Ns::Atom, name).or_else(|| source.text_of(Ns::Rss, name)).unwrap_or("");
    let base = source.base.as_deref();
    let title = of("title");
    json.text_unless_empty("title", text(if title.is_empty() { &source.text } else { title }));
    let link = source.attribute("url").or_else(|| {
        let links = source.all(Ns::Atom, "link").chain(source.all(Ns::Rss, "link"));
        links.filter(|l| l.attribute("rel").is_none_or(|r| r == "alternate")).find_map(|l| l.attribute("href"))
    });
    json.text_unless_empty("link", text(&address(link.unwrap_or(""), base)));
    json.text_unless_empty("id", text(of("id")));
    json.text_unless_empty("updated", text(of("updated")));
    json.text_unless_empty("rights", text(of("rights")));
    json.finish()
}

/// The elements that a rule chooses, as they stand, until the bound of the whole is reached.
fn elements(node: &Node<'_>, chosen: impl Fn(&Node<'_>) -> bool) -> Vec<String> {
    let mut left = MAX_BYTES;
    let mut out = Vec::new();
    for child in node.children.iter().filter(|c| chosen(c)) {
        let json = element(child, MAX_LEVELS);
        if json.len() > left {
            break;
        }
        left -= json.len();
        out.push(json);
    }
    out
}

fn element(node: &Node<'_>, levels: usize) -> String {
    let mut json = Object::new();
    json.text_unless_empty("namespace", text(node.namespace.as_deref().unwrap_or("")));
    json.text("name", text(&node.name));
    let attributes: Vec<_> = node.attributes.iter().filter(|(name, _)| !name.starts_with("xmlns")).collect();
    json.list_unless_empty("attributes", &attributes, |out, (name, value)| {
        out.put("[");
        canonical::string(out, text(name));
        out.put(",");
        canonical::string(out, text(value));
        out.put("]");
    });
    json.text_unless_empty("text", text(&node.text));
    if levels > 1 {
        let children = node.children.get(..node.children.len().min(MAX_CHILDREN)).unwrap_or(&[]);
        json.list_unless_empty("children", children, |out, child| out.put(&element(child, levels - 1)));
    }
    json.finish()
}

/// A duration in seconds: `S`, `M:SS` or `H:MM:SS` (Apple's podcast tags); anything else is none.
pub(super) fn duration(written: &str) -> Option<u64> {
    let parts: Vec<&str> = written.trim().split(':').collect();
    if parts.len() > 3 || parts.iter().any(|p| p.is_empty() || p.len() > 9 || !p.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let numbers: Vec<u64> = parts.iter().filter_map(|p| p.parse().ok()).collect();
    let below_sixty = numbers.iter().skip(1).all(|n| *n < 60);
    below_sixty.then(|| numbers.iter().fold(0, |sum, n| sum * 60 + n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::Notes;

    fn more(item_markup: &str) -> serde_json::Value {
        let document = format!(
            "<rss xmlns:media=\"http://search.yahoo.com/mrss/\" xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\" \
             xmlns:geo=\"http://www.w3.org/2003/01/geo/wgs84_pos#\" xmlns:x=\"https://x.example/ns\" \
             xmlns:podcast=\"https://podcastindex.org/namespace/1.0\"><channel><item>{item_markup}</item></channel></rss>"
        );
        let outline = super::super::outline::read(&document, None, &Notes::default(), false).unwrap();
        let json = item(&outline.items[0]);
        if json.is_empty() { serde_json::Value::Null } else { serde_json::from_str(&json).unwrap() }
    }

    #[test]
    fn durations_are_read_in_the_forms_of_the_tag_and_no_other() {
        for (written, seconds) in [
            ("95", Some(95)),
            (" 1:35 ", Some(95)),
            ("1:02:03", Some(3_723)),
            ("01:95", None),
            ("1:2:3:4", None),
            ("", None),
            ("1h", None),
            ("99999999999999999999", None),
            ("\u{661}:20", None),
        ] {
            assert_eq!(duration(written), seconds, "{written}");
        }
    }

    #[test]
    fn what_is_not_core_is_kept_in_its_order() {
        assert_eq!(more("<title>plain</title>"), serde_json::Value::Null);
        let all = more(
            "<media:group><media:content url=\"/a.mp4\" type=\"video/mp4\" fileSize=\"12\" duration=\"61\"/>\
             <media:thumbnail url=\"/t.jpg\" width=\"10\"/></media:group><itunes:duration>1:00</itunes:duration>\
             <itunes:episode>3</itunes:episode><podcast:chapters url=\"/c.json\" type=\"application/json\"/>\
             <source url=\"https://o.example/f\">Origin</source><comments>https://a.example/c</comments>\
             <geo:lat>1.5</geo:lat><x:a k=\"v\">t<x:b>u</x:b></x:a>",
        );
        let expected = serde_json::json!({
            "media": [
                {"kind": "content", "url": "/a.mp4", "type": "video/mp4", "length": "12", "duration_seconds": 61},
                {"kind": "thumbnail", "url": "/t.jpg", "width": "10"},
            ],
            "itunes": {"duration_seconds": 60, "episode": "3"},
            "podcast": [{
                "namespace": "https://podcastindex.org/namespace/1.0", "name": "chapters",
                "attributes": [["url", "/c.json"], ["type", "application/json"]],
            }],
            "source": {"title": "Origin", "link": "https://o.example/f"},
            "comments": "https://a.example/c",
            "geo": [{"namespace": "http://www.w3.org/2003/01/geo/wgs84_pos#", "name": "lat", "text": "1.5"}],
            "other": [{
                "namespace": "https://x.example/ns", "name": "a", "attributes": [["k", "v"]], "text": "t",
                "children": [{"namespace": "https://x.example/ns", "name": "b", "text": "u"}],
            }],
        });
        assert_eq!(all, expected);
    }

    #[test]
    fn it_is_bounded() {
        let flood = format!("<x:a>{}</x:a>", "t".repeat(MAX_TEXT_BYTES + 1)).repeat(100);
        let all = more(&flood);
        assert_eq!(all["other"][0]["text"].as_str().unwrap().len(), MAX_TEXT_BYTES);
        assert!(all.to_string().len() <= MAX_BYTES + 1_024);
    }
}
