//! What a code is made of, and what the signs that touch it say of it.

use crate::text::chars::is_currency;

/// The make of a candidate, which says how likely it is a code before anything else is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Digits, also grouped, or after a prefix such as `G-`.
    Digits,
    /// Capitals and digits.
    Capitals,
    /// Letters of both cases, or small ones, and digits.
    Mixed,
    /// Groups of capitals: `ABCD-EFGH`.
    LetterGroups,
    /// Capitals only.
    Letters,
    /// A word with a number, such as `SAVE20` or `Office365`, or a reference such as `INV-4821`.
    WordAndNumber,
}

/// Shortest and longest code.
pub(super) const LENGTHS: std::ops::RangeInclusive<usize> = 4..=12;

impl Shape {
    /// The shape of a token of ASCII letters, digits and single hyphens that has a letter.
    pub(super) fn of_token(token: &str) -> Option<Self> {
        let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
        let has_small = token.bytes().any(|byte| byte.is_ascii_lowercase());
        let has_hyphen = token.contains('-');
        if !has_digit {
            return match (has_small, has_hyphen) {
                (true, _) => None,
                (false, true) => has_equal_parts(token).then_some(Self::LetterGroups),
                (false, false) => Some(Self::Letters),
            };
        }
        if is_word_and_number(token) {
            return Some(Self::WordAndNumber);
        }
        Some(if has_small { Self::Mixed } else { Self::Capitals })
    }
}

fn has_equal_parts(token: &str) -> bool {
    let mut lengths = token.split('-').map(str::len);
    let first = lengths.next().unwrap_or(0);
    (3..=4).contains(&first) && lengths.all(|length| length == first)
}

/// `SAVE20`, `iPhone15`, `INV-4821`, `100MB`, `15th`: letters first, then digits, or the other way round.
fn is_word_and_number(token: &str) -> bool {
    let bare: String = token.chars().filter(|c| *c != '-').collect();
    let letters = bare.bytes().take_while(u8::is_ascii_alphabetic).count();
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let ends_in_digits = letters >= 3 && bare[letters..].bytes().all(|byte| byte.is_ascii_digit());
    let has_vowel =
        bare[..letters].bytes().any(|b| matches!(b.to_ascii_uppercase(), b'A' | b'E' | b'I' | b'O' | b'U'));
    // `YMBDH2` is no word; a few letters and a hyphen are a reference.
    if !has_vowel && letters >= 4 && bare.len() == token.len() {
        return false;
    }
    let is_word = bare[..letters].bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    let looks_like_word = letters >= 4 || is_word || token.as_bytes().get(letters) == Some(&b'-');
    let is_measure = digits >= 1
        && digits < bare.len()
        && bare[digits..].bytes().all(|byte| byte.is_ascii_lowercase())
        && bare.len() - digits <= 7;
    (ends_in_digits && looks_like_word)
        || is_measure
        || (digits >= 1 && bare.len() - digits <= 2 && is_unit(&bare[digits..]))
}

fn is_unit(letters: &str) -> bool {
    matches!(
        letters,
        "MB" | "GB" | "KB" | "TB" | "AM" | "PM" | "K" | "M" | "P" | "W" | "V" | "HZ" | "KM" | "KG"
    )
}

/// Whether capitals have fewer vowels than words have.
pub(super) fn has_few_vowels(code: &str) -> bool {
    code.len() >= 5
        && code.bytes().filter(|byte| matches!(byte, b'A' | b'E' | b'I' | b'O' | b'U')).count() * 4
            < code.len()
}

/// Whether digits are a year of our times.
pub(super) fn is_year(digits: &str) -> bool {
    digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20"))
}

/// Whether eight digits are a date.
pub(super) fn is_date(digits: &str) -> bool {
    let number = |range: std::ops::Range<usize>| digits[range].parse::<u32>().unwrap_or(0);
    let is_of_year = |month: u32, day: u32| (1..=12).contains(&month) && (1..=31).contains(&day);
    digits.len() == 8
        && ((is_year(&digits[..4]) && is_of_year(number(4..6), number(6..8)))
            || (is_year(&digits[4..])
                && (is_of_year(number(2..4), number(0..2)) || is_of_year(number(0..2), number(2..4)))))
}

/// Octets before or after a candidate that have all signs that may say something.
pub(super) const TOUCH_MAX: usize = 16;

/// Whether what is right before and after a candidate in its line makes it a part of something else: a time, a price, a
/// colour, a telephone number.
pub(super) fn makes_something_else(before: &str, after: &str) -> bool {
    let (mut before, mut after) = (before.chars().rev(), after.chars());
    let (last, second_last) = (before.next(), before.next());
    let (first, second) = (after.next(), after.next());
    let joins = |sign: Option<char>, beyond: Option<char>| {
        matches!(sign, Some('.' | ',' | ':' | '\'')) && beyond.is_some_and(|c| c.is_ascii_digit())
    };
    let touches_before = match last {
        Some('#' | '+' | '@' | '/' | '\\' | '&' | '=' | '%' | '~' | '№' | '§' | '^' | '$' | '•' | '…') => {
            true
        }
        Some('_') => first != Some('_'),
        Some('*') => second_last == Some('*') && first != Some('*'),
        Some('-') => second_last.is_some_and(char::is_alphanumeric) && !is_proclitic(second_last),
        Some(c) => is_currency(c) || is_spaced_letter(c),
        None => false,
    };
    let touches_after = match first {
        Some('%' | '@' | '/' | '\\' | '&' | '=' | '°' | '~' | '^' | '\u{2030}') => true,
        Some('_') => last != Some('_'),
        Some('*') => second == Some('*') && last != Some('*'),
        Some(':' | '.') => second.is_some_and(|c| c.is_ascii_alphanumeric()),
        Some(c) => is_currency(c) || is_spaced_letter(c),
        None => false,
    };
    let spaced_before = last == Some(' ')
        && second_last.is_some_and(|c| is_currency(c) || matches!(c, '№' | '•' | '#' | '+'));
    let spaced_after = first == Some(' ') && second.is_some_and(is_currency);
    let area =
        last == Some(' ') && second_last == Some(')') && before.next().is_some_and(|c| c.is_ascii_digit());
    touches_before
        || touches_after
        || joins(last, second_last)
        || joins(first, second)
        || spaced_before
        || spaced_after
        || area
}

/// Whether two characters are quotation marks, brackets or the like that belong together.
pub(super) fn are_marks(before: Option<char>, after: Option<char>) -> bool {
    matches!(
        (before, after),
        (Some('*'), Some('*'))
            | (Some('['), Some(']'))
            | (Some('"'), Some('"'))
            | (Some('\''), Some('\''))
            | (Some('`'), Some('`'))
            | (Some('“' | '„' | '”'), Some('”' | '“'))
            | (Some('«' | '»'), Some('»' | '«'))
            | (Some('「'), Some('」'))
            | (Some('『'), Some('』'))
            | (Some('【'), Some('】'))
            | (Some('_'), Some('_'))
            | (Some('('), Some(')'))
            | (Some('<'), Some('>'))
            | (Some('‘'), Some('’'))
    )
}

/// A letter of a script with spaces, which makes a longer word of what it touches. Arabic and Hebrew put
/// prepositions before numbers.
fn is_spaced_letter(c: char) -> bool {
    c.is_alphabetic() && matches!(c, '\u{80}'..='\u{58F}' | '\u{900}'..='\u{DFF}' | '\u{1E00}'..='\u{1FFF}')
}

fn is_proclitic(c: Option<char>) -> bool {
    c.is_some_and(|c| matches!(c, '\u{590}'..='\u{6FF}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_codes_from_words_with_numbers() {
        for code in ["X7K9QD", "X7K-9QD", "A1B2C3", "7GH2K", "AB12", "R4KXD", "YMBDH2"] {
            assert_eq!(Shape::of_token(code), Some(Shape::Capitals), "{code}");
        }
        for word in ["SAVE20", "WELCOME10", "iPhone15", "INV-4821", "1080p", "100MB", "15th", "Office365"] {
            assert_eq!(Shape::of_token(word), Some(Shape::WordAndNumber), "{word}");
        }
        assert_eq!(Shape::of_token("aB3xZ9"), Some(Shape::Mixed));
        assert_eq!(Shape::of_token("ABCD-EFGH"), Some(Shape::LetterGroups));
        assert_eq!(Shape::of_token("sign-in"), None);
        assert_eq!(Shape::of_token("SIGN-IN"), None);
    }

    #[test]
    fn tells_dates() {
        assert!(is_date("20261124") && is_date("24112026") && !is_date("48291322"));
    }
}
