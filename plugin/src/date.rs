//! Dates as feeds write them.
//!
//! Owns the way from a written date to seconds since 1970 in UTC: RFC 822, 2822 and 9110, RFC 3339 and the other
//! forms of ISO 8601, and what people type. A text that is no date gives none; no date is ever invented. A missing
//! zone counts as UTC. Fractions of a second are dropped.

/// The longest text that is looked at; real dates have at most some forty characters.
const MAX_LENGTH: usize = 128;

/// The last instant that every reader of RFC 3339 takes, 9999-12-30T22:00:00Z; some stop two hours before the year's
/// end, since a zone may lie that far.
const LAST: i64 = 253_402_207_200;

/// The first: 0001-01-01T00:00:00Z.
const FIRST: i64 = -62_135_596_800;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Zone names with their offset in minutes: RFC 822 section 5.1, and those that feeds are seen to use.
const ZONES: &[(&str, i64)] = &[
    ("z", 0),
    ("ut", 0),
    ("utc", 0),
    ("gmt", 0),
    ("wet", 0),
    ("west", 60),
    ("bst", 60),
    ("cet", 60),
    ("cest", 120),
    ("met", 60),
    ("mest", 120),
    ("mez", 60),
    ("mesz", 120),
    ("eet", 120),
    ("eest", 180),
    ("msk", 180),
    ("msd", 240),
    ("ist", 330),
    ("hkt", 480),
    ("sgt", 480),
    ("awst", 480),
    ("jst", 540),
    ("kst", 540),
    ("aest", 600),
    ("aedt", 660),
    ("nzst", 720),
    ("nzdt", 780),
    ("ast", -240),
    ("adt", -180),
    ("est", -300),
    ("edt", -240),
    ("et", -300),
    ("cst", -360),
    ("cdt", -300),
    ("ct", -360),
    ("mst", -420),
    ("mdt", -360),
    ("mt", -420),
    ("pst", -480),
    ("pdt", -420),
    ("pt", -480),
    ("akst", -540),
    ("akdt", -480),
    ("hst", -600),
    ("brt", -180),
    ("art", -180),
];

/// The first letters of the English month names.
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The first letters of the English names of days.
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Seconds since 1970 in UTC of a written date; `None` where the text is no date.
#[must_use]
pub fn parse(written: &str) -> Option<i64> {
    let text = written.trim();
    if text.is_empty() || text.len() > MAX_LENGTH {
        return None;
    }
    epoch(text).or_else(|| iso(text)).or_else(|| words(text))
}

/// Seconds or milliseconds since 1970, written as a bare number of 9 to 13 digits.
fn epoch(text: &str) -> Option<i64> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: i64 = text.parse().ok()?;
    match text.len() {
        9..=10 => Some(number),
        12..=13 => Some(number / 1_000),
        _ => None,
    }
}

/// A civil date and time with its offset from UTC.
#[derive(Debug, Clone, Copy, Default)]
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    offset_minutes: i64,
}

impl Civil {
    fn seconds(self) -> Option<i64> {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let days_in_month = match self.month {
            2 => 28 + i64::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        // 24:00 is the start of the next day (ISO 8601); a leap second counts as the second before it.
        let end_of_day = self.hour == 24 && self.minute == 0 && self.second == 0;
        let in_range = (1..=days_in_month).contains(&self.day)
            && ((0..24).contains(&self.hour) || end_of_day)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (1..=9_999).contains(&self.year)
            && self.offset_minutes.abs() < 24 * 60;
        if !in_range {
            return None;
        }
        let clock = self.hour * 3_600 + self.minute * 60 + self.second.min(59);
        let seconds = days_from_civil(self.year, self.month, self.day) * DAY + clock - self.offset_minutes * 60;
        (FIRST..=LAST).contains(&seconds).then_some(seconds)
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, counted from the start of a year that begins in March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date of a number of days since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// RFC 3339 in UTC with whole seconds.
#[must_use]
pub fn rfc3339(seconds: i64) -> String {
    let (year, month, day) = civil_from_days(seconds.div_euclid(DAY));
    let clock = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Takes digits off the front; `None` where there are none or more than `most`.
fn digits(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    if count < least || count > most {
        return None;
    }
    let (number, rest) = text.split_at_checked(count)?;
    Some((number.parse().ok()?, rest))
}

/// ISO 8601 and RFC 3339: `2026-09-03`, `2026-09`, `2026`, `20260903T101500Z`, with `T` or a blank, any offset.
fn iso(text: &str) -> Option<i64> {
    let mut civil = Civil { month: 1, day: 1, ..Civil::default() };
    let run = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest;
    if run == 8 {
        let (ymd, tail) = digits(text, 8, 8)?;
        (civil.year, civil.month, civil.day) = (ymd / 10_000, ymd / 100 % 100, ymd % 100);
        rest = tail;
    } else {
        (civil.year, rest) = digits(text, 4, 4)?;
        for (field, separator) in [(&mut civil.month, ['-', '/']), (&mut civil.day, ['-', '/'])] {
            let Some(tail) = rest.strip_prefix(separator) else { break };
            (*field, rest) = digits(tail, 1, 2)?;
        }
    }
    let time = rest.trim_start_matches(['T', 't']).trim_start();
    if time.is_empty() {
        return civil.seconds();
    }
    rest = clock(time, &mut civil)?;
    civil.offset_minutes = zone(rest)?;
    civil.seconds()
}

/// Reads `10:15`, `10:15:30`, `10:15:30.25` or `101530`; returns the rest.
fn clock<'a>(text: &'a str, civil: &mut Civil) -> Option<&'a str> {
    let run = text.bytes().take_while(u8::is_ascii_digit).count();
    if run == 6 || run == 4 {
        let (number, rest) = digits(text, run, run)?;
        let number = if run == 4 { number * 100 } else { number };
        (civil.hour, civil.minute, civil.second) = (number / 10_000, number / 100 % 100, number % 100);
        return Some(fraction(rest));
    }
    let (hour, rest) = digits(text, 1, 2)?;
    let rest = rest.strip_prefix([':', '.', 'h'])?;
    let (minute, mut rest) = digits(rest, 1, 2)?;
    (civil.hour, civil.minute) = (hour, minute);
    if let Some(tail) = rest.strip_prefix([':', '.'])
        && let Some((second, tail)) = digits(tail, 1, 2)
    {
        civil.second = second;
        rest = fraction(tail);
    }
    let trimmed = rest.trim_start();
    let lower: String = trimmed.chars().take(2).flat_map(char::to_lowercase).collect();
    if (lower == "pm" || lower == "am") && (1..=12).contains(&civil.hour) {
        civil.hour = civil.hour % 12 + if lower == "pm" { 12 } else { 0 };
        rest = trimmed.get(2..).unwrap_or("");
    }
    Some(rest)
}

/// Passes over a fraction of a second.
fn fraction(text: &str) -> &str {
    text.strip_prefix(['.', ',']).map_or(text, |tail| tail.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The offset in minutes of what follows a time: a name, `+02:00`, `+0200`, `+2`, `GMT+2`, or nothing (UTC).
/// A comment in brackets is passed over (RFC 2822, section 3.2.3).
fn zone(text: &str) -> Option<i64> {
    let text = text.split('(').next().unwrap_or("").trim();
    if text.is_empty() {
        return Some(0);
    }
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = text.split_at_checked(letters)?;
    let rest = rest.trim();
    let named = if name.is_empty() {
        0
    } else {
        let lower = name.to_ascii_lowercase();
        ZONES.iter().find(|(n, _)| *n == lower)?.1
    };
    let Some(sign) = rest.chars().next() else { return Some(named) };
    let factor = match sign {
        '+' => 1,
        '-' | '\u{2212}' => -1,
        _ => return None,
    };
    let numbers = rest.get(sign.len_utf8()..)?.trim_start();
    let run = numbers.bytes().take_while(u8::is_ascii_digit).count();
    let (hours, minutes) = match run {
        4 => {
            let (n, tail) = digits(numbers, 4, 4)?;
            tail.trim().is_empty().then_some((n / 100, n % 100))?
        }
        1 | 2 => {
            let (hours, tail) = digits(numbers, 1, 2)?;
            match tail.strip_prefix(':') {
                Some(tail) => (hours, digits(tail, 2, 2)?.0),
                None => tail.trim().is_empty().then_some((hours, 0))?,
            }
        }
        _ => return None,
    };
    Some(named + factor * (hours * 60 + minutes))
}

/// Dates with a month name: RFC 822 and 2822 (`Wed, 02 Sep 2026 07:15:00 GMT`), RFC 850, asctime, and the orders
/// that people use (`September 2, 2026`).
fn words(text: &str) -> Option<i64> {
    let mut civil = Civil { day: 0, ..Civil::default() };
    let mut year: Option<(i64, usize)> = None;
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '/'));
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '/')).unwrap_or(rest.len());
        let (word, tail) = rest.split_at_checked(length)?;
        if word.is_empty() {
            break;
        }
        if civil.month != 0 && civil.day != 0 && word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit()) {
            let after = clock(rest, &mut civil)?;
            // A year may stand behind the time, with or without a zone between (asctime).
            let (offset, trailing_year) = zone_and_year(after)?;
            civil.offset_minutes = offset;
            if let Some(found) = trailing_year {
                year = year.or(Some(found));
            }
            break;
        }
        if !date_words(word, &mut civil, &mut year)? {
            // "at", "um" and the like between date and time.
            if !word.chars().all(char::is_alphabetic) || word.len() > 4 {
                return None;
            }
        }
        rest = tail;
    }
    let (number, length) = year?;
    // Two digits: RFC 2822 section 4.3 (00 to 49 are 2000 and later); three are years since 1900.
    civil.year = match (length, number) {
        (1..=2, 0..=49) => 2_000 + number,
        (1..=3, _) => 1_900 + number,
        _ => number,
    };
    civil.seconds()
}

/// The zone that follows a time, and the year that asctime puts last.
fn zone_and_year(text: &str) -> Option<(i64, Option<(i64, usize)>)> {
    let text = text.split('(').next().unwrap_or("").trim();
    if let Some((before, last)) = text.rsplit_once(char::is_whitespace)
        && let Some((number, "")) = digits(last, 4, 4)
        && !before.trim_end().ends_with(['+', '-'])
    {
        return Some((zone(before)?, Some((number, 4))));
    }
    if let Some((number, "")) = digits(text, 4, 4) {
        return Some((0, Some((number, 4))));
    }
    Some((zone(text)?, None))
}

/// Takes the words of a date, which may be joined by hyphens (`02-Sep-26`): day name, day, month, year.
/// `Some(false)` where the word is none of these; `None` where it contradicts.
fn date_words(word: &str, civil: &mut Civil, year: &mut Option<(i64, usize)>) -> Option<bool> {
    for piece in word.split('-').filter(|p| !p.is_empty()) {
        let piece = piece.trim_end_matches('.');
        if piece.starts_with(|c: char| c.is_ascii_digit()) {
            let run = piece.bytes().take_while(u8::is_ascii_digit).count();
            let (number, suffix) = digits(piece, 1, 4)?;
            if !matches!(suffix.to_ascii_lowercase().as_str(), "" | "st" | "nd" | "rd" | "th") {
                return None;
            }
            if civil.day == 0 && run <= 2 {
                civil.day = number;
            } else if year.is_none() {
                *year = Some((number, run));
            } else {
                return None;
            }
            continue;
        }
        let lower: String = piece.chars().take(3).flat_map(char::to_lowercase).collect();
        if let Some(month) = MONTHS.iter().position(|m| *m == lower) {
            civil.month = i64::try_from(month).ok()? + 1;
        } else if !DAYS.contains(&lower.as_str()) {
            return Some(false);
        }
    }
    Some(true)
}

/// The host's clock: seconds since 1970 and the fraction as written, dot included, so that it is kept.
#[must_use]
pub fn instant(written: &str) -> Option<(i64, String)> {
    let seconds = iso(written.trim())?;
    let fraction = written
        .split_once('.')
        .map(|(_, f)| f.chars().take_while(char::is_ascii_digit).collect::<String>())
        .filter(|f| !f.is_empty())
        .map(|f| format!(".{f}"))
        .unwrap_or_default();
    Some((seconds, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values by the calendar: `date -u -d '2026-09-02 07:15:00' +%s` is 1788333300.
    #[test]
    fn dates_are_read_in_every_written_form() {
        let at = "2026-09-02T07:15:00Z";
        let table = [
            ("Wed, 02 Sep 2026 07:15:00 GMT", at),
            ("Wed, 2 Sep 2026 07:15 GMT", at),
            ("02 Sep 26 07:15:00 UT", at),
            ("Wed, 02 Sep 2026 09:15:00 +0200", at),
            ("Wed, 02 Sep 2026 09:15:00 CEST", at),
            ("Wed, 02 Sep 2026 09:15:00 GMT+2", at),
            ("Wed, 02 Sep 2026 09:15:00 +02:00", at),
            ("Wed, 02 Sep 2026 03:15:00 EDT (Eastern)", at),
            ("Wednesday, 02-Sep-26 07:15:00 GMT", at),
            ("Wed Sep  2 07:15:00 2026", at),
            ("Wed Sep 2 07:15:00 UTC 2026", at),
            ("Sept. 2, 2026 7:15 am", at),
            ("September 2nd, 2026 07:15", at),
            ("2026-09-02T07:15:00Z", at),
            ("2026-09-02T09:15:00.250+02:00", at),
            ("2026-09-02 07:15:00", at),
            ("2026-09-02T0915+0200", at),
            ("20260902T071500Z", at),
            ("1788333300", at),
            ("1788333300250", at),
            ("2026-09-02", "2026-09-02T00:00:00Z"),
            ("2026-09", "2026-09-01T00:00:00Z"),
            ("2026", "2026-01-01T00:00:00Z"),
            ("2026-05-31T24:00:00Z", "2026-06-01T00:00:00Z"),
            ("Sat, 31 Dec 2016 23:59:60 GMT", "2016-12-31T23:59:59Z"),
            ("Thu, 29 Feb 1996 00:00:00 GMT", "1996-02-29T00:00:00Z"),
            ("Fri, 01 Jan 99 00:00:00 GMT", "1999-01-01T00:00:00Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ];
        for (written, expected) in table {
            assert_eq!(parse(written).map(rfc3339).as_deref(), Some(expected), "{written}");
        }
        assert_eq!(parse(at), Some(1_788_333_300));
    }

    #[test]
    fn what_is_no_date_gives_none() {
        for written in [
            "",
            "yesterday",
            "Wed",
            "2026-13-01",
            "2026-02-30",
            "Wed, 02 Sep 2026 25:00:00 GMT",
            "12",
            "99999999999999999",
            "2026-09-02T07:15:00+99:00",
            "Fri, 31 Dec 9999 23:59:59 GMT",
            "0001-01-01T00:00:00+05:00",
            "02 Foo 2026",
            "\u{661}\u{662}",
            "2026-09-02T07:15:00 Mars",
        ] {
            assert_eq!(parse(written), None, "{written}");
        }
    }

    #[test]
    fn an_instant_keeps_its_fraction() {
        assert_eq!(instant("2026-09-02T07:15:00.125Z"), Some((1_788_333_300, ".125".to_owned())));
        assert_eq!(instant("2026-09-02T07:15:00Z"), Some((1_788_333_300, String::new())));
        assert_eq!(instant("soon"), None);
    }
}
