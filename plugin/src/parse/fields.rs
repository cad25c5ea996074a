//! What the XML dialects share in reading a field: addresses, persons, texts with their type.
//!
//! Owns the rules that are the same in RSS and Atom. Must not know which dialect it serves.

use url::Url;

use super::outline::{Node, Ns};
use crate::date;
use crate::identity::{MAX_CATEGORIES, MAX_LIST};
use crate::model::{Author, Enclosure, Markup, Text};
use crate::notes::{Code, Notes};

/// An address as written, made absolute where it is relative and the base is known.
pub(super) fn address(written: &str, base: Option<&Url>) -> String {
    let trimmed = written.trim();
    if trimmed.is_empty() {
        return String::new();
    }
    match (Url::parse(trimmed), base) {
        (Err(url::ParseError::RelativeUrlWithoutBase), Some(base)) => {
            base.join(trimmed).map_or_else(|_| trimmed.to_owned(), String::from)
        }
        // Letters beyond ASCII and white space have one form as a URI (RFC 3987, section 3.1; WHATWG URL).
        (Ok(url), _) if trimmed.bytes().any(|b| !b.is_ascii() || b.is_ascii_whitespace()) => url.into(),
        _ => trimmed.to_owned(),
    }
}

/// The address that relative links start from, without its query, which may hold a secret and decides nothing.
pub(super) fn base_address(base: Option<&Url>) -> String {
    let Some(base) = base else { return String::new() };
    let mut shown = base.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    crate::identity::clip(shown.as_str(), crate::identity::MAX_METADATA_BYTES).to_owned()
}

/// A link as a base for relative addresses; only those of the web are one.
pub(super) fn web_base(link: &str) -> Option<Url> {
    Url::parse(link).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// A person as RSS 2.0 writes one: `mail@example.org (Name)`, also `Name <mail@example.org>`, `Name (mail)`,
/// a bare mail address or a bare name.
pub(super) fn person(written: &str) -> Author {
    let text = written.trim();
    let looks_like_mail = |s: &str| {
        let s = s.trim().trim_start_matches("mailto:");
        s.split_once('@').is_some_and(|(local, host)| {
            !local.is_empty() && host.contains('.') && !s.contains(char::is_whitespace) && !host.contains('@')
        })
    };
    let mail = |s: &str| s.trim().trim_start_matches("mailto:").to_owned();
    for (open, close) in [('(', ')'), ('<', '>')] {
        if let Some((outside, inside)) = text.strip_suffix(close).and_then(|t| t.rsplit_once(open)) {
            if looks_like_mail(outside) {
                return Author { name: inside.trim().to_owned(), email: mail(outside) };
            }
            if looks_like_mail(inside) {
                return Author { name: outside.trim().trim_matches('"').trim().to_owned(), email: mail(inside) };
            }
        }
    }
    if looks_like_mail(text) {
        return Author { name: String::new(), email: mail(text) };
    }
    // "mail@example.org Name": the mail is the first or the last word.
    for (candidate, name) in
        [text.split_once(char::is_whitespace), text.rsplit_once(char::is_whitespace).map(|(a, b)| (b, a))]
            .into_iter()
            .flatten()
    {
        if looks_like_mail(candidate) {
            return Author { name: name.trim().to_owned(), email: mail(candidate) };
        }
    }
    Author { name: text.to_owned(), email: String::new() }
}

/// A language tag; its parts are joined by hyphens (RFC 5646, section 2.1), which some programs write as underscores.
pub(super) fn language_tag(written: &str) -> String {
    written.trim().replace('_', "-")
}

/// A length in bytes: digits only, of a number that fits 64 bits, else absent (RSS 2.0, `enclosure`).
pub(super) fn length(written: Option<&str>) -> String {
    let digits = written.unwrap_or("").trim();
    if digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<u64>().is_ok() {
        digits.to_owned()
    } else {
        String::new()
    }
}

/// Adds a link unless it is the first one, there already, or beyond those that a record keeps.
pub(super) fn add_link(links: &mut Vec<String>, first: &str, link: String) {
    if links.len() < MAX_LIST && !link.is_empty() && link != first && !links.contains(&link) {
        links.push(link);
    }
}

/// An enclosure from an element with an address, a type and a length.
pub(super) fn enclosure(node: &Node<'_>, url_attribute: &str) -> Option<Enclosure> {
    let url = address(node.attribute(url_attribute)?, node.base.as_deref());
    if url.is_empty() {
        return None;
    }
    Some(Enclosure {
        url,
        media_type: node.attribute("type").unwrap_or("").trim().to_owned(),
        length: length(node.attribute("length")),
    })
}

/// Adds a category unless it is blank, there already, or beyond those that a record keeps.
pub(super) fn add_category(categories: &mut Vec<String>, written: &str) {
    let trimmed = written.trim();
    if categories.len() < MAX_CATEGORIES && !trimmed.is_empty() && !categories.iter().any(|c| c == trimmed) {
        categories.push(trimmed.to_owned());
    }
}

/// The markup inside an element as an XHTML fragment, a single wrapping `div` taken off (RFC 4287, 3.1.1.3).
pub(super) fn xhtml(document: &str, node: &Node<'_>) -> String {
    let inner = document.get(node.inner.clone()).unwrap_or("").trim();
    let inner = if node.needs_rewrite { rewrite(inner) } else { inner.to_owned() };
    unwrap_div(&inner).to_owned()
}

/// Takes off a `div` that holds everything else.
fn unwrap_div(inner: &str) -> &str {
    let name_ends = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c == '>' || c == '/');
    if !inner.strip_prefix("<div").is_some_and(|r| name_ends(r.chars().next())) {
        return inner;
    }
    let Some(open_end) = crate::html::tokens::Tokens::new(inner, true).next().and_then(|t| match t {
        crate::html::tokens::Token::Start { name, attributes, self_closing } if !self_closing => {
            Some("<".len() + name.len() + attributes.len() + ">".len())
        }
        _ => None,
    }) else {
        return inner;
    };
    let Some(body) = inner.get(open_end..).and_then(|b| b.trim_end().strip_suffix("</div>")) else { return inner };
    // The last end tag must belong to the first start tag: the depth never falls to zero before it.
    let mut depth = 0_usize;
    for token in crate::html::tokens::Tokens::new(body, true) {
        match token {
            crate::html::tokens::Token::Start { name: "div", self_closing: false, .. } => depth += 1,
            crate::html::tokens::Token::End("div") => match depth.checked_sub(1) {
                Some(d) => depth = d,
                None => return inner,
            },
            _ => {}
        }
    }
    if depth == 0 { body.trim() } else { inner }
}

/// Writes inner markup anew: prefixes of XHTML elements go, CDATA becomes escaped text.
fn rewrite(inner: &str) -> String {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(inner);
    reader.config_mut().check_end_names = false;
    let mut out = String::with_capacity(inner.len());
    loop {
        match reader.read_event() {
            Ok(Event::Start(e)) => tag(&mut out, &e, ">"),
            Ok(Event::Empty(e)) => tag(&mut out, &e, "/>"),
            Ok(Event::End(e)) => {
                out.push_str("</");
                out.push_str(e.local_name().as_ref());
                out.push('>');
            }
            Ok(Event::Text(t)) => out.push_str(&t),
            Ok(Event::CData(t)) => out.push_str(&quick_xml::escape::partial_escape(&*t)),
            Ok(Event::GeneralRef(r)) => {
                out.push('&');
                out.push_str(&r);
                out.push(';');
            }
            Ok(Event::Eof) | Err(_) => return out,
            Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => {}
        }
    }
}

fn tag(out: &mut String, start: &quick_xml::events::BytesStart<'_>, end: &str) {
    out.push('<');
    out.push_str(start.local_name().as_ref());
    out.push_str(start.attributes_raw());
    out.push_str(end);
}

/// What every field of a document is read with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'s> {
    pub(super) document: &'s str,
    pub(super) notes: &'s Notes,
    /// The link of the feed.
    pub(super) feed_link: &'s str,
}

impl Source<'_> {
    /// A text of RSS, CDATA markers that were escaped taken off.
    pub(super) fn rss_text(&self, node: &Node<'_>) -> Text {
        self.unwrapped(rss_text(self.document, node), node)
    }

    /// A text construct of Atom, decoded where it is in base64.
    pub(super) fn atom_text(&self, node: &Node<'_>) -> Text {
        if let Some(text) = base64_text(node) {
            self.notes.add(Code::DecodedBase64, Some(node.at), &node.name);
            return text;
        }
        self.unwrapped(atom_text(self.document, node), node)
    }

    /// A generator that escapes its own CDATA markers leaves them in the text.
    fn unwrapped(&self, text: Text, node: &Node<'_>) -> Text {
        let inner = text.raw.trim().strip_prefix("<![CDATA[").and_then(|t| t.strip_suffix("]]>"));
        match inner.filter(|inner| !inner.contains("<![CDATA[")) {
            Some(inner) => {
                self.notes.add(Code::UnwrappedCdata, Some(node.at), &node.name);
                Text { raw: inner.to_owned(), ..text }
            }
            None => text,
        }
    }

    /// The date that an element holds.
    pub(super) fn date(&self, node: &Node<'_>) -> Option<i64> {
        noted_date(&node.text, Some(node), self.notes)
    }

    /// The description of an item's media (Media RSS 1.5.1): plain text unless it says otherwise.
    pub(super) fn media_description(&self, node: &Node<'_>) -> Option<Text> {
        let holders = std::iter::once(node).chain(node.all(Ns::Media, "group")).chain(node.all(Ns::Media, "content"));
        let element = holders.flat_map(|h| h.all(Ns::Media, "description")).find(|d| !d.text.trim().is_empty())?;
        let is_html = element.attribute("type").is_some_and(|t| t.trim().eq_ignore_ascii_case("html"));
        let markup = if is_html { Markup::Html } else { Markup::Text };
        Some(Text { raw: element.text.to_string(), markup })
    }

    /// Where relative addresses of an item start: its `xml:base`, else its link, else the link of the feed, else the
    /// address that the document came from.
    pub(super) fn base_address(&self, node: &Node<'_>, link: &str) -> String {
        if node.has_base {
            return base_address(node.base.as_deref());
        }
        base_address(web_base(link).or_else(|| web_base(self.feed_link)).as_ref().or(node.base.as_deref()))
    }
}

/// A written date, with notes where it is none or its zone had to be guessed.
pub(super) fn noted_date(written: &str, node: Option<&Node<'_>>, notes: &Notes) -> Option<i64> {
    if written.trim().is_empty() {
        return None;
    }
    let (at, name) = (node.map(|n| n.at), node.map_or("", |n| &n.name));
    let Some(read) = date::read(written) else {
        notes.add(Code::DateUnparsed, at, name);
        return None;
    };
    if read.zone_guessed {
        notes.add(Code::DateZoneGuessed, at, name);
    }
    Some(read.seconds)
}

/// The text of an Atom construct that is in base64: by `mode` (Atom 0.3), or content of a media type that is neither
/// text nor XML (RFC 4287, section 4.1.3.3). Data that is no text is not decoded.
fn base64_text(node: &Node<'_>) -> Option<Text> {
    use base64::Engine as _;
    let declared = node.attribute("type").unwrap_or("").trim().to_ascii_lowercase();
    let by_mode = node.attribute("mode").is_some_and(|m| m.trim().eq_ignore_ascii_case("base64"));
    let by_type = declared.contains('/')
        && !declared.starts_with("text/")
        && !declared.ends_with("/xml")
        && !declared.ends_with("+xml");
    if !(by_mode || by_type) || node.element_count > 0 {
        return None;
    }
    let compact: String = node.text.chars().filter(|c| !c.is_whitespace()).collect();
    let raw = String::from_utf8(base64::engine::general_purpose::STANDARD.decode(compact).ok()?).ok()?;
    let readable = !raw.is_empty() && raw.chars().all(|c| !c.is_control() || c.is_whitespace());
    let markup = if declared == "text/plain" { Markup::Text } else { Markup::Html };
    readable.then_some(Text { raw, markup })
}

/// An Atom text construct or content (RFC 4287, sections 3.1 and 4.1.3).
fn atom_text(document: &str, node: &Node<'_>) -> Text {
    let declared = node.attribute("type").unwrap_or("").trim().to_ascii_lowercase();
    // Atom 0.3 says by `mode` how the content is written; its default is XML.
    let mode = node.attribute("mode").unwrap_or("").trim().to_ascii_lowercase();
    let holds_elements = node.element_count > 0;
    let xhtml_type = matches!(declared.as_str(), "xhtml" | "application/xhtml+xml")
        || declared.ends_with("+xml")
        || declared.ends_with("/xml");
    if holds_elements && mode != "escaped" {
        return Text { raw: xhtml(document, node), markup: Markup::Xhtml };
    }
    let markup = match declared.as_str() {
        "html" | "text/html" => Markup::Html,
        "" | "text" | "text/plain" => Markup::Text,
        _ if xhtml_type => Markup::Xhtml,
        _ => Markup::Text,
    };
    let raw = if markup == Markup::Xhtml && !holds_elements { xhtml(document, node) } else { node.text.to_string() };
    Text { raw, markup }
}

/// The text of an element of RSS, which may hold HTML; child elements, which are a mistake, count as markup.
pub(super) fn rss_text(document: &str, node: &Node<'_>) -> Text {
    if node.element_count > 0 && node.ns != Ns::Other {
        return Text { raw: xhtml(document, node), markup: Markup::Html };
    }
    Text { raw: node.text.to_string(), markup: Markup::Html }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persons_are_read_in_every_written_form() {
        let table = [
            ("ed@example.com (Eve Dorn)", "Eve Dorn", "ed@example.com"),
            ("Eve Dorn <ed@example.com>", "Eve Dorn", "ed@example.com"),
            ("\"Eve Dorn\" <ed@example.com>", "Eve Dorn", "ed@example.com"),
            ("Eve Dorn (ed@example.com)", "Eve Dorn", "ed@example.com"),
            ("ed@example.com", "", "ed@example.com"),
            ("mailto:ed@example.com", "", "ed@example.com"),
            ("ed@example.com Eve Dorn", "Eve Dorn", "ed@example.com"),
            (" Eve Dorn ", "Eve Dorn", ""),
            ("Eve (the editor)", "Eve (the editor)", ""),
            ("@eve", "@eve", ""),
        ];
        for (written, name, email) in table {
            assert_eq!(person(written), Author { name: name.into(), email: email.into() }, "{written}");
        }
    }

    #[test]
    fn addresses_stay_as_written_unless_relative() {
        let base = Url::parse("https://a.example/dir/feed.xml").ok();
        let table = [
            (" https://b.example/x ", "https://b.example/x"),
            ("HTTP://B.example", "HTTP://B.example"),
            ("post/1", "https://a.example/dir/post/1"),
            ("/post?x=1#y", "https://a.example/post?x=1#y"),
            ("//c.example/z", "https://c.example/z"),
            ("urn:x:1", "urn:x:1"),
            ("", ""),
        ];
        for (written, expected) in table {
            assert_eq!(address(written, base.as_ref()), expected, "{written}");
        }
        assert_eq!(address("post/1", None), "post/1");
    }

    #[test]
    fn a_div_around_everything_is_taken_off_and_no_other() {
        let table = [
            ("<div>a<div>b</div></div>", "a<div>b</div>"),
            ("<div xmlns=\"http://www.w3.org/1999/xhtml\">Small: <em>&lt;</em></div>", "Small: <em>&lt;</em>"),
            ("<div>a</div><div>b</div>", "<div>a</div><div>b</div>"),
            ("<divx>a</divx>", "<divx>a</divx>"),
            ("a<div>b</div>", "a<div>b</div>"),
            ("<div/>", "<div/>"),
        ];
        for (inner, expected) in table {
            assert_eq!(unwrap_div(inner), expected, "{inner}");
        }
    }

    #[test]
    fn rewriting_takes_prefixes_and_cdata_off() {
        assert_eq!(
            rewrite("<h:p a=\"1\">x &amp; <![CDATA[<b>]]><h:br/></h:p>"),
            "<p a=\"1\">x &amp; &lt;b&gt;<br/></p>"
        );
    }
}
