//! The outline of an XML feed: its elements down to the level where fields stand, with raw strings.
//!
//! Owns one pass over the XML events. feed-rs trims, re-writes or loses some of the strings that identity is
//! made of; this is the way to the raw ones. Each [`Node`] has its namespace, attributes, decoded text and the
//! place of its inner markup in the document. Must not know what a field means.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use url::Url;

use super::dtd::Entities;
use super::{MAX_ITEMS, ParseError, Stage};
use crate::notes::{Code, Notes};

/// Elements whose children are fields of their own. The children of every other field are markup and stay in its text.
const CONTAINERS: [&str; 9] =
    ["channel", "item", "entry", "author", "contributor", "source", "image", "skiphours", "skipdays"];

/// Fields of a whole document: a thousand items with a hundred fields each. The rest is passed over.
const MAX_NODES: usize = 100_000;

/// Attributes of one element that are read; real ones have at most a dozen.
const MAX_ATTRIBUTES: usize = 64;

/// Bytes of a namespace address that is told apart; the known ones have at most 60.
const MAX_NAMESPACE_BYTES: usize = 128;

/// Bytes of an `xml:base` that is followed.
const MAX_BASE_BYTES: usize = 8 * 1_024;

/// Fields of one item or of the channel; a document with more is hostile, and the rest is passed over.
const MAX_FIELDS: usize = 4_096;

/// Bytes of a reference in an attribute.
const MAX_REFERENCE_BYTES: usize = 64;

/// Elements of a document, those inside of markup too: feeds of ten megabytes have some three hundred thousand, and each
/// costs time.
const MAX_ELEMENTS: usize = 1_000_000;

/// Depth of nesting; deeper documents are refused (each level costs a name on the reader's stack).
const MAX_DEPTH: usize = 512;

/// Namespaces that fields are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ns {
    /// No namespace, and those of RSS itself.
    Rss,
    /// Atom 1.0 and 0.3.
    Atom,
    /// RDF syntax.
    Rdf,
    /// `content:encoded`.
    Content,
    /// Dublin Core elements.
    Dc,
    /// Dublin Core terms.
    DcTerms,
    /// iTunes podcast.
    Itunes,
    /// Syndication module.
    Sy,
    /// XHTML.
    Xhtml,
    /// Media RSS.
    Media,
    /// Any other.
    Other,
}

impl Ns {
    /// The namespace by its address, without regard to scheme and letter case: both are often wrong.
    fn of_address(address: &str) -> Self {
        if address.len() > MAX_NAMESPACE_BYTES {
            return Self::Other;
        }
        let lower = address.trim().to_ascii_lowercase();
        let key = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://")).unwrap_or(&lower);
        match key.trim_end_matches(['/', '#']) {
            "purl.org/rss/1.0"
            | "my.netscape.com/rdf/simple/0.9"
            | "channel.netscape.com/rdf/simple/0.9"
            | "my.netscape.com/publish/formats/rss-0.91.dtd"
            | "purl.org/net/rss1.1"
            | "backend.userland.com/rss"
            | "backend.userland.com/rss2"
            | "backend.userland.com/rss091"
            | "blogs.law.harvard.edu/tech/rss"
            | "cyber.law.harvard.edu/rss/rss.html" => Self::Rss,
            "www.w3.org/2005/atom" | "purl.org/atom/ns" => Self::Atom,
            "www.w3.org/1999/02/22-rdf-syntax-ns" => Self::Rdf,
            "purl.org/rss/1.0/modules/content" => Self::Content,
            "purl.org/dc/elements/1.1" | "purl.org/dc/elements/1.0" => Self::Dc,
            "purl.org/dc/terms" => Self::DcTerms,
            "www.itunes.com/dtds/podcast-1.0.dtd" | "example.com/dtds/podcast-1.0.dtd" => Self::Itunes,
            "purl.org/rss/1.0/modules/syndication" => Self::Sy,
            "www.w3.org/1999/xhtml" => Self::Xhtml,
            "search.yahoo.com/mrss" => Self::Media,
            _ => Self::Other,
        }
    }

    /// The namespace that a prefix usually stands for, where the document forgot to declare it.
    fn of_prefix(prefix: &str) -> Self {
        const PREFIXES: [(&str, Ns); 9] = [
            ("atom", Ns::Atom),
            ("rdf", Ns::Rdf),
            ("content", Ns::Content),
            ("dc", Ns::Dc),
            ("dcterms", Ns::DcTerms),
            ("itunes", Ns::Itunes),
            ("sy", Ns::Sy),
            ("xhtml", Ns::Xhtml),
            ("media", Ns::Media),
        ];
        PREFIXES.iter().find(|(name, _)| name.eq_ignore_ascii_case(prefix)).map_or(Self::Other, |(_, ns)| *ns)
    }

    /// Whether its elements hold others that are fields of their own: modules that nobody else reads.
    fn nests(self) -> bool {
        matches!(self, Self::Media | Self::Itunes | Self::Other)
    }
}

/// An element with what a reader of fields wants of it.
#[derive(Debug, Clone)]
pub(super) struct Node<'d> {
    /// Namespace.
    pub(super) ns: Ns,
    /// Its address, or the prefix that was never declared, where no reader of fields knows it.
    pub(super) namespace: Option<Rc<str>>,
    /// Where its tag begins.
    pub(super) at: usize,
    /// Local name.
    pub(super) name: Cow<'d, str>,
    /// Attributes: qualified name and decoded value.
    pub(super) attributes: Vec<(Cow<'d, str>, String)>,
    /// Decoded text, CDATA included, that stands directly in the element, trimmed where it is not CDATA.
    pub(super) text: Cow<'d, str>,
    /// Where the inner markup stands in the document.
    pub(super) inner: Range<usize>,
    /// Elements inside, nodes or not.
    pub(super) element_count: usize,
    /// The inner markup has prefixed XHTML elements or CDATA, so it cannot be taken as it stands.
    pub(super) needs_rewrite: bool,
    /// The document says the base address, here or further out.
    pub(super) has_base: bool,
    /// The base address in force (`xml:base`).
    pub(super) base: Option<Rc<Url>>,
    /// Fields inside.
    pub(super) children: Vec<Node<'d>>,
}

impl Node<'_> {
    /// The value of an attribute, by its name without regard to letter case.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The children of that namespace and name.
    pub(super) fn all(&self, ns: Ns, name: &str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |c| c.ns == ns && c.name.eq_ignore_ascii_case(name))
    }

    /// The first child of that namespace and name.
    pub(super) fn first(&self, ns: Ns, name: &str) -> Option<&Self> {
        self.all(ns, name).next()
    }

    /// The text of the first such child that has any.
    pub(super) fn text_of(&self, ns: Ns, name: &str) -> Option<&str> {
        self.all(ns, name).map(|c| c.text.as_ref()).find(|t| !t.is_empty())
    }
}

/// A document as its outline.
#[derive(Debug)]
pub(super) struct Outline<'d> {
    /// The root element, with the channel and its fields, but without items.
    pub(super) root: Node<'d>,
    /// The root's namespace address, as written.
    pub(super) root_namespace: Option<String>,
    /// `item` and `entry` elements in document order.
    pub(super) items: Vec<Node<'d>>,
    /// Items of the document, kept or not.
    pub(super) items_in_document: usize,
    /// Where the root element ends.
    pub(super) end: usize,
}

/// Where a piece of text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Text,
    CData,
    Reference,
}

/// An element that is still open.
struct Open<'d> {
    node: Node<'d>,
    text: TextBuilder<'d>,
    base: Option<Rc<Url>>,
}

/// Collects the text of an element; white space at its ends goes unless CDATA or a reference gave it.
#[derive(Default)]
struct TextBuilder<'d> {
    text: Cow<'d, str>,
    protected: usize,
}

impl<'d> TextBuilder<'d> {
    fn push(&mut self, piece: Cow<'d, str>) {
        if self.text.is_empty() {
            self.text = piece;
        } else {
            self.text.to_mut().push_str(&piece);
        }
    }

    fn text(&mut self, piece: Cow<'d, str>) {
        if self.text.is_empty() {
            let trimmed = match piece {
                Cow::Borrowed(s) => Cow::Borrowed(s.trim_start()),
                Cow::Owned(s) => Cow::Owned(s.trim_start().to_owned()),
            };
            self.push(trimmed);
        } else {
            self.push(piece);
        }
    }

    fn protected(&mut self, piece: Cow<'d, str>) {
        self.push(piece);
        self.protected = self.text.len();
    }

    fn finish(self) -> Cow<'d, str> {
        let tail = self.text.get(self.protected..).unwrap_or("");
        let keep = self.protected + tail.trim_end().len();
        match self.text {
            Cow::Borrowed(s) => Cow::Borrowed(s.get(..keep).unwrap_or(s)),
            Cow::Owned(mut s) => {
                s.truncate(keep);
                Cow::Owned(s)
            }
        }
    }
}

/// Reads a document that is decoded already. What stands behind the root element is passed over.
///
/// `lenient` takes attributes that are not well-formed for absent; else they are an error, so that they are repaired.
///
/// # Errors
/// Stage `xml` where it is not well-formed, `truncated` where it ends too early, `dtd` where its entities pass their bound.
pub(super) fn read<'d>(
    document: &'d str,
    base: Option<&Url>,
    notes: &Notes,
    lenient: bool,
) -> Result<Outline<'d>, ParseError> {
    Builder::new(document, base, notes, lenient).run()
}

struct Builder<'d, 'n> {
    notes: &'n Notes,
    lenient: bool,
    entities: Entities,
    /// Addresses that came up, with what they stand for.
    addresses: Vec<(String, Ns)>,
    /// A namespace that nobody knows, but whose root element is that of a feed: it is read as the feed's own.
    own_namespace: Option<(Rc<str>, Ns)>,
    /// The namespace address that came last, since the next is mostly the same.
    namespace: Option<Rc<str>>,
    document: &'d str,
    reader: NsReader<&'d [u8]>,
    base: Option<Rc<Url>>,
    nodes: usize,
    elements: usize,
    stack: Vec<Open<'d>>,
    depth: usize,
    root: Option<Node<'d>>,
    root_namespace: Option<String>,
    items: Vec<Node<'d>>,
    items_in_document: usize,
}

impl<'d, 'n> Builder<'d, 'n> {
    fn new(document: &'d str, base: Option<&Url>, notes: &'n Notes, lenient: bool) -> Self {
        let mut reader = NsReader::from_str(document);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.trim_markup_names_in_closing_tags = true;
        Self {
            notes,
            lenient,
            entities: Entities::default(),
            addresses: Vec::new(),
            own_namespace: None,
            namespace: None,
            document,
            reader,
            base: base.map(|b| Rc::new(b.clone())),
            nodes: 0,
            elements: 0,
            stack: Vec::new(),
            depth: 0,
            root: None,
            root_namespace: None,
            items: Vec::new(),
            items_in_document: 0,
        }
    }

    fn run(mut self) -> Result<Outline<'d>, ParseError> {
        loop {
            let before = self.position();
            let (namespace, event) = match self.reader.read_resolved_event() {
                Ok((resolved, event)) => {
                    let namespace = match resolved {
                        ResolveResult::Bound(address) => {
                            if self.root.is_none() && self.stack.is_empty() && matches!(event, Event::Start(_)) {
                                self.root_namespace = Some(address.as_ref().to_owned());
                            }
                            let ns = known(&mut self.addresses, address.as_ref());
                            let ns = match &self.own_namespace {
                                Some((own, meant)) if ns == Ns::Other && **own == *address.as_ref() => *meant,
                                _ => ns,
                            };
                            if ns.nests() && self.namespace.as_deref() != Some(address.as_ref()) {
                                self.namespace = Some(address.as_ref().into());
                            }
                            ns
                        }
                        ResolveResult::Unknown(prefix) => {
                            let prefix = std::str::from_utf8(prefix.as_ref()).unwrap_or("");
                            if matches!(event, Event::Start(_)) {
                                self.notes.add(Code::UndeclaredPrefix, Some(before), prefix);
                            }
                            let ns = Ns::of_prefix(prefix);
                            if ns.nests() && self.namespace.as_deref() != Some(prefix) {
                                self.namespace = Some(prefix.into());
                            }
                            ns
                        }
                        ResolveResult::Unbound => Ns::Rss,
                    };
                    (namespace, event)
                }
                Err(error) => return Err(self.syntax_error(&error)),
            };
            match event {
                Event::Start(start) => self.open(namespace, &start, before)?,
                Event::End(_) => {
                    self.close(before);
                    if self.depth == 0 {
                        return self.finish();
                    }
                }
                Event::Text(text) => self.text(text.xml10_content_cow(), Piece::Text),
                Event::CData(data) => self.text(data.into_inner(), Piece::CData),
                Event::GeneralRef(reference) => {
                    let name = reference.into_inner();
                    let written = self.document.get(before..self.position()).unwrap_or("");
                    let text = self.resolve_reference(&name, before)?.unwrap_or(Cow::Borrowed(written));
                    self.text(text, Piece::Reference);
                }
                Event::DocType(doctype) => self.entities.read(&doctype.into_inner()),
                Event::Eof => return self.finish(),
                Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::Empty(_) => {}
            }
        }
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    fn syntax_error(&self, error: &quick_xml::Error) -> ParseError {
        let position = self.reader.error_position();
        let stage = match error {
            quick_xml::Error::Syntax(quick_xml::errors::SyntaxError::InvalidBangMarkup) => Stage::Xml,
            // Each of the others says that the document stops inside something.
            quick_xml::Error::Syntax(_) => Stage::Truncated,
            _ => Stage::Xml,
        };
        ParseError::at(stage, position)
    }

    fn open(&mut self, ns: Ns, start: &BytesStart<'d>, before: usize) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ParseError::at(Stage::Depth, before as u64));
        }
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            return Err(ParseError::at(Stage::Elements, before as u64));
        }
        let local = start.local_name();
        let ns = if ns == Ns::Other && self.depth == 1 { self.root_meant(local.as_ref(), before) } else { ns };
        if let Some(parent) = self.stack.last_mut() {
            parent.node.element_count += 1;
            parent.node.needs_rewrite |= ns == Ns::Xhtml && start.name().prefix().is_some();
        }
        if !self.becomes_node(ns, local.as_ref()) {
            return Ok(());
        }
        self.nodes += 1;
        let mut base = self.stack.last().map_or_else(|| self.base.clone(), |o| o.base.clone());
        let mut has_base = self.stack.last().is_some_and(|o| o.node.has_base);
        let mut attributes = Vec::new();
        for attribute in start.attributes().with_checks(false).take(MAX_ATTRIBUTES) {
            let attribute = match attribute {
                Ok(attribute) => attribute,
                Err(_) if self.lenient => continue,
                Err(_) => return Err(ParseError::at(Stage::Xml, before as u64)),
            };
            let value = self.unescape_attribute(&attribute.value, before)?;
            let key = attribute.key.as_ref();
            if key.eq_ignore_ascii_case("xml:base") && value.len() <= MAX_BASE_BYTES {
                let joined = match &base {
                    Some(outer) => outer.join(value.trim()).ok(),
                    None => Url::parse(value.trim()).ok(),
                };
                has_base |= joined.is_some();
                base = joined.map(Rc::new).or(base);
            }
            attributes.push((Cow::Owned(key.to_owned()), value));
        }
        let node = Node {
            ns,
            namespace: self.namespace.clone().filter(|_| ns.nests()),
            at: before,
            name: Cow::Owned(local.as_ref().to_owned()),
            attributes,
            text: Cow::Borrowed(""),
            inner: self.position()..self.position(),
            element_count: 0,
            needs_rewrite: false,
            has_base,
            base: base.clone(),
            children: Vec::new(),
        };
        self.stack.push(Open { node, text: TextBuilder::default(), base });
        Ok(())
    }

    /// The namespace that a root element of an unknown one is meant to have.
    fn root_meant(&mut self, local: &str, at: usize) -> Ns {
        let meant = match local.to_ascii_lowercase().as_str() {
            "feed" | "entry" => Ns::Atom,
            "rss" | "rdf" | "channel" => Ns::Rss,
            _ => return Ns::Other,
        };
        if let Some(address) = self.root_namespace.as_deref() {
            self.notes.add(Code::UnknownNamespace, Some(at), address);
            self.own_namespace = Some((address.into(), meant));
        }
        meant
    }

    /// Whether an element that just opened is a field, and there is room for it.
    fn becomes_node(&mut self, ns: Ns, local: &str) -> bool {
        if self.depth != self.stack.len() + 1 {
            return false;
        }
        if self.is_item(ns, local) {
            self.items_in_document += 1;
            return self.items.len() < MAX_ITEMS;
        }
        let Some(parent) = self.stack.last() else { return true };
        let contains = self.stack.len() == 1
            || parent.node.ns.nests()
            || CONTAINERS.iter().any(|c| parent.node.name.eq_ignore_ascii_case(c));
        contains && self.nodes < MAX_NODES && parent.node.children.len() < MAX_FIELDS
    }

    /// Whether an element is an item: it stands in the root or in a channel, not in another item.
    fn is_item(&self, ns: Ns, local: &str) -> bool {
        let named = matches!(ns, Ns::Rss | Ns::Atom | Ns::Other) && matches!(local, "item" | "entry");
        let in_place = match self.stack.as_slice() {
            [_root] => true,
            // RSS 1.1 puts them into `items`.
            [_root, parent] => ["channel", "items"].iter().any(|n| parent.node.name.eq_ignore_ascii_case(n)),
            _ => false,
        };
        named && in_place
    }

    /// The characters behind `&name;`: those that the document declares, those of XML, else those of HTML; `None` where
    /// nobody knows the name, which then stays as it is written.
    fn resolve_reference(&self, name: &str, at: usize) -> Result<Option<Cow<'d, str>>, ParseError> {
        if let Some(number) = name.strip_prefix('#') {
            // A reference to what is no character of XML (section 2.2) stands for nothing.
            let character = crate::html::entities::numeric(number)
                .filter(|c| *c != '\u{FFFD}' && (!c.is_control() || c.is_whitespace()));
            if character.is_none() {
                self.notes.add(Code::BadCharacterReferences, Some(at), "");
            }
            return Ok(Some(Cow::Owned(character.map(String::from).unwrap_or_default())));
        }
        if let Some(declared) = self.entities.get(name) {
            let text = declared.map_err(|_| ParseError::at(Stage::Dtd, at as u64))?;
            return Ok(Some(Cow::Owned(text.to_owned())));
        }
        let characters = crate::html::entities::named(name);
        if !matches!(name, "lt" | "gt" | "amp" | "quot" | "apos") {
            // Names of entities are ASCII and short; what is longer is somebody's text.
            let shown = if name.len() <= 32 && name.is_ascii() { name } else { "" };
            self.notes.add(Code::UnknownEntities, Some(at), shown);
        }
        Ok(Some(match characters {
            Some(characters) => Cow::Borrowed(characters),
            None => return Ok(None),
        }))
    }

    /// An attribute's value with its references resolved; what is none stays as it stands. HTML's references without a
    /// semicolon are not read: in an address `&copy=` is a parameter.
    fn unescape_attribute(&self, value: &str, at: usize) -> Result<String, ParseError> {
        let mut out = String::with_capacity(value.len());
        let mut rest = value;
        while let Some(place) = memchr::memchr(b'&', rest.as_bytes()) {
            let (before, reference) = rest.split_at_checked(place).unwrap_or((rest, ""));
            out.push_str(before);
            let end = reference.bytes().take(MAX_REFERENCE_BYTES).position(|b| b == b';');
            let name = end.and_then(|end| reference.get(1..end)).filter(|name| {
                !name.is_empty()
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'#' | b'.' | b'-' | b'_'))
            });
            match name {
                Some(name) => {
                    let (written, tail) = reference.split_at_checked(name.len() + 2).unwrap_or((reference, ""));
                    match self.resolve_reference(name, at)? {
                        Some(characters) => out.push_str(&characters),
                        None => out.push_str(written),
                    }
                    rest = tail;
                }
                None => {
                    out.push('&');
                    rest = reference.get(1..).unwrap_or("");
                }
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn text(&mut self, piece: Cow<'d, str>, kind: Piece) {
        let is_direct = self.depth == self.stack.len();
        let Some(open) = self.stack.last_mut() else { return };
        open.node.needs_rewrite |= kind == Piece::CData;
        // Text of elements deeper than nodes stays in the inner markup of their ancestor.
        if is_direct {
            if kind == Piece::Text { open.text.text(piece) } else { open.text.protected(piece) }
        }
    }

    fn close(&mut self, before: usize) {
        let is_node = self.depth == self.stack.len();
        self.depth = self.depth.saturating_sub(1);
        if !is_node {
            return;
        }
        let Some(open) = self.stack.pop() else { return };
        let mut node = open.node;
        node.text = open.text.finish();
        node.inner.end = before;
        if self.is_item(node.ns, &node.name) {
            self.items.push(node);
            return;
        }
        let Some(parent) = self.stack.last_mut() else {
            self.root = Some(node);
            return;
        };
        parent.node.element_count += node.element_count;
        parent.node.needs_rewrite |= node.needs_rewrite;
        parent.node.children.push(node);
    }

    fn finish(self) -> Result<Outline<'d>, ParseError> {
        let position = self.position() as u64;
        if self.depth > 0 {
            return Err(ParseError::at(Stage::Truncated, position));
        }
        let root = self.root.ok_or_else(|| ParseError::at(Stage::NotAFeed, 0))?;
        if let Some(at) = junk(self.document.get(usize::try_from(position).unwrap_or(0)..).unwrap_or("")) {
            self.notes.add(Code::JunkAfterDocument, usize::try_from(position).ok().map(|p| p + at), "");
        }
        Ok(Outline {
            root,
            root_namespace: self.root_namespace,
            items: self.items,
            items_in_document: self.items_in_document,
            end: usize::try_from(position).unwrap_or(usize::MAX),
        })
    }
}

/// Text of an event with the line ends of XML (section 2.11 of XML 1.0).
trait XmlText<'d> {
    fn xml10_content_cow(self) -> Cow<'d, str>;
}

impl<'d> XmlText<'d> for quick_xml::events::BytesText<'d> {
    fn xml10_content_cow(self) -> Cow<'d, str> {
        if memchr::memchr(b'\r', self.as_bytes()).is_some() {
            Cow::Owned(self.xml10_content().into_owned())
        } else {
            self.into_inner()
        }
    }
}

/// Addresses that are remembered; a feed has a handful.
const MAX_ADDRESSES: usize = 16;

/// The namespace of an address; the same few come with every element.
fn known(addresses: &mut Vec<(String, Ns)>, address: &str) -> Ns {
    if let Some((_, ns)) = addresses.iter().find(|(known, _)| known == address) {
        return *ns;
    }
    let ns = Ns::of_address(address);
    if addresses.len() < MAX_ADDRESSES && address.len() <= MAX_NAMESPACE_BYTES {
        addresses.push((address.to_owned(), ns));
    }
    ns
}

/// Where something begins behind the root element that may not stand there: anything but white space, comments and
/// instructions (XML 1.0, section 2.8).
fn junk(rest: &str) -> Option<usize> {
    let mut tail = rest;
    loop {
        tail = tail.trim_start();
        let end = if tail.starts_with("<!--") {
            tail.find("-->").map(|at| at + 3)
        } else if tail.starts_with("<?") {
            tail.find("?>").map(|at| at + 2)
        } else {
            None
        };
        match end.and_then(|at| tail.get(at..)) {
            Some(next) => tail = next,
            None => return (!tail.is_empty()).then(|| rest.len() - tail.len()),
        }
    }
}
