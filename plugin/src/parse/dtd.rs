//! Entities that a document declares for itself (XML 1.0, section 4.2).
//!
//! Owns what is read of an internal subset: general entities with a text. External ones and parameter entities are never
//! followed. What an entity stands for is bounded, and so is what all references of a document bring; a document that
//! goes past it is a trick and is refused.

use std::cell::Cell;
use std::collections::HashMap;

/// Entities of one document; real ones declare a dozen, or the 250 of HTML.
const MAX_ENTITIES: usize = 512;

/// Bytes that one entity may stand for, with the entities inside it.
const MAX_TEXT_BYTES: usize = 4 * 1_024;

/// Bytes that all references of a document may bring.
const MAX_EXPANDED_BYTES: usize = 256 * 1_024;

/// What a name was declared as.
#[derive(Debug)]
enum Entity {
    Text(String),
    /// Somebody else's file, which is never asked for.
    External,
    /// Its text, or that of an entity inside it, is past the bound.
    TooLong,
}

/// The declared entities of a document.
#[derive(Debug, Default)]
pub(super) struct Entities {
    texts: HashMap<String, Entity>,
    expanded: Cell<usize>,
}

/// A reference that would bring more than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMuch;

impl Entities {
    /// Reads the internal subset of a document type, if it has one. The first declaration of a name counts.
    pub(super) fn read(&mut self, doctype: &str) {
        let Some(subset) = doctype.split_once('[').map(|(_, subset)| subset) else { return };
        let mut rest = subset;
        while let Some(at) = rest.find('<') {
            rest = rest.get(at..).unwrap_or("");
            if let Some(body) = rest.strip_prefix("<!--") {
                rest = body.split_once("-->").map_or("", |(_, tail)| tail);
            } else if let Some(body) = rest.strip_prefix("<!ENTITY") {
                rest = self.declaration(body);
            } else {
                rest = skip_declaration(rest);
            }
        }
    }

    /// Reads one declaration behind its keyword; returns what follows.
    fn declaration<'t>(&mut self, body: &'t str) -> &'t str {
        let body = body.trim_start();
        let name_end = body.find(char::is_whitespace).unwrap_or(body.len());
        let (name, value) = body.split_at_checked(name_end).unwrap_or((body, ""));
        let value = value.trim_start();
        let text = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let written = value.get(1..).and_then(|v| v.split_once(quote)).map(|(written, _)| written);
                written.map(|w| self.text(w).map_or(Entity::TooLong, Entity::Text))
            }
            // SYSTEM and PUBLIC.
            _ => Some(Entity::External),
        };
        if let Some(text) = text
            && name != "%"
            && self.texts.len() < MAX_ENTITIES
        {
            self.texts.entry(name.to_owned()).or_insert(text);
        }
        skip_declaration(value)
    }

    /// What a written value stands for; entities inside it must be declared before it, so that there is no circle.
    fn text(&self, written: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = written;
        while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
            let (before, reference) = rest.split_at_checked(at)?;
            out.push_str(before);
            let (name, tail) = reference.get(1..)?.split_once(';')?;
            match (name.strip_prefix('#'), self.texts.get(name)) {
                (Some(number), _) => out.extend(crate::html::entities::numeric(number)),
                (None, Some(Entity::Text(inner))) => out.push_str(inner),
                (None, Some(Entity::External)) => {}
                (None, Some(Entity::TooLong)) => return None,
                (None, None) => out.push_str(crate::html::entities::named(name).unwrap_or("")),
            }
            if out.len() > MAX_TEXT_BYTES {
                return None;
            }
            rest = tail;
        }
        out.push_str(rest);
        (out.len() <= MAX_TEXT_BYTES).then_some(out)
    }

    /// What a reference stands for: nothing for an external entity; `None` where the name is not declared.
    ///
    /// # Errors
    /// Where the entity, or all references together, pass their bound.
    pub(super) fn get(&self, name: &str) -> Option<Result<&str, TooMuch>> {
        let text = self.texts.get(name)?;
        Some(match text {
            Entity::Text(text) => {
                let expanded = self.expanded.get() + text.len();
                self.expanded.set(expanded);
                if expanded > MAX_EXPANDED_BYTES { Err(TooMuch) } else { Ok(text.as_str()) }
            }
            Entity::External => Ok(""),
            Entity::TooLong => Err(TooMuch),
        })
    }
}

/// What follows a declaration: behind the first `>` outside of quotes.
fn skip_declaration(text: &str) -> &str {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '>') => return text.get(at + 1..).unwrap_or(""),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entities(subset: &str) -> Entities {
        let mut entities = Entities::default();
        entities.read(&format!("rss SYSTEM \"x\" [{subset}]"));
        entities
    }

    #[test]
    fn internal_entities_stand_for_their_text_and_external_ones_for_nothing() {
        let e = entities(concat!(
            "<!-- <!ENTITY no \"x\"> --><!ELEMENT a (b)>\n<!ENTITY nbsp \"&#160;\"><!ENTITY who 'A \"B\" > C'>",
            "<!ENTITY file SYSTEM \"file:///etc/passwd\"><!ENTITY % p \"x\"><!ENTITY two \"&who;&nbsp;&lt;\"><!ENTITY two \"no\">"
        ));
        for (name, text) in [("nbsp", "\u{a0}"), ("who", "A \"B\" > C"), ("file", ""), ("two", "A \"B\" > C\u{a0}<")] {
            assert_eq!(e.get(name), Some(Ok(text)), "{name}");
        }
        assert_eq!((e.get("no"), e.get("p")), (None, None));
    }

    #[test]
    fn a_billion_laughs_are_refused() {
        let mut subset = String::from("<!ENTITY l0 \"lol lol lol lol\">");
        for n in 1..10 {
            subset.push_str(&format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10)));
        }
        let e = entities(&subset);
        assert!(e.get("l2").unwrap().is_ok());
        assert_eq!(e.get("l9"), Some(Err(TooMuch)));
        // Many small ones come to the same.
        let one = entities(&format!("<!ENTITY a \"{}\">", "x".repeat(MAX_TEXT_BYTES)));
        let times = MAX_EXPANDED_BYTES / MAX_TEXT_BYTES;
        assert!((0..times).all(|_| one.get("a") == Some(Ok(&"x".repeat(MAX_TEXT_BYTES)))));
        assert_eq!(one.get("a"), Some(Err(TooMuch)));
        let past = entities(&format!("<!ENTITY a \"{}\">", "x".repeat(MAX_TEXT_BYTES + 1)));
        assert_eq!(past.get("a"), Some(Err(TooMuch)));
    }
}
