//! Subscription lists of other readers: OPML 1.0 and 2.0 (<http://opml.org/spec2.opml>), read and written.
//!
//! Owns the form of the file and its bounds. Decides nothing about feeds; nothing here touches a store or a network. A
//! file is read whole or refused whole.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use encoding_rs::Encoding;
use quick_xml::escape::{escape, unescape};
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Bytes of a file: 10,000 outlines with long names and addresses.
pub const MAX_BYTES: usize = 8 * 1_024 * 1_024;

/// Feeds of a file.
pub const MAX_OUTLINES: usize = 10_000;

/// Outlines within one another: no reader nests more than a few.
const MAX_DEPTH: usize = 64;

/// Folders that become labels of a feed: those of an instance are 32.
const MAX_FOLDERS: usize = 32;

/// Bytes of a folder's name: those of a label's text.
const MAX_FOLDER_BYTES: usize = 256;

/// Characters of a feed's name: those of an instance's.
const MAX_NAME_CHARS: usize = 200;

/// The label of the outermost folder; those within are `folder.2` and so on.
const FOLDER: &str = "folder";

/// Why a file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpmlError {
    /// Too many bytes.
    #[error("the file is larger than {MAX_BYTES} bytes; split it")]
    TooLarge,
    /// Too many feeds.
    #[error("the file has more than {MAX_OUTLINES} feeds; split it")]
    TooMany,
    /// Too deep.
    #[error("outlines are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// A document type, whose entities can expand without bound.
    #[error("the file has a document type declaration (DTD); remove it")]
    Dtd,
    /// Bytes that the encoding does not know.
    #[error("the file is not text in the encoding that it names; save it as UTF-8")]
    Encoding,
    /// Not OPML.
    #[error("the file is not OPML: its outermost element is not opml")]
    NotOpml,
    /// Not well-formed.
    #[error("the file is not well-formed XML near line {0}")]
    Broken(usize),
}

impl OpmlError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "request_too_large",
            _ => "invalid_opml",
        }
    }
}

/// A feed of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feed {
    /// `text`, else `title`, else the address.
    pub name: String,
    /// `xmlUrl`, as it stands there.
    pub url: String,
    /// The folders around it, outermost first.
    pub folders: Vec<String>,
}

impl Feed {
    /// The folders as labels.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        let label = |n: usize| if n == 0 { FOLDER.to_owned() } else { format!("{FOLDER}.{}", n + 1) };
        self.folders.iter().enumerate().map(|(n, name)| (label(n), name.clone())).collect()
    }

    /// The folders that labels name.
    #[must_use]
    pub fn folders_of(labels: &serde_json::Value) -> Vec<String> {
        let label = |name: &str| labels.get(name).and_then(|v| v.as_str()).map(str::to_owned);
        let inner = (2..=MAX_FOLDERS).map(|n| label(&format!("{FOLDER}.{n}")));
        std::iter::once(label(FOLDER)).chain(inner).map_while(|folder| folder).collect()
    }
}

/// Reads a list, in document order.
///
/// # Errors
/// What is wrong with the file; nothing of it counts then.
pub fn read(bytes: &[u8]) -> Result<Vec<Feed>, OpmlError> {
    if bytes.len() > MAX_BYTES {
        return Err(OpmlError::TooLarge);
    }
    let text = decode(bytes)?;
    let mut reader = Reader::from_str(&text);
    let mut list = List::default();
    loop {
        let event = reader.read_event();
        let broken = || OpmlError::Broken(line(&text, reader.error_position().max(reader.buffer_position())));
        match event.map_err(|_| broken())? {
            Event::DocType(_) => return Err(OpmlError::Dtd),
            Event::Start(tag) => {
                let outline = Outline::of(&tag).ok_or_else(broken)?;
                list.open(&outline)?;
            }
            Event::Empty(tag) => {
                let outline = Outline::of(&tag).ok_or_else(broken)?;
                list.open(&outline)?;
                list.close();
            }
            Event::End(_) => list.close(),
            Event::Eof if list.open.is_empty() && list.has_root => return Ok(list.feeds),
            Event::Eof if list.has_root => return Err(broken()),
            Event::Eof => return Err(OpmlError::NotOpml),
            _ => {}
        }
    }
}

/// What one start tag says.
struct Outline {
    element: String,
    name: String,
    url: Option<String>,
}

impl Outline {
    /// `None` where its attributes are not well-formed.
    fn of(tag: &BytesStart<'_>) -> Option<Self> {
        let element = tag.local_name().as_ref().to_lowercase();
        let (mut text, mut title, mut url) = (None, None, None);
        if element == "outline" {
            for attribute in tag.attributes() {
                let attribute = attribute.ok()?;
                let raw: &str = &attribute.value;
                // A bare ampersand, common in addresses, stays one.
                let value = unescape(raw).map_or_else(|_| raw.to_owned(), std::borrow::Cow::into_owned);
                let slot = match attribute.key.as_ref().to_lowercase().as_str() {
                    "text" => &mut text,
                    "title" => &mut title,
                    "xmlurl" => &mut url,
                    _ => continue,
                };
                *slot = Some(value.trim().to_owned()).filter(|v| !v.is_empty());
            }
        }
        let name = text.or(title).map(|name| tidy(&name)).unwrap_or_default();
        Some(Self { element, name, url })
    }
}

#[derive(Default)]
struct List {
    feeds: Vec<Feed>,
    /// The elements around, with the folder that each is.
    open: Vec<Option<String>>,
    has_root: bool,
}

impl List {
    fn open(&mut self, tag: &Outline) -> Result<(), OpmlError> {
        if self.open.is_empty() {
            if self.has_root || tag.element != "opml" {
                return Err(OpmlError::NotOpml);
            }
            self.has_root = true;
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(OpmlError::TooDeep);
        }
        let is_outline = tag.element == "outline";
        if let Some(url) = tag.url.as_ref().filter(|_| is_outline) {
            if self.feeds.len() >= MAX_OUTLINES {
                return Err(OpmlError::TooMany);
            }
            let folders = self.open.iter().flatten().take(MAX_FOLDERS).cloned().collect();
            let name = if tag.name.is_empty() { tidy(url) } else { tag.name.clone() };
            self.feeds.push(Feed { name, url: url.clone(), folders });
        }
        let is_folder = is_outline && !tag.name.is_empty();
        self.open.push(is_folder.then(|| cut(&tag.name, MAX_FOLDER_BYTES).to_owned()));
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
    }
}

/// One line without control characters, of at most as many characters as a name has.
fn tidy(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    words.join(" ").chars().take(MAX_NAME_CHARS).collect()
}

/// The start of a text, of at most so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

fn line(text: &str, position: u64) -> usize {
    let before = text.as_bytes().get(..usize::try_from(position).unwrap_or(usize::MAX)).unwrap_or(text.as_bytes());
    before.iter().filter(|b| **b == b'\n').count() + 1
}

/// The text of a file: by its byte order mark, else by its declaration, else UTF-8 (XML 1.0, appendix F).
fn decode(bytes: &[u8]) -> Result<String, OpmlError> {
    let declared = || {
        let head = String::from_utf8_lossy(bytes.get(..bytes.len().min(200)).unwrap_or(bytes)).into_owned();
        let declaration = head.split("?>").next()?.strip_prefix("<?xml")?.to_owned();
        let value = declaration.split("encoding").nth(1)?.trim_start().strip_prefix('=')?.trim_start().to_owned();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        Encoding::for_label(value.split(quote).nth(1)?.as_bytes())
    };
    let encoding = Encoding::for_bom(bytes).map(|(e, _)| e).or_else(declared).unwrap_or(encoding_rs::UTF_8);
    let (text, _, has_errors) = encoding.decode(bytes);
    if has_errors { Err(OpmlError::Encoding) } else { Ok(text.into_owned()) }
}

/// Writes a list. Feeds that stand side by side in the same folders share them.
#[must_use]
pub fn write(title: &str, feeds: &[Feed]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\">\n");
    let _ = writeln!(text, "  <head><title>{}</title></head>\n  <body>", escape(printable(title)));
    let mut open: Vec<&str> = Vec::new();
    for feed in feeds {
        let shared = open.iter().zip(&feed.folders).take_while(|(a, b)| *a == b).count();
        while open.len() > shared {
            open.pop();
            let _ = writeln!(text, "{}</outline>", indent(open.len()));
        }
        for folder in feed.folders.iter().skip(shared) {
            let _ = writeln!(text, "{}<outline text=\"{}\">", indent(open.len()), escape(printable(folder)));
            open.push(folder);
        }
        let (name, url) = (escape(printable(&feed.name)), escape(printable(&feed.url)));
        let _ = writeln!(text, "{}<outline type=\"rss\" text=\"{name}\" xmlUrl=\"{url}\"/>", indent(open.len()));
    }
    while open.pop().is_some() {
        let _ = writeln!(text, "{}</outline>", indent(open.len()));
    }
    text.push_str("  </body>\n</opml>\n");
    text
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth + 2)
}

/// What XML 1.0 allows in a text (section 2.2).
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !matches!(c, '\u{FFFE}' | '\u{FFFF}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(name: &str, url: &str, folders: &[&str]) -> Feed {
        Feed { name: name.into(), url: url.into(), folders: folders.iter().map(|&f| f.into()).collect() }
    }

    #[test]
    fn names_order_and_folders_are_the_documents() {
        let text = r#"<?xml version="1.0"?><opml version="1.0"><head><title>x</title></head><body>
            <outline text="News &amp; more"><outline title="only title" xmlUrl="https://a.example.org/?x=1&y=2"/>
              <outline text="Inner"><outline TEXT="t" title="not this" XMLURL="https://b.example.org/"/></outline></outline>
            <outline xmlUrl="https://c.example.org/feed"/><outline text="no feed"/>
            <outline text="  two&#10;lines " xmlUrl=" https://d.example.org/ "></outline></body></opml>"#;
        assert_eq!(
            read(text.as_bytes()).unwrap(),
            [
                feed("only title", "https://a.example.org/?x=1&y=2", &["News & more"]),
                feed("t", "https://b.example.org/", &["News & more", "Inner"]),
                feed("https://c.example.org/feed", "https://c.example.org/feed", &[]),
                feed("two lines", "https://d.example.org/", &[]),
            ]
        );
    }

    #[test]
    fn what_is_not_a_whole_list_is_refused() {
        let deep = format!("<opml>{}", "<outline text=\"a\">".repeat(100));
        let many = format!("<opml>{}</opml>", "<outline xmlUrl=\"a\"/>".repeat(MAX_OUTLINES + 1));
        for (text, want) in [
            ("<!DOCTYPE opml [<!ENTITY a \"b\">]><opml/>", OpmlError::Dtd),
            ("<rss/>", OpmlError::NotOpml),
            ("", OpmlError::NotOpml),
            ("<opml/><opml/>", OpmlError::NotOpml),
            ("<opml>\n<body>\n<outline xmlUrl=\"x\"/>", OpmlError::Broken(3)),
            ("<opml>\n<body></opml>", OpmlError::Broken(2)),
            ("<opml><outline xmlUrl=x/></opml>", OpmlError::Broken(1)),
            ("<opml><outline text=\"a\" text=\"b\"/></opml>", OpmlError::Broken(1)),
            (&deep, OpmlError::TooDeep),
            (&many, OpmlError::TooMany),
        ] {
            assert_eq!(read(text.as_bytes()), Err(want), "{}", cut(text, 60));
        }
        assert_eq!(read(b"<opml>\xFF</opml>"), Err(OpmlError::Encoding));
        assert_eq!(read(&vec![b' '; MAX_BYTES + 1]), Err(OpmlError::TooLarge));
    }

    #[test]
    fn a_file_is_read_in_its_encoding() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><opml><outline text='Caf\xE9' xmlUrl='x'/></opml>";
        assert_eq!(read(latin).unwrap(), [feed("Caf\u{e9}", "x", &[])]);
        let wide: Vec<u8> = [0xFF, 0xFE]
            .into_iter()
            .chain("<opml><outline text='\u{5b57}' xmlUrl='x'/></opml>".encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        assert_eq!(read(&wide).unwrap(), [feed("\u{5b57}", "x", &[])]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let feeds = [
            feed("a \"quoted\" <name> & more", "https://a.example.org/?x=1&y=2", &["F", "G"]),
            feed("b", "https://b.example.org/", &["F"]),
            feed("c", "https://c.example.org/", &[]),
            feed("d", "https://d.example.org/", &["H", "G"]),
        ];
        assert_eq!(read(write("my <list>", &feeds).as_bytes()).unwrap(), feeds);
        for feed in &feeds {
            assert_eq!(Feed::folders_of(&serde_json::json!(feed.labels())), feed.folders);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_fail_otherwise(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            if let Ok(feeds) = read(&bytes) {
                proptest::prop_assert!(feeds.len() <= MAX_OUTLINES);
            }
        }
    }
}
