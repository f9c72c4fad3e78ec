//! What may be a code by its form and by what touches it.

use std::ops::Range;

use super::between::ends_date;
use super::run::{Token, group_run, iban_end, joined_groups, tokens};
use super::shape::{LENGTHS, Shape};
use crate::bounds::CANDIDATES_MAX;
use crate::text::chars::is_currency;
use crate::text::{Lines, Shown};

/// Something that may be a code.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// As it would be returned.
    pub(super) code: String,
    pub(super) range: Range<usize>,
    pub(super) shape: Shape,
    /// Whether nothing else is on its lines.
    pub(super) is_alone: bool,
    /// Whether quotation marks, brackets or asterisks are around it.
    pub(super) is_marked: bool,
    /// Whether it is bound to an origin: `@example.com #123456`.
    pub(super) is_origin_bound: bool,
}

/// Finds candidates in what is not quoted, in order.
pub(super) fn candidates(shown: &Shown, lines: &Lines) -> Vec<Candidate> {
    let mut found = spread_over_lines(shown, lines);
    for line in lines.iter() {
        if shown.is_quoted(line.start) {
            continue;
        }
        if let Some(candidate) = origin_bound(&shown.text, &line) {
            found.push(candidate);
            continue;
        }
        in_line(shown, &line, &mut found);
        if found.len() >= CANDIDATES_MAX {
            break;
        }
    }
    found.truncate(CANDIDATES_MAX);
    found
}

/// The code of a line such as `@example.com #123456`.
fn origin_bound(text: &str, line: &Range<usize>) -> Option<Candidate> {
    let rest = text[line.clone()].trim().strip_prefix('@')?;
    let mut words = rest.split_ascii_whitespace();
    let host = words.next()?;
    let code = words.next()?.strip_prefix('#')?;
    let is_code = LENGTHS.contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_code || !host.contains('.') || words.next().is_some_and(|word| !word.starts_with('@')) {
        return None;
    }
    Some(Candidate {
        code: code.to_owned(),
        range: line.clone(),
        shape: if code.bytes().all(|byte| byte.is_ascii_digit()) { Shape::Digits } else { Shape::Capitals },
        is_alone: true,
        is_marked: false,
        is_origin_bound: true,
    })
}

/// Codes with one character a line, as blocks side by side become.
fn spread_over_lines(shown: &Shown, lines: &Lines) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut run: Option<(Range<usize>, String)> = None;
    for line in lines.iter() {
        let text = shown.text[line.clone()].trim();
        let single = match text.as_bytes() {
            [byte] if byte.is_ascii_digit() || byte.is_ascii_uppercase() => Some(char::from(*byte)),
            _ => None,
        };
        match (single.filter(|_| !shown.is_quoted(line.start)), &mut run) {
            (Some(c), Some((range, code))) => {
                range.end = line.end;
                code.push(c);
            }
            (Some(c), None) => run = Some((line, c.to_string())),
            (None, _) => found.extend(run.take().and_then(spread)),
        }
    }
    found.extend(run.and_then(spread));
    found
}

fn spread((range, code): (Range<usize>, String)) -> Option<Candidate> {
    let is_digits = code.bytes().all(|byte| byte.is_ascii_digit());
    let counts_up = code.as_bytes().windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    (LENGTHS.contains(&code.len()) && !(counts_up && code.starts_with('1') && code.len() < 6)).then_some(
        Candidate {
            code,
            range,
            shape: if is_digits { Shape::Digits } else { Shape::Capitals },
            is_alone: true,
            is_marked: false,
            is_origin_bound: false,
        },
    )
}

fn in_line(shown: &Shown, line: &Range<usize>, found: &mut Vec<Candidate>) {
    let text = &shown.text;
    let tokens = tokens(text, line.clone());
    if !tokens.iter().any(Token::may_be_code) {
        return;
    }
    let excluded = excluded_words(text, line);
    if let Some(candidate) = spaced_letters(text, line, &tokens) {
        found.push(candidate);
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        let run = group_run(text, &tokens[at..]).max(1);
        let group = &tokens[at..at + run];
        at += run;
        let is_excluded = excluded
            .iter()
            .any(|range| range.start < group[run - 1].range.end && group[0].range.start < range.end);
        if is_excluded {
            continue;
        }
        if let Some(candidate) = grouped_letters(text, line, &tokens[at - run..]) {
            found.push(candidate);
            at += 1;
            continue;
        }
        let neighbour = at.checked_sub(run + 1).map(|before| &tokens[before]);
        if run > 1 {
            let follows_letters = neighbour.is_some_and(|before| {
                !before.is_digits
                    && text[before.range.clone()].bytes().any(|byte| byte.is_ascii_digit())
                    && text[before.range.end..group[0].range.start] == *" "
            });
            if !follows_letters {
                add_groups(text, line, group, found);
            }
        } else {
            add_token(text, line, &group[0], found);
        }
    }
}

/// Words of the line that are addresses, of the web or of mail, paths, or account numbers.
fn excluded_words(text: &str, line: &Range<usize>) -> Vec<Range<usize>> {
    let mut excluded = Vec::new();
    let mut at = line.start;
    for word in text[line.clone()].split_inclusive(char::is_whitespace) {
        let bare = word.trim_start_matches(['@', '(', '<']);
        if word.contains("://")
            || bare.contains('@')
            || word.contains("www.")
            || word.matches('/').count() >= 2
        {
            excluded.push(at..at + word.trim_end().len());
        } else if let Some(end) =
            iban_end(text, at + (word.len() - word.trim_start_matches(['(', '[']).len()))
        {
            excluded.push(at..end);
        }
        at += word.len();
    }
    excluded
}

/// A line such as `A 7 K 9` or `X7K 9QD`.
fn spaced_letters(text: &str, line: &Range<usize>, tokens: &[Token]) -> Option<Candidate> {
    let (first, last) = (tokens.first()?, tokens.last()?);
    let is_code = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    let fits = tokens.len() >= 2
        && tokens.iter().all(|token| !token.has_hyphen && token.len() == first.len())
        && matches!((first.len(), tokens.len()), (1, 4..=10) | (3..=4, 2));
    if !fits {
        return None;
    }
    let range = first.range.start..last.range.end;
    let shown = &text[range.clone()];
    let has_letter = shown.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_digit = shown.bytes().any(|byte| byte.is_ascii_digit());
    let code: String = shown.chars().filter(|c| !c.is_whitespace()).collect();
    let is_plain = code.bytes().all(is_code);
    (is_plain && has_letter && has_digit && is_alone(text, line, &range)).then_some(Candidate {
        code,
        range,
        shape: Shape::Capitals,
        is_alone: true,
        is_marked: false,
        is_origin_bound: false,
    })
}

/// Two groups of capitals and digits that a colon introduces: `Code: X7K 9QD`.
fn grouped_letters(text: &str, line: &Range<usize>, tokens: &[Token]) -> Option<Candidate> {
    let [first, second, ..] = tokens else { return None };
    let is_group = |token: &Token| {
        let written = text[token.range.clone()].as_bytes();
        (3..=4).contains(&written.len())
            && written.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    };
    let range = first.range.start..second.range.end;
    let is_mixed =
        |token: &Token| !token.is_digits && text[token.range.clone()].bytes().any(|b| b.is_ascii_digit());
    let goes_on = tokens
        .get(2)
        .is_some_and(|third| is_group(third) && text[second.range.end..third.range.start] == *" ");
    let fits = is_group(first)
        && is_group(second)
        && first.len() == second.len()
        && (is_mixed(first) || is_mixed(second))
        && text[first.range.end..second.range.start] == *" "
        && text[line.start..first.range.start].trim_end().ends_with([':', '：'])
        && !goes_on;
    fits.then(|| Candidate {
        code: text[range.clone()].replace(' ', ""),
        is_alone: is_alone(text, line, &range),
        range,
        shape: Shape::Capitals,
        is_marked: false,
        is_origin_bound: false,
    })
}

fn add_groups(text: &str, line: &Range<usize>, group: &[Token], found: &mut Vec<Candidate>) {
    let digits: Vec<&str> = group.iter().map(|token| &text[token.range.clone()]).collect();
    let range = group[0].range.start..group[group.len() - 1].range.end;
    if let Some(code) = joined_groups(&digits) {
        push(text, line, range, code, Shape::Digits, found);
        return;
    }
    // A long number beside a short one or a date, as in `482913 10 minutes` and `24 Nov 2026 482913`.
    let mut long = group.iter().filter(|token| token.len() > 2 && !ends_date(text, &token.range));
    if let (Some(token), None) = (long.next(), long.next())
        && token.len() >= 4
    {
        add_token(text, line, token, found);
    }
}

fn add_token(text: &str, line: &Range<usize>, token: &Token, found: &mut Vec<Candidate>) {
    let written = &text[token.range.clone()];
    if token.is_digits {
        let code = if token.has_hyphen {
            joined_groups(&written.split('-').collect::<Vec<_>>())
        } else {
            LENGTHS.contains(&written.len()).then(|| written.to_owned())
        };
        if let Some(code) = code {
            push(text, line, token.range.clone(), code, Shape::Digits, found);
        }
        return;
    }
    if let Some(digits) = after_prefix(written) {
        push(text, line, token.range.clone(), digits.to_owned(), Shape::Digits, found);
        return;
    }
    if LENGTHS.contains(&written.len())
        && let Some(shape) = Shape::of_token(written)
    {
        push(text, line, token.range.clone(), written.to_owned(), shape, found);
    }
}

/// The digits after a prefix of one or two letters that names the sender: `G-123456`, `FB-12345`.
fn after_prefix(token: &str) -> Option<&str> {
    let (prefix, digits) = token.split_once('-')?;
    let is_prefix = prefix.bytes().all(|byte| byte.is_ascii_uppercase())
        && ((prefix.len() == 1 && digits.len() >= 4) || (prefix.len() == 2 && digits.len() >= 5));
    (is_prefix && digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

fn push(
    text: &str,
    line: &Range<usize>,
    range: Range<usize>,
    code: String,
    shape: Shape,
    found: &mut Vec<Candidate>,
) {
    if touches_something_else(text, line, &range) {
        return;
    }
    let (before, after) = (text[..range.start].chars().next_back(), text[range.end..].chars().next());
    let is_marked = matches!(
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
    );
    let is_alone = is_alone(text, line, &range);
    found.push(Candidate { code, range, shape, is_alone, is_marked, is_origin_bound: false });
}

fn is_alone(text: &str, line: &Range<usize>, range: &Range<usize>) -> bool {
    let nothing = |text: &str| !text.chars().any(char::is_alphanumeric);
    nothing(&text[line.start..range.start]) && nothing(&text[range.end..line.end])
}

/// Whether what touches a candidate makes it a part of something else: a time, a price, a colour, a telephone number.
fn touches_something_else(text: &str, line: &Range<usize>, range: &Range<usize>) -> bool {
    let mut before = text[line.start..range.start].chars().rev();
    let mut after = text[range.end..line.end].chars();
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

/// A letter of a script with spaces, which makes a longer word of what it touches. Arabic and Hebrew put
/// prepositions before numbers.
fn is_spaced_letter(c: char) -> bool {
    c.is_alphabetic() && matches!(c, '\u{80}'..='\u{58F}' | '\u{900}'..='\u{DFF}' | '\u{1E00}'..='\u{1FFF}')
}

fn is_proclitic(c: Option<char>) -> bool {
    c.is_some_and(|c| matches!(c, '\u{590}'..='\u{6FF}'))
}
