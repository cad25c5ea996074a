//! Character references of HTML (WHATWG HTML, section 13.2.5.72 to 13.2.5.80).

use std::borrow::Cow;
use std::sync::LazyLock;

/// The longest name that is looked up; the longest of HTML has 31 letters.
const MAX_NAME: usize = 32;

/// Names that HTML also reads without a semicolon: those of Latin-1 and the four of markup.
const WITHOUT_SEMICOLON: &[&str] = &[
    "AElig", "AMP", "Aacute", "Acirc", "Agrave", "Aring", "Atilde", "Auml", "COPY", "Ccedil", "ETH", "Eacute", "Ecirc",
    "Egrave", "Euml", "GT", "Iacute", "Icirc", "Igrave", "Iuml", "LT", "Ntilde", "Oacute", "Ocirc", "Ograve", "Oslash",
    "Otilde", "Ouml", "QUOT", "REG", "THORN", "Uacute", "Ucirc", "Ugrave", "Uuml", "Yacute", "aacute", "acirc",
    "acute", "aelig", "agrave", "amp", "aring", "atilde", "auml", "brvbar", "ccedil", "cedil", "cent", "copy",
    "curren", "deg", "divide", "eacute", "ecirc", "egrave", "eth", "euml", "frac12", "frac14", "frac34", "gt",
    "iacute", "icirc", "iexcl", "igrave", "iquest", "iuml", "laquo", "lt", "macr", "micro", "middot", "nbsp", "not",
    "ntilde", "oacute", "ocirc", "ograve", "ordf", "ordm", "oslash", "otilde", "ouml", "para", "plusmn", "pound",
    "quot", "raquo", "reg", "sect", "shy", "sup1", "sup2", "sup3", "szlig", "thorn", "times", "uacute", "ucirc",
    "ugrave", "uml", "uuml", "yacute", "yen", "yuml",
];

/// What windows-1252 has at 0x80 to 0x9F: numeric references to those positions mean these (13.2.5.80).
const WINDOWS_1252: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{0192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{02C6}',
    '\u{2030}', '\u{0160}', '\u{2039}', '\u{0152}', '\u{8D}', '\u{017D}', '\u{8F}', '\u{90}', '\u{2018}', '\u{2019}',
    '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{02DC}', '\u{2122}', '\u{0161}', '\u{203A}',
    '\u{0153}', '\u{9D}', '\u{017E}', '\u{0178}',
];

/// The character of a numeric reference, given what stands behind `#`: digits, or `x` and hexadecimal digits.
/// `None` where there is no digit; U+FFFD where the number is no character.
#[must_use]
pub fn numeric(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(hex) => (hex, 16),
        None => (number, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    // More digits than a character can have: the number is out of range, whatever it is.
    let value = u32::from_str_radix(digits, radix).unwrap_or(u32::MAX);
    let in_c1 = value.checked_sub(0x80).and_then(|i| WINDOWS_1252.get(i as usize));
    Some(match (in_c1, value) {
        (Some(&c), _) => c,
        (None, 0) => '\u{FFFD}',
        (None, v) => char::from_u32(v).unwrap_or('\u{FFFD}'),
    })
}

/// The table in the order of its names: it comes in another one, and is only sorted when a rare name is met.
static BY_NAME: LazyLock<Vec<&'static entities::Entity>> = LazyLock::new(|| {
    let mut index: Vec<_> = entities::ENTITIES.iter().filter(|e| e.entity.ends_with(';')).collect();
    index.sort_unstable_by_key(|e| e.entity);
    index
});

/// The characters of a named reference, given its name without `&` and `;`.
#[must_use]
pub fn named(name: &str) -> Option<&'static str> {
    match name {
        "amp" => return Some("&"),
        "lt" => return Some("<"),
        "gt" => return Some(">"),
        "quot" => return Some("\""),
        "apos" => return Some("'"),
        "nbsp" => return Some("\u{a0}"),
        _ => {}
    }
    let reference = |e: &&'static entities::Entity| e.entity.bytes();
    let wanted = || std::iter::once(b'&').chain(name.bytes()).chain(std::iter::once(b';'));
    let at = BY_NAME.binary_search_by(|e| reference(e).cmp(wanted())).ok()?;
    BY_NAME.get(at).map(|e| e.characters)
}

/// Decodes every character reference of a text; what is none stays as it stands.
#[must_use]
pub fn decode(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(at) = next {
        let (before, reference) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let used = one(reference, &mut out);
        rest = reference.get(used..).unwrap_or("");
        next = memchr::memchr(b'&', rest.as_bytes());
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes the reference at the start of `text`, which begins with `&`; returns the bytes used, at least one.
fn one(text: &str, out: &mut String) -> usize {
    let body = text.get(1..).unwrap_or("");
    if let Some(number) = body.strip_prefix('#') {
        let prefix = usize::from(number.starts_with(['x', 'X']));
        let radix = if prefix == 1 { 16 } else { 10 };
        let digits = number.get(prefix..).unwrap_or("").chars().take_while(|c| c.is_digit(radix)).count();
        if let Some(character) = number.get(..prefix + digits).and_then(numeric) {
            out.push(character);
            let semicolon = usize::from(number.get(prefix + digits..).is_some_and(|r| r.starts_with(';')));
            return 2 + prefix + digits + semicolon;
        }
        out.push('&');
        return 1;
    }
    let length = body.bytes().take(MAX_NAME).take_while(u8::is_ascii_alphanumeric).count();
    let name = body.get(..length).unwrap_or("");
    if body.get(length..).is_some_and(|r| r.starts_with(';'))
        && let Some(characters) = named(name)
    {
        out.push_str(characters);
        return 2 + length;
    }
    let longest = (2..=length.min(6)).rev().find_map(|n| name.get(..n).filter(|p| WITHOUT_SEMICOLON.contains(p)));
    if let Some(prefix) = longest
        && let Some(characters) = named(prefix)
    {
        out.push_str(characters);
        return 1 + prefix.len();
    }
    out.push('&');
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the table of the HTML standard (section 13.5).
    #[test]
    fn names_are_found_by_search() {
        for (name, characters) in [
            ("amp", "&"),
            ("chi", "\u{3c7}"),
            ("OElig", "\u{152}"),
            ("zwnj", "\u{200c}"),
            ("AElig", "\u{c6}"),
            ("NotEqualTilde", "\u{2242}\u{338}"),
        ] {
            assert_eq!(named(name), Some(characters), "{name}");
        }
        assert_eq!(named("nosuch"), None);
        assert!(WITHOUT_SEMICOLON.iter().all(|n| named(n).is_some()));
    }

    #[test]
    fn references_decode_as_the_standard_says() {
        let table = [
            ("a &amp; b", "a & b"),
            ("&rsquo;&mdash;&nbsp;", "\u{2019}\u{2014}\u{a0}"),
            ("&#65;&#x42;&#X43;", "ABC"),
            ("&#146;", "\u{2019}"),
            ("&#0;&#xD800;&#x110000;&#99999999999999;", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"),
            ("&#65 B", "A B"),
            ("&copy 2026", "\u{a9} 2026"),
            ("&notit;", "\u{ac}it;"),
            ("AT&T &unknown; & &# &#x;", "AT&T &unknown; & &# &#x;"),
            ("&", "&"),
            ("\u{e9}&\u{e9};", "\u{e9}&\u{e9};"),
        ];
        for (input, expected) in table {
            assert_eq!(decode(input), expected, "{input}");
        }
    }
}
