//! Character references of HTML (WHATWG HTML, section 13.2.5.72 to 13.2.5.80).

use std::borrow::Cow;
use std::collections::HashMap;
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

/// The names of HTML 4 (its section 24), which is nearly every name that is met, in their order, with what HTML now
/// says that they are.
#[rustfmt::skip]
const COMMON: [(&str, &str); 253] = [
    ("AElig", "\u{c6}"), ("Aacute", "\u{c1}"), ("Acirc", "\u{c2}"), ("Agrave", "\u{c0}"), ("Alpha", "\u{391}"),
    ("Aring", "\u{c5}"), ("Atilde", "\u{c3}"), ("Auml", "\u{c4}"), ("Beta", "\u{392}"), ("Ccedil", "\u{c7}"),
    ("Chi", "\u{3a7}"), ("Dagger", "\u{2021}"), ("Delta", "\u{394}"), ("ETH", "\u{d0}"), ("Eacute", "\u{c9}"),
    ("Ecirc", "\u{ca}"), ("Egrave", "\u{c8}"), ("Epsilon", "\u{395}"), ("Eta", "\u{397}"), ("Euml", "\u{cb}"),
    ("Gamma", "\u{393}"), ("Iacute", "\u{cd}"), ("Icirc", "\u{ce}"), ("Igrave", "\u{cc}"), ("Iota", "\u{399}"),
    ("Iuml", "\u{cf}"), ("Kappa", "\u{39a}"), ("Lambda", "\u{39b}"), ("Mu", "\u{39c}"), ("Ntilde", "\u{d1}"),
    ("Nu", "\u{39d}"), ("OElig", "\u{152}"), ("Oacute", "\u{d3}"), ("Ocirc", "\u{d4}"), ("Ograve", "\u{d2}"),
    ("Omega", "\u{3a9}"), ("Omicron", "\u{39f}"), ("Oslash", "\u{d8}"), ("Otilde", "\u{d5}"), ("Ouml", "\u{d6}"),
    ("Phi", "\u{3a6}"), ("Pi", "\u{3a0}"), ("Prime", "\u{2033}"), ("Psi", "\u{3a8}"), ("Rho", "\u{3a1}"),
    ("Scaron", "\u{160}"), ("Sigma", "\u{3a3}"), ("THORN", "\u{de}"), ("Tau", "\u{3a4}"), ("Theta", "\u{398}"),
    ("Uacute", "\u{da}"), ("Ucirc", "\u{db}"), ("Ugrave", "\u{d9}"), ("Upsilon", "\u{3a5}"), ("Uuml", "\u{dc}"),
    ("Xi", "\u{39e}"), ("Yacute", "\u{dd}"), ("Yuml", "\u{178}"), ("Zeta", "\u{396}"), ("aacute", "\u{e1}"),
    ("acirc", "\u{e2}"), ("acute", "\u{b4}"), ("aelig", "\u{e6}"), ("agrave", "\u{e0}"), ("alefsym", "\u{2135}"),
    ("alpha", "\u{3b1}"), ("amp", "\u{26}"), ("and", "\u{2227}"), ("ang", "\u{2220}"), ("apos", "\u{27}"),
    ("aring", "\u{e5}"), ("asymp", "\u{2248}"), ("atilde", "\u{e3}"), ("auml", "\u{e4}"), ("bdquo", "\u{201e}"),
    ("beta", "\u{3b2}"), ("brvbar", "\u{a6}"), ("bull", "\u{2022}"), ("cap", "\u{2229}"), ("ccedil", "\u{e7}"),
    ("cedil", "\u{b8}"), ("cent", "\u{a2}"), ("chi", "\u{3c7}"), ("circ", "\u{2c6}"), ("clubs", "\u{2663}"),
    ("cong", "\u{2245}"), ("copy", "\u{a9}"), ("crarr", "\u{21b5}"), ("cup", "\u{222a}"), ("curren", "\u{a4}"),
    ("dArr", "\u{21d3}"), ("dagger", "\u{2020}"), ("darr", "\u{2193}"), ("deg", "\u{b0}"), ("delta", "\u{3b4}"),
    ("diams", "\u{2666}"), ("divide", "\u{f7}"), ("eacute", "\u{e9}"), ("ecirc", "\u{ea}"), ("egrave", "\u{e8}"),
    ("empty", "\u{2205}"), ("emsp", "\u{2003}"), ("ensp", "\u{2002}"), ("epsilon", "\u{3b5}"),
    ("equiv", "\u{2261}"), ("eta", "\u{3b7}"), ("eth", "\u{f0}"), ("euml", "\u{eb}"), ("euro", "\u{20ac}"),
    ("exist", "\u{2203}"), ("fnof", "\u{192}"), ("forall", "\u{2200}"), ("frac12", "\u{bd}"), ("frac14", "\u{bc}"),
    ("frac34", "\u{be}"), ("frasl", "\u{2044}"), ("gamma", "\u{3b3}"), ("ge", "\u{2265}"), ("gt", "\u{3e}"),
    ("hArr", "\u{21d4}"), ("harr", "\u{2194}"), ("hearts", "\u{2665}"), ("hellip", "\u{2026}"),
    ("iacute", "\u{ed}"), ("icirc", "\u{ee}"), ("iexcl", "\u{a1}"), ("igrave", "\u{ec}"), ("image", "\u{2111}"),
    ("infin", "\u{221e}"), ("int", "\u{222b}"), ("iota", "\u{3b9}"), ("iquest", "\u{bf}"), ("isin", "\u{2208}"),
    ("iuml", "\u{ef}"), ("kappa", "\u{3ba}"), ("lArr", "\u{21d0}"), ("lambda", "\u{3bb}"), ("lang", "\u{27e8}"),
    ("laquo", "\u{ab}"), ("larr", "\u{2190}"), ("lceil", "\u{2308}"), ("ldquo", "\u{201c}"), ("le", "\u{2264}"),
    ("lfloor", "\u{230a}"), ("lowast", "\u{2217}"), ("loz", "\u{25ca}"), ("lrm", "\u{200e}"),
    ("lsaquo", "\u{2039}"), ("lsquo", "\u{2018}"), ("lt", "\u{3c}"), ("macr", "\u{af}"), ("mdash", "\u{2014}"),
    ("micro", "\u{b5}"), ("middot", "\u{b7}"), ("minus", "\u{2212}"), ("mu", "\u{3bc}"), ("nabla", "\u{2207}"),
    ("nbsp", "\u{a0}"), ("ndash", "\u{2013}"), ("ne", "\u{2260}"), ("ni", "\u{220b}"), ("not", "\u{ac}"),
    ("notin", "\u{2209}"), ("nsub", "\u{2284}"), ("ntilde", "\u{f1}"), ("nu", "\u{3bd}"), ("oacute", "\u{f3}"),
    ("ocirc", "\u{f4}"), ("oelig", "\u{153}"), ("ograve", "\u{f2}"), ("oline", "\u{203e}"), ("omega", "\u{3c9}"),
    ("omicron", "\u{3bf}"), ("oplus", "\u{2295}"), ("or", "\u{2228}"), ("ordf", "\u{aa}"), ("ordm", "\u{ba}"),
    ("oslash", "\u{f8}"), ("otilde", "\u{f5}"), ("otimes", "\u{2297}"), ("ouml", "\u{f6}"), ("para", "\u{b6}"),
    ("part", "\u{2202}"), ("permil", "\u{2030}"), ("perp", "\u{22a5}"), ("phi", "\u{3c6}"), ("pi", "\u{3c0}"),
    ("piv", "\u{3d6}"), ("plusmn", "\u{b1}"), ("pound", "\u{a3}"), ("prime", "\u{2032}"), ("prod", "\u{220f}"),
    ("prop", "\u{221d}"), ("psi", "\u{3c8}"), ("quot", "\u{22}"), ("rArr", "\u{21d2}"), ("radic", "\u{221a}"),
    ("rang", "\u{27e9}"), ("raquo", "\u{bb}"), ("rarr", "\u{2192}"), ("rceil", "\u{2309}"), ("rdquo", "\u{201d}"),
    ("real", "\u{211c}"), ("reg", "\u{ae}"), ("rfloor", "\u{230b}"), ("rho", "\u{3c1}"), ("rlm", "\u{200f}"),
    ("rsaquo", "\u{203a}"), ("rsquo", "\u{2019}"), ("sbquo", "\u{201a}"), ("scaron", "\u{161}"),
    ("sdot", "\u{22c5}"), ("sect", "\u{a7}"), ("shy", "\u{ad}"), ("sigma", "\u{3c3}"), ("sigmaf", "\u{3c2}"),
    ("sim", "\u{223c}"), ("spades", "\u{2660}"), ("sub", "\u{2282}"), ("sube", "\u{2286}"), ("sum", "\u{2211}"),
    ("sup", "\u{2283}"), ("sup1", "\u{b9}"), ("sup2", "\u{b2}"), ("sup3", "\u{b3}"), ("supe", "\u{2287}"),
    ("szlig", "\u{df}"), ("tau", "\u{3c4}"), ("there4", "\u{2234}"), ("theta", "\u{3b8}"), ("thetasym", "\u{3d1}"),
    ("thinsp", "\u{2009}"), ("thorn", "\u{fe}"), ("tilde", "\u{2dc}"), ("times", "\u{d7}"), ("trade", "\u{2122}"),
    ("uArr", "\u{21d1}"), ("uacute", "\u{fa}"), ("uarr", "\u{2191}"), ("ucirc", "\u{fb}"), ("ugrave", "\u{f9}"),
    ("uml", "\u{a8}"), ("upsih", "\u{3d2}"), ("upsilon", "\u{3c5}"), ("uuml", "\u{fc}"), ("weierp", "\u{2118}"),
    ("xi", "\u{3be}"), ("yacute", "\u{fd}"), ("yen", "\u{a5}"), ("yuml", "\u{ff}"), ("zeta", "\u{3b6}"),
    ("zwj", "\u{200d}"), ("zwnj", "\u{200c}"),
];

/// All names of the standard; the table is only made when a rare name is met.
static BY_NAME: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let bare = |e: &'static entities::Entity| e.entity.strip_prefix('&')?.strip_suffix(';').map(|n| (n, e.characters));
    entities::ENTITIES.iter().filter_map(bare).collect()
});

/// Where in [`COMMON`] the names with a first letter begin; the entry behind it tells where they end.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it: an index out of range is an error")]
const FIRST_LETTERS: [u8; 129] = {
    let mut from = [0; 129];
    let mut letter = 0;
    let mut at = 0;
    while letter < 128 {
        from[letter] = at;
        while (at as usize) < COMMON.len() && COMMON[at as usize].0.as_bytes()[0] as usize == letter {
            at += 1;
        }
        letter += 1;
    }
    from[128] = at;
    from
};

/// The characters of a frequent name: a handful share its first letter, and their lengths tell most of them apart.
fn common(name: &str) -> Option<&'static str> {
    let letter = usize::from(*name.as_bytes().first()?);
    let (from, to) = (*FIRST_LETTERS.get(letter)?, *FIRST_LETTERS.get(letter + 1)?);
    let candidates = COMMON.get(usize::from(from)..usize::from(to))?;
    candidates.iter().find(|(n, _)| n.len() == name.len() && *n == name).map(|(_, characters)| *characters)
}

/// The characters of a named reference, given its name without `&` and `;`.
#[must_use]
pub fn named(name: &str) -> Option<&'static str> {
    if let Some(characters) = common(name) {
        return Some(characters);
    }
    BY_NAME.get(name).copied()
}

/// Decodes every character reference of a text; what is none stays as it stands.
#[must_use]
pub fn decode(text: &str) -> Cow<'_, str> {
    decode_with(text, false)
}

/// The same for the value of an attribute: there a reference without a semicolon is none where a letter, a digit or `=`
/// follows it (section 13.2.5.73), so that parameters of addresses stay what they are.
#[must_use]
pub fn decode_attribute(text: &str) -> Cow<'_, str> {
    decode_with(text, true)
}

fn decode_with(text: &str, in_attribute: bool) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(at) = next {
        let (before, reference) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let used = one(reference, in_attribute, &mut out);
        rest = reference.get(used..).unwrap_or("");
        next = memchr::memchr(b'&', rest.as_bytes());
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The longest name without semicolon that a text begins with; a handful share its first letter.
fn longest_without_semicolon(text: &str) -> Option<&'static str> {
    let letter = text.as_bytes().first()?;
    let from = WITHOUT_SEMICOLON.partition_point(|n| n.as_bytes().first().is_some_and(|first| first < letter));
    let candidates = WITHOUT_SEMICOLON.get(from..)?.iter().take_while(|n| n.as_bytes().first() == Some(letter));
    candidates.filter(|n| text.starts_with(**n)).max_by_key(|n| n.len()).copied()
}

/// Decodes the reference at the start of `text`, which begins with `&`; returns the bytes used, at least one.
fn one(text: &str, in_attribute: bool, out: &mut String) -> usize {
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
    let longest = longest_without_semicolon(name);
    let goes_on = |prefix: &str| {
        body.as_bytes().get(prefix.len()).is_some_and(|next| next.is_ascii_alphanumeric() || *next == b'=')
    };
    if let Some(prefix) = longest
        && !(in_attribute && goes_on(prefix))
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
    fn names_without_semicolon_stand_in_order() {
        assert!(WITHOUT_SEMICOLON.is_sorted());
    }

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
        assert!(COMMON.is_sorted());
        assert!(
            COMMON.iter().all(|(name, characters)| BY_NAME.get(name) == Some(characters)),
            "both tables say the same"
        );
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
