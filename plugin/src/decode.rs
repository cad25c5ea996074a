//! From bytes to text: which encoding a document really has.
//!
//! Owns the order of evidence: byte order mark, bytes that can only be UTF-8, UTF-16 or UTF-32, the XML declaration, the
//! charset of Content-Type, a detector, and last windows-1252. UTF-8 with a few bad bytes counts as UTF-8. A claim counts
//! only where the bytes decode without error under it. Labels and supersets are those of the WHATWG Encoding Standard.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::notes::{Code, Notes};

/// How far into a document its XML declaration is looked for.
const DECLARATION_BYTES: usize = 1_024;

/// Bytes that the detector looks at: it settles within a few hundred letters.
const DETECTED_BYTES: usize = 256 * 1_024;

/// The text of a document.
///
/// `charset` is the parameter of Content-Type. Takes the bytes so that a document which is UTF-8 is not copied.
#[must_use]
pub fn decode(mut bytes: Vec<u8>, charset: Option<&str>, notes: &Notes) -> String {
    if let Some(text) = utf32(&bytes) {
        notes.add(Code::Reencoded, None, "UTF-32");
        return text;
    }
    let label = charset.and_then(|c| Encoding::for_label(c.as_bytes()));
    if let Some((encoding, length)) = Encoding::for_bom(&bytes) {
        bytes.drain(..length);
        return if encoding == UTF_8 {
            claims(declared(&bytes).into_iter().chain(label), UTF_8, notes);
            utf8_or_lossy(bytes, notes)
        } else {
            claims(label, encoding, notes);
            whole(&bytes, encoding, notes)
        };
    }
    if let Some(encoding) = utf16_without_mark(&bytes) {
        return whole(&bytes, encoding, notes);
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => {
            // ASCII alone proves nothing where the declared encoding hides its letters in escapes (ISO-2022-JP).
            let is_ascii = text.is_ascii();
            let hidden = declared(text.as_bytes()).or(label).filter(|e| !e.is_ascii_compatible() && is_ascii);
            return match hidden {
                Some(encoding) if encoding != UTF_16LE && encoding != UTF_16BE => {
                    whole(text.as_bytes(), encoding, notes)
                }
                _ => {
                    if !is_ascii {
                        claims(declared(text.as_bytes()).into_iter().chain(label), UTF_8, notes);
                    }
                    text
                }
            };
        }
        Err(error) => error.into_bytes(),
    };
    if is_mostly_utf8(&bytes) {
        return utf8_or_lossy(bytes, notes);
    }
    let evidence = [declared(&bytes), label];
    for encoding in evidence.into_iter().flatten().filter(|e| *e != UTF_8) {
        if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(&bytes) {
            let text = text.into_owned();
            notes.add(Code::Reencoded, None, encoding.name());
            claims(evidence.into_iter().flatten(), encoding, notes);
            return text;
        }
    }
    claims(evidence.into_iter().flatten(), WINDOWS_1252, notes);
    whole(&bytes, detected(&bytes), notes)
}

/// The encoding that bytes look like where no claim holds.
fn detected(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes.get(..DETECTED_BYTES.min(bytes.len())).unwrap_or(&[]), true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    // A guess that the bytes contradict is none.
    if guess.decode_without_bom_handling_and_without_replacement(bytes).is_some() { guess } else { WINDOWS_1252 }
}

/// Notes a claim that another encoding is in use.
fn claims(claimed: impl IntoIterator<Item = &'static Encoding>, used: &'static Encoding, notes: &Notes) {
    if let Some(wrong) = claimed.into_iter().find(|c| *c != used) {
        notes.add(Code::CharsetMismatch, None, &format!("claims {}, is {}", wrong.name(), used.name()));
    }
}

fn whole(bytes: &[u8], encoding: &'static Encoding, notes: &Notes) -> String {
    let (text, replaced) = encoding.decode_without_bom_handling(bytes);
    notes.add(Code::Reencoded, None, encoding.name());
    if replaced {
        notes.add(Code::ReplacedBytes, None, "");
    }
    text.into_owned()
}

fn utf8_or_lossy(bytes: Vec<u8>, notes: &Notes) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| {
        notes.add(Code::ReplacedBytes, Some(e.utf8_error().valid_up_to()), "");
        String::from_utf8_lossy(e.as_bytes()).into_owned()
    })
}

/// UTF-32 in either order, by its mark or by the zeros around the first character (XML 1.0, appendix F).
fn utf32(bytes: &[u8]) -> Option<String> {
    let (skip, big) = match bytes.get(..4)? {
        [0xFF, 0xFE, 0, 0] => (4, false),
        [0, 0, 0xFE, 0xFF] => (4, true),
        [b'<' | b'{', 0, 0, 0] => (0, false),
        [0, 0, 0, b'<' | b'{'] => (0, true),
        _ => return None,
    };
    let units = bytes.get(skip..)?.chunks_exact(4);
    Some(
        units
            .map(|unit| {
                let unit = <[u8; 4]>::try_from(unit).unwrap_or_default();
                let value = if big { u32::from_be_bytes(unit) } else { u32::from_le_bytes(unit) };
                char::from_u32(value).unwrap_or('\u{FFFD}')
            })
            .collect(),
    )
}

/// UTF-16 without a mark: every document starts with an ASCII character, so one of two bytes is zero.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes.get(..4)? {
        [a, 0, b, 0] if *a != 0 && *b != 0 => Some(UTF_16LE),
        [0, a, 0, b] if *a != 0 && *b != 0 => Some(UTF_16BE),
        _ => None,
    }
}

/// The encoding that the XML declaration names (XML 1.0, section 4.3.3).
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..bytes.len().min(DECLARATION_BYTES))?;
    let start = memchr::memmem::find(head, b"<?xml")?;
    let declaration = head.get(start..)?;
    let declaration = declaration.get(..memchr::memmem::find(declaration, b"?>")?)?;
    let value = declaration.get(memchr::memmem::find(declaration, b"encoding")? + "encoding".len()..)?;
    let value = value.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    let label = value.get(..memchr::memchr(*quote, value)?)?;
    Encoding::for_label(label)
}

/// Whether the bytes are UTF-8 with a few bad ones: four good sequences of several bytes for each error. In other
/// encodings one such sequence in ten comes by chance.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let mut good = 0_usize;
    let mut bad = 0_usize;
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good >= 4 * bad
}

/// The charset parameter of a Content-Type field (RFC 9110, section 8.3.2).
#[must_use]
pub fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, big: bool) -> Vec<u8> {
        text.encode_utf16().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
    }

    #[test]
    fn the_evidence_decides_in_order() {
        let cyrillic =
            [b"<?xml version='1.0' encoding='windows-1251'?><a>".as_slice(), &[0xCF, 0xF0], b"</a>"].concat();
        let latin = [b"<a>".as_slice(), &[0xE9, 0x92], b"</a>"].concat();
        let table: Vec<(Vec<u8>, Option<&str>, &str)> = vec![
            (b"\xEF\xBB\xBF<a>\xC3\xA9</a>".to_vec(), None, "<a>\u{e9}</a>"),
            ([b"\xFF\xFE".as_slice(), &utf16("<a>\u{e9}</a>", false)].concat(), None, "<a>\u{e9}</a>"),
            ([b"\xFE\xFF".as_slice(), &utf16("<a>\u{e9}</a>", true)].concat(), Some("utf-8"), "<a>\u{e9}</a>"),
            (utf16("<a>\u{e9}</a>", true), None, "<a>\u{e9}</a>"),
            ("<a>\u{e9}</a>".chars().flat_map(|c| (c as u32).to_le_bytes()).collect(), None, "<a>\u{e9}</a>"),
            // UTF-8 wins over any claim, since other encodings do not look like it by chance.
            (
                b"<?xml version='1.0' encoding='iso-8859-1'?><a>\xC3\xA9</a>".to_vec(),
                Some("windows-1251"),
                "<?xml version='1.0' encoding='iso-8859-1'?><a>\u{e9}</a>",
            ),
            (cyrillic.clone(), None, "<?xml version='1.0' encoding='windows-1251'?><a>\u{41f}\u{440}</a>"),
            // The declaration comes before the transport, which is more often wrong.
            (cyrillic, Some("koi8-r"), "<?xml version='1.0' encoding='windows-1251'?><a>\u{41f}\u{440}</a>"),
            (latin.clone(), Some("iso-8859-1"), "<a>\u{e9}\u{2019}</a>"),
            (latin, None, "<a>\u{e9}\u{2019}</a>"),
            // A declaration that the bytes contradict does not count.
            (
                b"<?xml version='1.0' encoding='utf-8'?><a>\xE9</a>".to_vec(),
                None,
                "<?xml version='1.0' encoding='utf-8'?><a>\u{e9}</a>",
            ),
            (
                b"<a>\xC3\xA9\xC3\xA8\xC3\xA9\xC3\xA8\xFF</a>".to_vec(),
                Some("iso-8859-1"),
                "<a>\u{e9}\u{e8}\u{e9}\u{e8}\u{FFFD}</a>",
            ),
            (
                b"<?xml version='1.0' encoding='utf-16'?><a/>".to_vec(),
                None,
                "<?xml version='1.0' encoding='utf-16'?><a/>",
            ),
            (
                b"<?xml version='1.0' encoding='iso-2022-jp'?><a>\x1B$B%F\x1B(B</a>".to_vec(),
                None,
                "<?xml version='1.0' encoding='iso-2022-jp'?><a>\u{30c6}</a>",
            ),
        ];
        for (bytes, charset, expected) in table {
            assert_eq!(decode(bytes, charset, &Notes::default()), expected);
        }
    }

    #[test]
    fn the_charset_parameter_is_found_in_every_written_form() {
        for (value, expected) in [
            ("text/xml; charset=utf-8", Some("utf-8")),
            ("text/xml;Charset=\"ISO-8859-1\"; q=1", Some("ISO-8859-1")),
            ("application/rss+xml", None),
        ] {
            assert_eq!(charset(value), expected);
        }
    }
}
