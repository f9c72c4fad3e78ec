//! What the signs that touch a candidate say of it.

use crate::text::chars::is_currency;

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
