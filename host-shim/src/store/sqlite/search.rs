//! Text search over the titles and bodies of current versions.
//!
//! Owns what a query means: words that must all occur, `"phrases"`, `prefix*` and `-words` that must not. Chinese,
//! Japanese, Thai and the like put no blanks between words, so each of their characters is indexed as one word and a
//! run of them is searched as a phrase. Nothing of SQLite's own query language comes through.

use rusqlite::{Transaction, params};
use serde_json::Value;

use crate::store::Result;

/// Words and phrases of one query: each is a walk through an index.
const MAX_TERMS: usize = 16;

/// Bytes of a text that are indexed: what a version may have at most, with the blanks that are put in.
const MAX_INDEXED_BYTES: usize = 4 * 1_024 * 1_024;

/// Whether a character is a word of its own: scripts written without blanks.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' // Thai, Lao
        | '\u{1000}'..='\u{109F}' // Myanmar
        | '\u{1780}'..='\u{17FF}' // Khmer
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' // Japanese
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' // Han
        | '\u{20000}'..='\u{323AF}')
}

/// A text with blanks around each character that is a word of its own.
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + text.len() / 4);
    for c in text.chars() {
        if spaced.len() >= MAX_INDEXED_BYTES {
            break;
        }
        if stands_alone(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced
}

/// The expression of FTS5 for a query as people type it; `None` where it names no word.
pub(super) fn expression(query: &str) -> Option<String> {
    let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
    for (text, excluded, prefix) in terms(query).into_iter().take(MAX_TERMS) {
        let words = spaced(&text);
        if !words.chars().any(char::is_alphanumeric) {
            continue;
        }
        let quoted = format!("\"{}\"{}", words.trim().replace('"', " "), if prefix { "*" } else { "" });
        if excluded { unwanted.push(quoted) } else { wanted.push(quoted) }
    }
    if wanted.is_empty() {
        return None;
    }
    let all = wanted.join(" AND ");
    Some(if unwanted.is_empty() { all } else { format!("({all}) NOT ({})", unwanted.join(" OR ")) })
}

/// Words and phrases, whether each is excluded, and whether it is a prefix.
fn terms(query: &str) -> Vec<(String, bool, bool)> {
    let mut terms = Vec::new();
    let mut rest = query.trim_start();
    while !rest.is_empty() {
        let excluded = rest.starts_with('-');
        rest = rest.trim_start_matches('-');
        if let Some(phrase) = rest.strip_prefix('"') {
            let (text, after) = phrase.split_once('"').unwrap_or((phrase, ""));
            terms.push((text.to_owned(), excluded, false));
            rest = after;
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
            let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            let stem = word.trim_end_matches('*');
            terms.push((stem.to_owned(), excluded, stem.len() < word.len()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    terms
}

/// The text of a part.
fn part<'v>(parts: &'v Value, key: &str) -> &'v str {
    parts
        .as_array()
        .into_iter()
        .flatten()
        .find(|p| p.get("key").and_then(Value::as_str) == Some(key))
        .and_then(|p| p.get("text")?.as_str())
        .unwrap_or("")
}

/// Replaces what is indexed of a record.
pub(super) fn index(t: &Transaction<'_>, record: i64, is_new: bool, title: &str, body: &str) -> Result<()> {
    if !is_new {
        t.prepare_cached("DELETE FROM search WHERE rowid = ?1")?.execute([record])?;
    }
    t.prepare_cached("INSERT INTO search (rowid, title, body) VALUES (?1, ?2, ?3)")?.execute(params![
        record,
        spaced(title),
        spaced(body)
    ])?;
    Ok(())
}

/// Indexes what a store from before has.
pub(super) fn index_all(t: &Transaction<'_>) -> Result<()> {
    let mut statement = t.prepare("SELECT r.seq, v.parts FROM record r JOIN version v ON v.seq = r.current_version")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (record, parts): (i64, String) = (row.get(0)?, row.get(1)?);
        let parts = super::rows::json(&parts);
        index(t, record, true, part(&parts, "title"), part(&parts, "body"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_words_phrases_prefixes_and_exclusions() {
        for (query, expected) in [
            ("night ferry", Some("\"night\" AND \"ferry\"")),
            ("\"night ferry\" -late", Some("(\"night ferry\") NOT (\"late\")")),
            ("ferr* -\"on time\"", Some("(\"ferr\"*) NOT (\"on time\")")),
            // What FTS5 would read as an operator, a column or a bracket is a word or nothing.
            ("title:x OR NEAR(a", Some("\"title:x\" AND \"OR\" AND \"NEAR(a\"")),
            ("\"unclosed phrase", Some("\"unclosed phrase\"")),
            ("東京 x", Some("\"東  京\" AND \"x\"")),
            ("-only -words", None),
            ("  * \" ", None),
            ("", None),
        ] {
            assert_eq!(expression(query).as_deref(), expected, "{query}");
        }
        let many = "a ".repeat(1_000);
        assert_eq!(expression(&many).unwrap().matches("AND").count(), MAX_TERMS - 1);
    }
}
