//! HTML that a page may show.
//!
//! Owns the allowlist of elements and attributes, lazy images, the placeholder of embedded videos. It is written from the
//! bounded tree; ammonia reads it again and is the last gate, so that whatever two readers see differently dies there.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::address::{Addresses, is_video_id, video_page};
use super::document::is_pixel;
use super::entry::escape;
use super::tree::{Id, Kind, Tree, is_void};

/// Elements that stay, in order.
const ELEMENTS: [&str; 57] = [
    "a",
    "abbr",
    "b",
    "bdi",
    "bdo",
    "blockquote",
    "br",
    "caption",
    "cite",
    "code",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "small",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "wbr",
];

/// What links to pages of strangers say of themselves.
const REL: &str = "noopener nofollow ugc";

static GATE: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
    let mut gate = ammonia::Builder::empty();
    let of = |names: &[&'static str]| names.iter().copied().collect::<HashSet<_>>();
    gate.tags(of(&ELEMENTS))
        .generic_attributes(of(&["dir", "lang"]))
        .tag_attributes(HashMap::from([
            ("a", of(&["href", "title"])),
            ("img", of(&["src", "alt", "title", "width", "height", "loading", "referrerpolicy"])),
            ("ol", of(&["start"])),
            ("td", of(&["colspan", "rowspan"])),
            ("th", of(&["colspan", "rowspan"])),
            ("div", of(&["data-video-provider", "data-video-id"])),
        ]))
        .url_schemes(of(&["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some(REL));
    gate
});

/// Writes a tree.
#[must_use]
pub fn write(tree: &Tree<'_>, addresses: &Addresses) -> String {
    let mut out = String::new();
    Writer { tree, addresses }.children(&mut out, 0, false);
    GATE.clean(&out).to_string()
}

struct Writer<'w, 'a> {
    tree: &'w Tree<'a>,
    addresses: &'w Addresses,
}

impl Writer<'_, '_> {
    fn children(&self, out: &mut String, id: Id, in_link: bool) {
        for child in self.tree.children(id) {
            match self.tree.node(*child).map(|n| &n.kind) {
                Some(Kind::Text(text)) => escape(out, text),
                Some(Kind::Element(name, _)) => self.element(out, *child, name, in_link),
                None => {}
            }
        }
    }

    fn element(&self, out: &mut String, id: Id, name: &str, in_link: bool) {
        match name {
            "img" => self.image(out, id),
            "iframe" => self.video(out, id),
            "a" => match self.value(id, "href").and_then(|h| self.addresses.link(&h)) {
                Some(href) if !in_link => {
                    out.push_str("<a");
                    attribute(out, "href", &href);
                    self.copy(out, id, &["title"]);
                    out.push('>');
                    self.children(out, id, true);
                    out.push_str("</a>");
                }
                // A link that leads nowhere, and one inside of another, is its text.
                _ => self.children(out, id, in_link),
            },
            name if ELEMENTS.binary_search(&name).is_ok() => {
                out.push('<');
                out.push_str(name);
                match name {
                    "ol" => self.numbers(out, id, &["start"]),
                    "td" | "th" => self.numbers(out, id, &["colspan", "rowspan"]),
                    "div" => self.placeholder(out, id),
                    _ => {}
                }
                self.direction(out, id);
                out.push('>');
                if is_void(name) {
                    return;
                }
                let from = out.len();
                self.children(out, id, in_link);
                if name == "pre" {
                    // A reader takes one line feed off the start; another reading would take the next.
                    let inner = out.split_off(from);
                    out.push_str(inner.trim_start_matches('\n'));
                }
                out.push_str("</");
                out.push_str(name);
                out.push('>');
            }
            _ => self.children(out, id, in_link),
        }
    }

    fn value(&self, id: Id, name: &str) -> Option<String> {
        self.tree.attribute(id, name).map(std::borrow::Cow::into_owned)
    }

    fn copy(&self, out: &mut String, id: Id, names: &[&str]) {
        for name in names {
            if let Some(value) = self.value(id, name) {
                attribute(out, name, &value);
            }
        }
    }

    fn numbers(&self, out: &mut String, id: Id, names: &[&str]) {
        for name in names {
            let number =
                self.value(id, name).filter(|v| (1..=5).contains(&v.len()) && v.bytes().all(|b| b.is_ascii_digit()));
            if let Some(number) = number {
                attribute(out, name, &number);
            }
        }
    }

    fn direction(&self, out: &mut String, id: Id) {
        if let Some(dir) = self.value(id, "dir").map(|d| d.to_ascii_lowercase())
            && matches!(dir.as_str(), "ltr" | "rtl" | "auto")
        {
            attribute(out, "dir", &dir);
        }
        let is_tag =
            |l: &String| (1..=35).contains(&l.len()) && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if let Some(lang) = self.value(id, "lang").filter(is_tag) {
            attribute(out, "lang", &lang);
        }
    }

    fn image(&self, out: &mut String, id: Id) {
        if is_pixel(self.tree, self.addresses, id) {
            return;
        }
        let Some(src) = self.value(id, "src").and_then(|s| self.addresses.image(&s)) else {
            escape(out, &self.value(id, "alt").unwrap_or_default());
            return;
        };
        out.push_str("<img");
        attribute(out, "src", &src);
        self.copy(out, id, &["alt", "title"]);
        self.numbers(out, id, &["width", "height"]);
        out.push_str(" loading=\"lazy\" referrerpolicy=\"no-referrer\">");
    }

    /// An embedded video becomes a link that a page may turn into a player.
    fn video(&self, out: &mut String, id: Id) {
        let Some((provider, video)) = self.value(id, "src").and_then(|s| self.addresses.video(&s)) else { return };
        let Some(page) = video_page(provider, &video) else { return };
        out.push_str("<div");
        attribute(out, "data-video-provider", provider);
        attribute(out, "data-video-id", &video);
        out.push_str("><a");
        attribute(out, "href", &page);
        out.push('>');
        escape(out, &page);
        out.push_str("</a></div>");
    }

    /// Keeps the marks of a placeholder, so that a second rendering is the first.
    fn placeholder(&self, out: &mut String, id: Id) {
        let (provider, video) = (self.value(id, "data-video-provider"), self.value(id, "data-video-id"));
        if let (Some(provider), Some(video)) = (provider, video)
            && video_page(&provider, &video).is_some()
            && is_video_id(&video)
        {
            attribute(out, "data-video-provider", &provider);
            attribute(out, "data-video-id", &video);
        }
    }
}

fn attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    escape(out, value);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_stand_in_order() {
        assert!(ELEMENTS.is_sorted());
    }
}
