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

/// Names of months and their short forms in English, German, French, Spanish, Italian, Portuguese, Dutch, Danish,
/// Norwegian, Swedish, Finnish, Polish, Czech, Hungarian, Romanian, Turkish, Greek, Russian and Ukrainian, in lower case.
/// With a star the word may go on: languages bend it. Where two of them write one word, it is the same month in both.
#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "jan january januar* j\u{e4}nner j\u{e4}n janvier janv enero ene gennaio gen janeiro januari \
     ianuarie ian stycz* sty leden ledna led ocak oca tammik* janu\u{e1}r \u{3b9}\u{3b1}\u{3bd} \
     \u{3b9}\u{3b1}\u{3bd}\u{3bf}\u{3c5}\u{3b1}\u{3c1}* \u{44f}\u{43d}\u{432} \
     \u{44f}\u{43d}\u{432}\u{430}\u{440}* \u{441}\u{456}\u{447} \u{441}\u{456}\u{447}\u{43d}*",
    "feb february febr februar* feber f\u{e9}vrier f\u{e9}vr f\u{e9}v fevrier fev febrero febbraio \
     fevereiro februari luty lutego lut \u{fa}nor \u{fa}nora \u{fa}no \u{15f}ubat \u{15f}ub subat sub \
     helmik* febru\u{e1}r \u{3c6}\u{3b5}\u{3b2} \
     \u{3c6}\u{3b5}\u{3b2}\u{3c1}\u{3bf}\u{3c5}\u{3b1}\u{3c1}* \u{444}\u{435}\u{432} \
     \u{444}\u{435}\u{432}\u{440} \u{444}\u{435}\u{432}\u{440}\u{430}\u{43b}* \u{43b}\u{44e}\u{442} \
     \u{43b}\u{44e}\u{442}\u{438}\u{439} \u{43b}\u{44e}\u{442}\u{43e}\u{433}\u{43e}",
    "mar march m\u{e4}rz m\u{e4}r mrz mars marzo mar\u{e7}o marco maart mrt marts martie marzec marca \
     b\u{159}ezen b\u{159}ezna b\u{159}e mart maalisk* m\u{e1}rcius m\u{e1}rc m\u{e1}r \
     \u{3bc}\u{3b1}\u{3c1} \u{3bc}\u{3ac}\u{3c1} \u{3bc}\u{3b1}\u{3c1}\u{3c4}* \
     \u{3bc}\u{3ac}\u{3c1}\u{3c4}* \u{43c}\u{430}\u{440} \u{43c}\u{430}\u{440}\u{442} \
     \u{43c}\u{430}\u{440}\u{442}\u{430} \u{431}\u{435}\u{440} \u{431}\u{435}\u{440}\u{435}\u{437}*",
    "apr april avril avr abril abr aprile kwiecie\u{144} kwietnia kwi duben dubna dub nisan nis \
     huhtik* \u{e1}prilis \u{e1}pr aprilie \u{3b1}\u{3c0}\u{3c1} \u{3b1}\u{3c0}\u{3c1}\u{3b9}\u{3bb}* \
     \u{430}\u{43f}\u{440} \u{430}\u{43f}\u{440}\u{435}\u{43b}* \u{43a}\u{432}\u{456} \
     \u{43a}\u{432}\u{456}\u{442}*",
    "may mai mayo mag maggio maio mei maj maja kv\u{11b}ten kv\u{11b}tna kv\u{11b} may\u{131}s \
     toukok* m\u{e1}jus m\u{e1}j \u{3bc}\u{3b1}\u{3b9} \u{3bc}\u{3b1}\u{3ca} \u{3bc}\u{3ac}\u{3b9} \
     \u{3bc}\u{3b1}\u{390}\u{3bf}\u{3c5} \u{3bc}\u{3ac}\u{3b9}\u{3bf}\u{3c2} \u{43c}\u{430}\u{439} \
     \u{43c}\u{430}\u{44f} \u{442}\u{440}\u{430} \u{442}\u{440}\u{430}\u{432}*",
    "jun june juni juin junio giugno giu junho czerwiec czerwca cze \u{10d}erven \u{10d}ervna \
     \u{10d}er \u{10d}vn haziran haz kes\u{e4}k* j\u{fa}nius j\u{fa}n iunie iun \
     \u{3b9}\u{3bf}\u{3c5}\u{3bd} \u{3b9}\u{3bf}\u{3c5}\u{3bd}\u{3af}\u{3bf}\u{3c5} \
     \u{3b9}\u{3bf}\u{3cd}\u{3bd}\u{3b9}\u{3bf}\u{3c2} \
     \u{3b9}\u{3bf}\u{3c5}\u{3bd}\u{3b9}\u{3bf}\u{3c5} \u{438}\u{44e}\u{43d} \
     \u{438}\u{44e}\u{43d}\u{44c} \u{438}\u{44e}\u{43d}\u{44f} \u{447}\u{435}\u{440} \
     \u{447}\u{435}\u{440}\u{432}*",
    "jul july juli juillet juil julio luglio lug julho lipiec lipca lip \u{10d}ervenec \u{10d}ervence \
     \u{10d}vc temmuz tem hein\u{e4}k* j\u{fa}lius j\u{fa}l iulie iul \u{3b9}\u{3bf}\u{3c5}\u{3bb} \
     \u{3b9}\u{3bf}\u{3c5}\u{3bb}\u{3af}\u{3bf}\u{3c5} \
     \u{3b9}\u{3bf}\u{3cd}\u{3bb}\u{3b9}\u{3bf}\u{3c2} \
     \u{3b9}\u{3bf}\u{3c5}\u{3bb}\u{3b9}\u{3bf}\u{3c5} \u{438}\u{44e}\u{43b} \
     \u{438}\u{44e}\u{43b}\u{44c} \u{438}\u{44e}\u{43b}\u{44f} \
     \u{43b}\u{438}\u{43f}\u{435}\u{43d}\u{44c} \u{43b}\u{438}\u{43f}\u{43d}\u{44f}",
    "aug august ao\u{fb}t aout ao\u{fb} agosto ago augustus augusti sierpie\u{144} sierpnia sie srpen \
     srpna srp a\u{11f}ustos a\u{11f}u agustos elok* augusztus \u{3b1}\u{3c5}\u{3b3} \
     \u{3b1}\u{3c5}\u{3b3}\u{3bf}\u{3cd}\u{3c3}\u{3c4}\u{3bf}\u{3c5} \
     \u{3b1}\u{3cd}\u{3b3}\u{3bf}\u{3c5}\u{3c3}\u{3c4}\u{3bf}\u{3c2} \u{430}\u{432}\u{433} \
     \u{430}\u{432}\u{433}\u{443}\u{441}\u{442}* \u{441}\u{435}\u{440} \u{441}\u{435}\u{440}\u{43f}*",
    "sep sept september septembre septiembre setiembre settembre set setembro septembrie septemb* \
     wrzesie\u{144} wrze\u{15b}nia wrz z\u{e1}\u{159}\u{ed} z\u{e1}\u{159} eyl\u{fc}l eyl syysk* \
     szeptember szept \u{3c3}\u{3b5}\u{3c0} \u{3c3}\u{3b5}\u{3c0}\u{3c4} \
     \u{3c3}\u{3b5}\u{3c0}\u{3c4}\u{3b5}\u{3bc}\u{3b2}\u{3c1}* \
     \u{3c3}\u{3b5}\u{3c0}\u{3c4}\u{3ad}\u{3bc}\u{3b2}\u{3c1}* \u{441}\u{435}\u{43d} \
     \u{441}\u{435}\u{43d}\u{442} \u{441}\u{435}\u{43d}\u{442}\u{44f}\u{431}\u{440}* \
     \u{432}\u{435}\u{440} \u{432}\u{435}\u{440}\u{435}\u{441}*",
    "oct october octobre octubre ottobre ott outubro out oktober okt octombrie pa\u{17a}dziernik \
     pa\u{17a}dziernika pa\u{17a} \u{159}\u{ed}jen \u{159}\u{ed}jna \u{159}\u{ed}j ekim eki lokak* \
     okt\u{f3}ber \u{3bf}\u{3ba}\u{3c4} \u{3bf}\u{3ba}\u{3c4}\u{3c9}\u{3b2}\u{3c1}* \
     \u{3bf}\u{3ba}\u{3c4}\u{3ce}\u{3b2}\u{3c1}* \u{43e}\u{43a}\u{442} \
     \u{43e}\u{43a}\u{442}\u{44f}\u{431}\u{440}* \u{436}\u{43e}\u{432} \u{436}\u{43e}\u{432}\u{442}*",
    "nov november novembre noviembre novembro noiembrie noi listopad listopada lis kas\u{131}m kas \
     marrask* \u{3bd}\u{3bf}\u{3b5} \u{3bd}\u{3bf}\u{3b5}\u{3bc}\u{3b2}\u{3c1}* \
     \u{3bd}\u{3bf}\u{3ad}\u{3bc}\u{3b2}\u{3c1}* \u{43d}\u{43e}\u{44f} \u{43d}\u{43e}\u{44f}\u{431} \
     \u{43d}\u{43e}\u{44f}\u{431}\u{440}* \u{43b}\u{438}\u{441} \
     \u{43b}\u{438}\u{441}\u{442}\u{43e}\u{43f}\u{430}\u{434}*",
    "dec december d\u{e9}cembre d\u{e9}c decembre diciembre dicembre dic dezembro dez dezember \
     decembrie desember des grudzie\u{144} grudnia gru prosinec prosince pro aral\u{131}k ara jouluk* \
     \u{3b4}\u{3b5}\u{3ba} \u{3b4}\u{3b5}\u{3ba}\u{3b5}\u{3bc}\u{3b2}\u{3c1}* \
     \u{3b4}\u{3b5}\u{3ba}\u{3ad}\u{3bc}\u{3b2}\u{3c1}* \u{434}\u{435}\u{43a} \
     \u{434}\u{435}\u{43a}\u{430}\u{431}\u{440}* \u{433}\u{440}\u{443} \u{433}\u{440}\u{443}\u{434}*",
];

/// The month of a word in lower case.
fn month(word: &str) -> Option<i64> {
    let is_named = |name: &str| match name.strip_suffix('*') {
        Some(start) => word.strip_prefix(start).is_some_and(|rest| rest.chars().count() <= MAX_ENDING),
        None => name == word,
    };
    let at = MONTHS.iter().position(|names| names.split(' ').any(is_named))?;
    i64::try_from(at).ok().map(|at| at + 1)
}

/// Letters by which a bent name of a month goes on.
const MAX_ENDING: usize = 6;

/// A date as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// It has a time of day but no zone that is known; it was read as UTC.
    pub zone_guessed: bool,
}

/// Seconds since 1970 in UTC of a written date; `None` where the text is no date.
#[must_use]
pub fn parse(written: &str) -> Option<i64> {
    read(written).map(|date| date.seconds)
}

/// Whether a header field's text is a date that a server will understand when it comes back: words and a time of day, as
/// in each of the three forms (RFC 9110, section 5.6.7) and in those that differ from them in the zone alone.
#[must_use]
pub fn is_http_date(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.contains(':') && parse(text).is_some()
}

/// The same, with what had to be guessed.
#[must_use]
pub fn read(written: &str) -> Option<Date> {
    let text = written.trim();
    if text.is_empty() || text.len() > MAX_LENGTH {
        return None;
    }
    if let Some(seconds) = epoch(text) {
        return Some(Date { seconds, zone_guessed: false });
    }
    let mut civil = Civil::default();
    let seconds = if let Some(numbers) = ideographs(text) {
        iso(&numbers, &mut civil)
    } else {
        iso(text, &mut civil).or_else(|| numeric(text, &mut civil)).or_else(|| words(text, &mut civil))
    }?;
    Some(Date { seconds, zone_guessed: civil.zone_guessed })
}

/// Japanese, Chinese and Korean dates (`2026\u{5e74}9\u{6708}2\u{65e5} 7:15`) in the form of ISO 8601.
fn ideographs(text: &str) -> Option<String> {
    if !text.contains(['\u{5e74}', '\u{b144}']) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{5e74}' | '\u{b144}' | '\u{6708}' | '\u{c6d4}' => {
                out.truncate(out.trim_end().len());
                out.push('-');
            }
            '\u{65e5}' | '\u{c77c}' => out.push(' '),
            '\u{6642}' | '\u{65f6}' | '\u{c2dc}' | '\u{5206}' | '\u{bd84}' => out.push(':'),
            '\u{79d2}' | '\u{cd08}' => {}
            // Blanks between the parts of a date mean nothing.
            c if c.is_whitespace() && out.ends_with('-') => {}
            c => out.push(c),
        }
    }
    Some(out.trim().trim_end_matches([':', '-']).to_owned())
}

/// Dates in numbers whose order cannot be mistaken: `27.09.2026` is written day first, and in `09/27/2026` only one of
/// the two can be a month.
fn numeric(text: &str, civil: &mut Civil) -> Option<i64> {
    let (first, rest) = digits(text, 1, 2)?;
    let separator = rest.chars().next().filter(|c| matches!(c, '.' | '/' | '-'))?;
    let (second, rest) = digits(rest.get(1..)?.trim_start(), 1, 2)?;
    let (year, rest) = digits(rest.strip_prefix(separator)?.trim_start(), 4, 4)?;
    let (day, month) = match (separator, first > 12, second > 12) {
        ('.', _, false) | (_, true, false) => (first, second),
        (_, false, true) => (second, first),
        _ if first == second => (first, second),
        _ => return None,
    };
    *civil = Civil { year, month, day, ..Civil::default() };
    time_and_zone(rest.trim_start_matches([',', ' ']), civil)?;
    civil.seconds()
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
    zone_guessed: bool,
    month_is_settled: bool,
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

/// ISO 8601 and RFC 3339: `2026-09-03`, `2026-09`, `2026`, `20260903T101500Z`, `2026-246`, with `T` or a blank, any
/// offset.
fn iso(text: &str, civil: &mut Civil) -> Option<i64> {
    *civil = Civil { month: 1, day: 1, ..Civil::default() };
    let run = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest;
    if run == 8 {
        let (ymd, tail) = digits(text, 8, 8)?;
        (civil.year, civil.month, civil.day) = (ymd / 10_000, ymd / 100 % 100, ymd % 100);
        rest = tail;
    } else {
        (civil.year, rest) = digits(text, 4, 4)?;
        let tail = rest.strip_prefix(['-', '/', '.']).unwrap_or("");
        if let Some((of_year, tail)) = digits(tail, 3, 3).filter(|(n, _)| (1..=366).contains(n)) {
            // The day of the year (ISO 8601, section 5.2.3).
            let (_, month, day) = civil_from_days(days_from_civil(civil.year, 1, 1) + of_year - 1);
            (civil.month, civil.day, rest) = (month, day, tail);
        } else {
            for field in [&mut civil.month, &mut civil.day] {
                let Some(tail) = rest.strip_prefix(['-', '/', '.']) else { break };
                (*field, rest) = digits(tail, 1, 2)?;
            }
        }
    }
    time_and_zone(rest.trim_start_matches(['T', 't']).trim_start(), civil)?;
    civil.seconds()
}

/// A time of day with its zone, or nothing.
fn time_and_zone(text: &str, civil: &mut Civil) -> Option<()> {
    if !text.is_empty() {
        let rest = clock(text, civil)?;
        let zone = zone(rest)?;
        (civil.offset_minutes, civil.zone_guessed) = (zone.minutes, zone.guessed);
    }
    Some(())
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

/// A zone as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Zone {
    minutes: i64,
    guessed: bool,
}

impl Zone {
    const GUESSED: Self = Self { minutes: 0, guessed: true };
}

/// The offset of what follows a time: a name, `+02:00`, `+0200`, `+2`, `GMT+2`. Nothing, a military letter (RFC 5322,
/// section 4.3: their signs were published wrong, so they say nothing) and a name in capitals that is not known are UTC
/// by guess. A comment in brackets is passed over (RFC 2822, section 3.2.3).
fn zone(text: &str) -> Option<Zone> {
    let text = text.split(['(', '[']).next().unwrap_or("").trim();
    if text.is_empty() {
        return Some(Zone::GUESSED);
    }
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = text.split_at_checked(letters)?;
    let rest = rest.trim();
    let named = if name.is_empty() {
        0
    } else {
        let lower = name.to_ascii_lowercase();
        if lower == "uhr" && rest.is_empty() {
            return Some(Zone::GUESSED);
        }
        match ZONES.iter().find(|(n, _)| *n == lower) {
            Some((_, minutes)) => *minutes,
            None if rest.is_empty() && name.len() <= 5 && name.bytes().all(|b| b.is_ascii_uppercase()) => {
                return Some(Zone::GUESSED);
            }
            None => return None,
        }
    };
    let known = |minutes| Some(Zone { minutes, guessed: false });
    let Some(sign) = rest.chars().next() else { return known(named) };
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
    known(named + factor * (hours * 60 + minutes))
}

/// Dates with a month name: RFC 822 and 2822 (`Wed, 02 Sep 2026 07:15:00 GMT`), RFC 850, asctime, and the orders
/// that people use (`September 2, 2026`).
fn words(text: &str, civil: &mut Civil) -> Option<i64> {
    *civil = Civil::default();
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
            let after = clock(rest, civil)?;
            // A year may stand behind the time, with or without a zone between (asctime).
            let (zone, trailing_year) = zone_and_year(after)?;
            (civil.offset_minutes, civil.zone_guessed) = (zone.minutes, zone.guessed);
            if let Some(found) = trailing_year {
                year = year.or(Some(found));
            }
            break;
        }
        // Names of days in any language, "at", "de" and the like say nothing that is needed.
        if !date_words(word, civil, &mut year)? && !is_word(word) {
            return None;
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

/// Whether a word may stand in a date without meaning anything: letters only, not longer than the name of a day.
fn is_word(word: &str) -> bool {
    word.chars().count() <= 14 && word.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '-' | '\''))
}

/// The zone that follows a time, and the year that asctime puts last.
fn zone_and_year(text: &str) -> Option<(Zone, Option<(i64, usize)>)> {
    let text = text.split('(').next().unwrap_or("").trim();
    if let Some((before, last)) = text.rsplit_once(char::is_whitespace)
        && let Some((number, "")) = digits(last, 4, 4)
        && !before.trim_end().ends_with(['+', '-'])
    {
        return Some((zone(before)?, Some((number, 4))));
    }
    if let Some((number, "")) = digits(text, 4, 4) {
        return Some((Zone::GUESSED, Some((number, 4))));
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
            let suffix = suffix.to_lowercase();
            let ordinal = ["", "st", "nd", "rd", "th", "er", "e", "de", "\u{ba}", "\u{aa}"];
            if !ordinal.contains(&suffix.as_str()) {
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
        let lower = piece.to_lowercase();
        match month(&lower) {
            // Names of days begin as those of months do (mardi, maandag); the month comes later, or behind the day.
            Some(found) if !civil.month_is_settled => {
                civil.month = found;
                civil.month_is_settled = civil.day != 0;
            }
            Some(_) => {}
            None => return Some(false),
        }
    }
    Some(true)
}

/// The host's clock: seconds since 1970 and the fraction as written, dot included, so that it is kept.
#[must_use]
pub fn instant(written: &str) -> Option<(i64, String)> {
    let seconds = iso(written.trim(), &mut Civil::default())?;
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
    fn only_a_date_in_words_goes_back_to_a_server() {
        for date in [
            "Sun, 31 May 2026 23:59:59 GMT",
            "Sunday, 31-May-26 23:59:59 GMT",
            "Sun May 31 23:59:59 2026",
            "Sun, 31 May 2026 23:59:59 +0000",
        ] {
            assert!(is_http_date(date), "{date}");
        }
        for none in
            ["2026-06-01 10:00", "2026-06-01T10:00:00Z", "1780272000", "yesterday", "Sun, 31 May 2026", "", "\"v1\""]
        {
            assert!(!is_http_date(none), "{none}");
        }
    }

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
    fn months_are_read_in_many_languages() {
        let at = "2026-09-02T00:00:00Z";
        for written in [
            "2. September 2026",
            "Mittwoch, 2. Sept. 2026",
            "mercredi 2 septembre 2026",
            "2 de septiembre de 2026",
            "mercoled\u{ec} 2 settembre 2026",
            "2 de setembro de 2026",
            "woensdag 2 september 2026",
            "onsdag den 2 september 2026",
            "2 wrze\u{15b}nia 2026",
            "2. z\u{e1}\u{159}\u{ed} 2026",
            "2 Eyl\u{fc}l 2026",
            "2 \u{3a3}\u{3b5}\u{3c0}\u{3c4}\u{3b5}\u{3bc}\u{3b2}\u{3c1}\u{3af}\u{3bf}\u{3c5} 2026",
            "2 \u{441}\u{435}\u{43d}\u{442}\u{44f}\u{431}\u{440}\u{44f} 2026",
            "2 \u{432}\u{435}\u{440}\u{435}\u{441}\u{43d}\u{44f} 2026",
            "2. syyskuuta 2026",
            "2026\u{5e74}9\u{6708}2\u{65e5}",
            "2026\u{b144} 9\u{c6d4} 2\u{c77c}",
            "02.09.2026",
        ] {
            assert_eq!(parse(written).map(rfc3339).as_deref(), Some(at), "{written}");
        }
        // Names of days that begin as months do.
        for (written, expected) in [
            ("mar. 1 sept. 2026", "2026-09-01T00:00:00Z"),
            ("martes, 1 de diciembre de 2026", "2026-12-01T00:00:00Z"),
            ("maandag 7 december 2026", "2026-12-07T00:00:00Z"),
            (
                "\u{441}\u{435}\u{440}\u{435}\u{434}\u{430}, 2 \u{433}\u{440}\u{443}\u{434}\u{43d}\u{44f} 2026",
                "2026-12-02T00:00:00Z",
            ),
            ("Tue, 3 Mar 2026", "2026-03-03T00:00:00Z"),
            ("1 juin 2026", "2026-06-01T00:00:00Z"),
            ("14 juillet 2026", "2026-07-14T00:00:00Z"),
            ("5. \u{10d}ervence 2026", "2026-07-05T00:00:00Z"),
            ("5. \u{10d}ervna 2026", "2026-06-05T00:00:00Z"),
            ("Montag, 7. J\u{e4}nner 2026", "2026-01-07T00:00:00Z"),
            ("09/27/2026", "2026-09-27T00:00:00Z"),
            ("27/09/2026 07:15", "2026-09-27T07:15:00Z"),
            ("2026-246", "2026-09-03T00:00:00Z"),
            ("2026\u{5e74}9\u{6708}2\u{65e5} 7\u{6642}15\u{5206}", "2026-09-02T07:15:00Z"),
        ] {
            assert_eq!(parse(written).map(rfc3339).as_deref(), Some(expected), "{written}");
        }
    }

    #[test]
    fn a_zone_that_is_missing_or_unknown_is_told() {
        for (written, guessed) in [
            ("Wed, 02 Sep 2026 07:15:00 GMT", false),
            ("Wed, 02 Sep 2026 07:15:00", true),
            ("Wed, 02 Sep 2026 07:15:00 X", true),
            ("Wed, 02 Sep 2026 07:15:00 Z", false),
            ("Wed, 02 Sep 2026 07:15:00 QQT", true),
            ("2026-09-02T07:15:00", true),
            ("2026-09-02", false),
            ("1788333300", false),
            ("2. September 2026, 07:15 Uhr", true),
        ] {
            assert_eq!(read(written).map(|d| d.zone_guessed), Some(guessed), "{written}");
        }
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
            "09/10/2026",
            // Words that only begin as months do.
            "a marvellous 2 2026",
            "2 decent 2026",
            "mayor 2 2026",
            "2 second 2026",
            "2026-367",
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
