//! Markdown: CommonMark with the tables of GFM.
//!
//! Owns the escaping and the spacing. Whatever the text says, it reads as text; delimiters of stress stand where the
//! rules of flanking (CommonMark 0.31, section 6.2) let them count, if need be beside a character written as a reference.

use super::document::{Block, Span, Style};

/// Writes a document.
#[must_use]
pub fn write(blocks: &[Block]) -> String {
    lines(blocks).join("\n")
}

/// The lines of blocks, a blank one between each two.
fn lines(blocks: &[Block]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut alternate = false;
    let mut before: Option<&Block> = None;
    for block in blocks {
        // Two lists in a row would be one; another marker tells them apart.
        alternate = match (before, block) {
            (Some(Block::List(a, _)), Block::List(b, _)) => a.is_some() == b.is_some() && !alternate,
            _ => false,
        };
        if !out.is_empty() {
            out.push(String::new());
        }
        out.extend(block_lines(block, alternate));
        before = Some(block);
    }
    out
}

fn block_lines(block: &Block, alternate: bool) -> Vec<String> {
    match block {
        Block::Paragraph(spans) => inline(spans, Place::Paragraph).split('\n').map(str::to_owned).collect(),
        Block::Heading(level, spans) => {
            vec![format!("{} {}", "#".repeat(usize::from(*level)), inline(spans, Place::Heading))]
        }
        Block::List(start, items) => list(*start, items, alternate),
        Block::Quote(blocks) => lines(blocks)
            .into_iter()
            .map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") })
            .collect(),
        Block::Code(language, text) => code(language, text),
        Block::Image(src, alt) => {
            let mut line = String::from("![");
            let mut writer =
                Writer { out: &mut line, place: Place::Heading, line_start: false, digits: 0, entity: false };
            writer.text(alt);
            line.push_str(&format!("]({})", destination(src)));
            vec![line]
        }
        // Neither "-" nor "*" beside the markers of a list.
        Block::Separator => vec!["___".to_owned()],
        Block::Table(header, rows) => table(*header, rows),
    }
}

fn list(start: Option<u64>, items: &[Vec<Block>], alternate: bool) -> Vec<String> {
    let is_tight = items.iter().all(|item| {
        let rest = item.get(1..).unwrap_or(&[]);
        matches!(item.first(), Some(Block::Paragraph(_))) && rest.iter().all(|b| matches!(b, Block::List(..)))
    });
    let mut out = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let marker = match start {
            Some(start) => format!("{}{} ", start.saturating_add(n as u64), if alternate { ')' } else { '.' }),
            None => format!("{} ", if alternate { '*' } else { '-' }),
        };
        if n > 0 && !is_tight {
            out.push(String::new());
        }
        let indent = " ".repeat(marker.len());
        let inner = if is_tight { tight(item) } else { lines(item) };
        for (at, line) in inner.into_iter().enumerate() {
            out.push(match (at, line.is_empty()) {
                (0, _) => format!("{marker}{line}"),
                (_, true) => line,
                (_, false) => format!("{indent}{line}"),
            });
        }
    }
    out
}

/// The lines of an item without blank ones: a paragraph and lists below it.
fn tight(item: &[Block]) -> Vec<String> {
    let mut out = Vec::new();
    let mut alternate = false;
    for (n, block) in item.iter().enumerate() {
        alternate = n > 1 && !alternate;
        out.extend(block_lines(block, alternate));
    }
    out
}

fn code(language: &str, text: &str) -> Vec<String> {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let mut out = vec![format!("{fence}{language}")];
    out.extend(text.split('\n').map(str::to_owned));
    out.push(fence);
    out
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn table(header: bool, rows: &[Vec<Vec<Span>>]) -> Vec<String> {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let line = |cells: &[Vec<Span>]| {
        let mut line = String::from("|");
        for n in 0..width {
            let cell = cells.get(n).map(|spans| inline(spans, Place::Cell)).unwrap_or_default();
            line.push_str(&format!(" {cell} |"));
        }
        line
    };
    let (head, body) = match rows.split_first() {
        Some((first, rest)) if header => (first.as_slice(), rest),
        _ => (&[][..], rows),
    };
    let mut out = vec![line(head), format!("|{}", " --- |".repeat(width))];
    out.extend(body.iter().map(|row| line(row)));
    out
}

/// An address in the parentheses of a link. The URL parser leaves no white space and no angle brackets in it.
fn destination(address: &str) -> String {
    let mut out = String::with_capacity(address.len() + 8);
    let mut from = 0;
    let needs = |c: char| "()\\*_`|&[]~<>".contains(c) || c.is_whitespace();
    for (at, c) in address.match_indices(needs) {
        out.push_str(address.get(from..at).unwrap_or(""));
        match c {
            "<" => out.push_str("%3C"),
            ">" => out.push_str("%3E"),
            c if c.trim().is_empty() => out.push_str("%20"),
            c => {
                out.push('\\');
                out.push_str(c);
            }
        }
        from = at + c.len();
    }
    out.push_str(address.get(from..).unwrap_or(""));
    out
}

/// Where inline text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Paragraph,
    Heading,
    Cell,
}

/// The delimiters of a style, outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark<'s> {
    Link(&'s str),
    Strong,
    Emphasis,
}

fn marks(style: &Style) -> Vec<Mark<'_>> {
    let mut list = Vec::new();
    if let Some(link) = &style.link {
        list.push(Mark::Link(link));
    }
    list.extend(style.strong.then_some(Mark::Strong));
    list.extend(style.emphasis.then_some(Mark::Emphasis));
    list
}

fn inline(spans: &[Span], place: Place) -> String {
    let mut out = String::new();
    let mut writer = Writer { out: &mut out, place, line_start: place == Place::Paragraph, digits: 0, entity: false };
    // Marks with the delimiter that each was opened with.
    let mut open: Vec<(Mark<'_>, &'static str)> = Vec::new();
    for (n, span) in spans.iter().enumerate() {
        let wanted = marks(&span.style);
        let same = open.iter().zip(&wanted).take_while(|((a, _), b)| a == *b).count();
        let next = span.text.as_ref().and_then(|t| t.chars().next());
        while open.len() > same {
            if let Some((mark, delimiter)) = open.pop() {
                let goes_on = open.len() == same && wanted.len() == same && !span.style.code;
                writer.close(&mark, delimiter, next.filter(|_| goes_on));
            }
        }
        let mut rest = wanted.into_iter().skip(same).peekable();
        while let Some(mark) = rest.next() {
            let first = if rest.peek().is_some() || span.style.code { Some('*') } else { next };
            let delimiter = match mark {
                Mark::Link(_) => "[",
                Mark::Strong => "**",
                Mark::Emphasis if writer.wants_star(spans.get(n..).unwrap_or(&[])) => "*",
                Mark::Emphasis => "_",
            };
            writer.open(&mark, delimiter, first);
            open.push((mark, delimiter));
        }
        match &span.text {
            Some(text) if span.style.code => writer.code(text),
            Some(text) => writer.text(text),
            None => writer.line_break(),
        }
    }
    while let Some((mark, delimiter)) = open.pop() {
        writer.close(&mark, delimiter, None);
    }
    out
}

struct Writer<'o> {
    out: &'o mut String,
    place: Place,
    /// Nothing stands on this line yet.
    line_start: bool,
    /// Digits at the start of the line.
    digits: usize,
    /// The next character is written as a reference.
    entity: bool,
}

fn is_word(c: char) -> bool {
    !c.is_whitespace() && !is_punctuation(c)
}

/// Punctuation as CommonMark has it: that of ASCII, and the symbols and punctuation of Unicode, which are no letters or
/// digits.
fn is_punctuation(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace()
}

impl Writer<'_> {
    /// Writes the last character as a reference, so that a delimiter behind it stands beside punctuation.
    fn guard_before(&mut self) {
        if let Some(last) = self.out.chars().next_back().filter(|c| is_word(*c)) {
            self.out.pop();
            self.reference(last);
        }
    }

    fn reference(&mut self, c: char) {
        match c {
            '\u{a0}' => self.out.push_str("&nbsp;"),
            c => self.out.push_str(&format!("&#{};", u32::from(c))),
        }
    }

    /// Whether stress that begins with the first of these spans is marked by `*`: `_` cannot stand inside a word, and `*`
    /// cannot stand beside the mark of strong text.
    fn wants_star(&self, spans: &[Span]) -> bool {
        let Some(first) = spans.first() else { return false };
        let behind = spans.iter().find(|s| !s.style.emphasis || s.style.link != first.style.link);
        let next = behind.filter(|s| !s.style.code).and_then(|s| s.text.as_ref()).and_then(|t| t.chars().next());
        let is_inside = self.out.chars().next_back().is_some_and(is_word) || next.is_some_and(is_word);
        let beside_strong = first.style.strong || behind.is_some_and(|s| s.style.strong) || self.out.ends_with('*');
        let runs_on = spans.iter().take_while(|s| s.style.emphasis).any(|s| s.style.strong);
        is_inside && !beside_strong && !runs_on
    }

    fn open(&mut self, mark: &Mark<'_>, delimiter: &str, next: Option<char>) {
        match mark {
            Mark::Link(_) => {
                if self.out.ends_with('!') && !self.out.ends_with("\\!") {
                    self.out.pop();
                    self.out.push_str("\\!");
                }
                self.out.push('[');
            }
            Mark::Strong | Mark::Emphasis => {
                if delimiter == "_" || next.is_none_or(|c| !is_word(c)) {
                    self.guard_before();
                }
                self.out.push_str(delimiter);
            }
        }
        self.started();
    }

    fn close(&mut self, mark: &Mark<'_>, delimiter: &str, next: Option<char>) {
        let after_punctuation = self.out.chars().next_back().is_some_and(|c| !is_word(c));
        let before_word = next.is_some_and(is_word);
        match mark {
            Mark::Link(href) => {
                self.out.push_str("](");
                self.out.push_str(&destination(href));
                self.out.push(')');
            }
            Mark::Strong | Mark::Emphasis => {
                self.out.push_str(delimiter);
                self.entity |= before_word && (delimiter == "_" || after_punctuation);
            }
        }
    }

    fn started(&mut self) {
        (self.line_start, self.digits) = (false, 0);
    }

    fn line_break(&mut self) {
        if self.place == Place::Paragraph {
            self.out.push_str("\\\n");
            (self.line_start, self.digits) = (true, 0);
        } else {
            self.out.push(' ');
        }
        self.entity = false;
    }

    /// Code between runs of backticks longer than any inside (CommonMark, section 6.1).
    fn code(&mut self, text: &str) {
        let text = if self.place == Place::Cell { text.replace('|', "\\|") } else { text.to_owned() };
        let fence = "`".repeat(longest_run(&text) + 1);
        let edge = |c: Option<char>| c.is_some_and(|c| c == '`' || c == ' ');
        let pad = if edge(text.chars().next()) || edge(text.chars().next_back()) { " " } else { "" };
        // A code of blanks alone keeps them all.
        let pad = if text.trim_matches(' ').is_empty() { "" } else { pad };
        self.out.push_str(&format!("{fence}{pad}{text}{pad}{fence}"));
        self.started();
        self.entity = false;
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            // Letters and blanks inside of a line need no look at their neighbours.
            if !self.entity && !self.line_start && self.digits == 0 {
                let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b' ' | b',' | b'"' | b'\'');
                let length = rest.as_bytes().iter().take_while(|b| plain(b)).count();
                if length > 0 {
                    self.out.push_str(rest.get(..length).unwrap_or(""));
                    rest = rest.get(length..).unwrap_or("");
                    continue;
                }
            }
            rest = rest.get(c.len_utf8()..).unwrap_or("");
            self.character(c, rest.chars().next());
        }
    }

    fn character(&mut self, c: char, next: Option<char>) {
        if self.entity && is_word(c) {
            self.entity = false;
            self.reference(c);
            self.started();
            return;
        }
        self.entity = false;
        let number_ends = self.digits > 0 && matches!(c, '.' | ')');
        let needs = match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|' | '@' => true,
            '#' => self.line_start || self.place == Place::Heading,
            '+' | '-' | '=' => self.line_start,
            // Addresses that GFM would make links of.
            ':' => next == Some('/'),
            '.' | ')' => number_ends || (c == '.' && self.out.ends_with("www")),
            _ => false,
        };
        if needs {
            self.out.push('\\');
            self.out.push(c);
        } else if c.is_whitespace() && c != ' ' {
            self.reference(c);
        } else {
            self.out.push(c);
        }
        let counts = c.is_ascii_digit() && (self.line_start || self.digits > 0);
        self.digits = if counts { self.digits + 1 } else { 0 };
        self.line_start = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_parentheses_cannot_end_them() {
        assert_eq!(destination("https://a.example/(x)_[y]?a&b"), "https://a.example/\\(x\\)\\_\\[y\\]?a\\&b");
    }
}
