//! Numbers between a word and a candidate: whether the word may be about one of them rather than the candidate.

use std::ops::Range;

use super::run::{IBAN_MAX, iban_len};
use super::shape::is_year;
use crate::part::Part;
use crate::text::Text;
use crate::text::chars::is_currency;
use crate::words::{Class, Hit, find_words};

/// Octets that are looked at.
const BETWEEN_MAX: usize = 700;
/// Octets of a telephone number, and of a date in words before its year.
const TELEPHONE_MAX: usize = 24;
const DATE_MAX: usize = 40;
/// Octets between the name of a number and the number.
const LABEL_MAX: usize = 6;
/// Octets right before or after a number that say what it is: a sign behind a few spaces.
const BESIDE: usize = 32;

/// Whether a number stands between two places that is not accounted for: it is no amount, measure, date or time, and
/// has no name of its own, as the order has in `code for order 99812345 is`.
pub(super) fn has_number(part: &Part, from: usize, to: usize) -> bool {
    let text = &part.shown.text;
    if to.saturating_sub(from) > BETWEEN_MAX {
        return true;
    }
    let Some(between) = text.get(from..to) else { return false };
    let mut named_end = from;
    for word in words(between, from) {
        if word.start < named_end {
            continue;
        }
        let digits = text[word.clone()].bytes().filter(u8::is_ascii_digit).count();
        let goes_on = named_end > from && text.get(named_end..word.start) == Some(" ");
        if let Some(len) = iban_len(text.after(word.start, IBAN_MAX)) {
            named_end = word.start + len;
        } else if let Some(end) = telephone_end(text, word.start) {
            named_end = end;
        } else if goes_on || is_named(part, &word) || is_set_apart(text, &word) {
            named_end = word.end;
        } else if digits >= 3 && !is_written_amount(text, &word) && !is_measured(part, &word) {
            return true;
        }
    }
    false
}

/// The words of ASCII letters and digits that have a digit.
fn words(between: &str, from: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    between
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.bytes().any(|b| b.is_ascii_digit()))
        .map(move |word| {
            let start = from + (word.as_ptr() as usize - between.as_ptr() as usize);
            start..start + word.len()
        })
}

/// The end of a telephone number that begins with `+`: `+7 900 123-45-67`.
fn telephone_end(text: &Text, start: usize) -> Option<usize> {
    if !text.before(start, 1).ends_with('+') {
        return None;
    }
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, ' ' | '-' | '(' | ')' | '\u{A0}');
    let after = text.after(start, TELEPHONE_MAX);
    let number = &after[..after.find(|c| !is_of_number(c)).unwrap_or(after.len())];
    Some(start + number.trim_end().len())
}

/// Whether its signs tell it from a code: `*1234`, `№ 1234`, `(10115)`, a year.
fn is_set_apart(text: &Text, word: &Range<usize>) -> bool {
    let touching = text.before(word.start, BESIDE);
    let before = touching.trim_end_matches(' ').chars().next_back();
    let is_in_parentheses = before == Some('(') && text.after(word.end, 1).starts_with(')');
    let is_masked = touching.ends_with(['*', '•', '…', '#', 'x', 'X'])
        || text[word.clone()].starts_with("XX")
        || text[word.clone()].starts_with("xx");
    is_in_parentheses || is_masked || matches!(before, Some('№' | '#' | '•')) || ends_date(text, word)
}

/// Whether it is the year of a date in words: `24 Nov 2026`, `November 24th, 2026`, `24-Nov-2026`.
pub(super) fn ends_date(text: &Text, word: &Range<usize>) -> bool {
    let mut before = text
        .before(word.start, DATE_MAX)
        .split(|c: char| c.is_whitespace() || matches!(c, '-' | ','))
        .filter(|piece| !piece.is_empty())
        .rev();
    let is_day = |day: &str| day.len() <= 4 && day.starts_with(|c: char| c.is_ascii_digit());
    let is_month = |month: &str| month.starts_with(char::is_alphabetic);
    if !is_year(&text[word.clone()]) {
        return false;
    }
    match before.next() {
        // In English the day may stand before the year; a month is written with a capital there.
        Some(day) if is_day(day) => before.next().is_some_and(|month| month.starts_with(char::is_uppercase)),
        Some(month) if is_month(month) => before.take(2).any(is_day),
        _ => false,
    }
}

/// Whether it is part of what is written with separators: `141,95`, `14.11.2026`, `12:30`, `192.0.2.5`.
fn is_written_amount(text: &Text, word: &Range<usize>) -> bool {
    let mut before = text.before(word.start, BESIDE).bytes().rev();
    let mut after = text.after(word.end, BESIDE).bytes();
    let is_separator = |byte: Option<u8>| byte.is_some_and(|byte| matches!(byte, b'.' | b',' | b':' | b'/'));
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    let is_iso_date = is_year(&text[word.clone()]) && text.after(word.end, 1).starts_with('-');
    is_iso_date
        || is_zone_of_time(text, word)
        || (is_separator(before.next()) && is_digit(before.next()))
        || (is_separator(after.next()) && is_digit(after.next()))
}

/// Whether it is the zone of a time: `14:32:07 -0500`.
fn is_zone_of_time(text: &Text, word: &Range<usize>) -> bool {
    let time = text.before(word.start, BESIDE).strip_suffix('-').map(str::trim_end);
    word.len() == 4
        && time.is_some_and(|time| {
            let mut last = time.bytes().rev();
            last.next().is_some_and(|byte| byte.is_ascii_digit())
                && last.next().is_some_and(|byte| byte.is_ascii_digit())
                && last.next() == Some(b':')
        })
}

/// Whether a currency or a unit stands beside it.
fn is_measured(part: &Part, word: &Range<usize>) -> bool {
    let text = &part.shown.text;
    let is_sign = |c: Option<char>| c.is_some_and(is_currency);
    let before = text.before(word.start, BESIDE).trim_end_matches(' ');
    let after = text.after(word.end, BESIDE).trim_start_matches(' ');
    is_sign(before.chars().next_back())
        || has_currency(&text[word.clone()])
        || is_sign(after.chars().next())
        || near(part, word).any(|hit| match hit.class {
            Class::Currency => {
                (hit.end <= word.start && hit.end + 2 >= word.start)
                    || (hit.start >= word.end && hit.start <= word.end + 2)
            }
            Class::Unit => hit.start >= word.end && hit.start <= word.end + 2,
            _ => false,
        })
}

/// Whether a currency is written together with it: `USD4300`.
fn has_currency(word: &str) -> bool {
    let letters = word.trim_matches(|c: char| c.is_ascii_digit());
    letters.len() == 3 && find_words(letters).iter().any(|hit| hit.class == Class::Currency)
}

/// Whether the name of another number stands right before it.
fn is_named(part: &Part, word: &Range<usize>) -> bool {
    near(part, word).any(|hit| {
        matches!(hit.class, Class::Number | Class::OtherCode)
            && hit.end <= word.start
            && hit.end + LABEL_MAX >= word.start
            && part
                .shown
                .text
                .get(hit.end..word.start)
                .is_some_and(|gap| !gap.chars().any(char::is_alphabetic))
    })
}

fn near<'a>(part: &'a Part, word: &Range<usize>) -> impl Iterator<Item = &'a Hit> + use<'a> {
    part.hits_in(word.start.saturating_sub(60)..word.end + 3).iter()
}
