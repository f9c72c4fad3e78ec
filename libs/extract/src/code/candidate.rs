//! What may be a code by its form and by what touches it: the candidates of lines.

use std::ops::Range;

use super::between::ends_date;
use super::run::{IBAN_MAX, Token, group_run, iban_len, joined_groups, tokens};
use super::shape::{LENGTHS, Shape, TOUCH_MAX, are_marks, makes_something_else};
use crate::bounds::CANDIDATES_MAX;
use crate::text::{Lines, Shown, Text};

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
        if found.len() >= CANDIDATES_MAX {
            break;
        }
        if let Some(candidate) = origin_bound(&shown.text, &line) {
            found.push(candidate);
            continue;
        }
        Line::of(&shown.text, line).find(&mut found);
    }
    found.truncate(CANDIDATES_MAX);
    found
}

/// The code of a line such as `@example.com #123456`.
fn origin_bound(text: &Text, line: &Range<usize>) -> Option<Candidate> {
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

/// Octets between a colon and the code that it introduces.
const COLON_MAX: usize = 32;

/// A line in which candidates are looked for.
pub(super) struct Line<'a> {
    text: &'a Text,
    range: Range<usize>,
    /// From its first letter or digit to its last.
    written: Range<usize>,
}

impl<'a> Line<'a> {
    pub(super) fn of(text: &'a Text, range: Range<usize>) -> Self {
        let line = &text[range.clone()];
        let first = line.find(char::is_alphanumeric).unwrap_or(line.len());
        let last = line.trim_end_matches(|c: char| !c.is_alphanumeric()).len();
        let written = range.start + first..range.start + last.max(first);
        Self { text, range, written }
    }

    /// Adds the candidates of the line, in order.
    pub(super) fn find(&self, found: &mut Vec<Candidate>) {
        let line = &self.text[self.range.clone()];
        let tokens = tokens(line, self.range.start);
        if !tokens.iter().any(Token::may_be_code) {
            return;
        }
        if let Some(candidate) = self.spaced_letters(&tokens) {
            found.push(candidate);
            return;
        }
        let mut excluded = self.excluded_words(line).into_iter().peekable();
        let mut at = 0;
        while at < tokens.len() && found.len() < CANDIDATES_MAX {
            let run = group_run(self.text, &tokens[at..]).max(1);
            let group = &tokens[at..at + run];
            at += run;
            while excluded.next_if(|range| range.end <= group[0].range.start).is_some() {}
            if excluded.peek().is_some_and(|range| range.start < group[run - 1].range.end) {
                continue;
            }
            if let Some(candidate) = self.grouped_letters(&tokens[at - run..]) {
                found.push(candidate);
                at += 1;
                continue;
            }
            let neighbour = at.checked_sub(run + 1).map(|before| &tokens[before]);
            if run == 1 {
                self.add_token(&group[0], found);
            } else if !neighbour.is_some_and(|before| self.is_group_of_letters(before, &group[0])) {
                self.add_groups(group, found);
            }
        }
    }

    /// Whether a token of letters and digits is the group right before one of digits.
    fn is_group_of_letters(&self, before: &Token, group: &Token) -> bool {
        !before.is_digits && before.has_digit && self.text[before.range.end..group.range.start] == *" "
    }

    /// Words of the line that are addresses, of the web or of mail, paths, or account numbers, in order.
    fn excluded_words(&self, line: &str) -> Vec<Range<usize>> {
        let mut excluded = Vec::new();
        let mut at = self.range.start;
        for word in line.split_inclusive(char::is_whitespace) {
            let bare = word.trim_start_matches(['@', '(', '<']);
            let begin = at + (word.len() - word.trim_start_matches(['(', '[']).len());
            if word.contains("://")
                || bare.contains('@')
                || word.contains("www.")
                || word.matches('/').count() >= 2
            {
                excluded.push(at..at + word.trim_end().len());
            } else if let Some(len) = iban_len(self.text.after(begin, IBAN_MAX)) {
                excluded.push(at..begin + len);
            }
            at += word.len();
        }
        excluded
    }

    /// A line such as `A 7 K 9` or `X7K 9QD`.
    fn spaced_letters(&self, tokens: &[Token]) -> Option<Candidate> {
        let (first, last) = (tokens.first()?, tokens.last()?);
        let is_code = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        let fits = tokens.len() >= 2
            && tokens.iter().all(|token| !token.has_hyphen && token.len() == first.len())
            && matches!((first.len(), tokens.len()), (1, 4..=10) | (3..=4, 2));
        if !fits {
            return None;
        }
        let range = first.range.start..last.range.end;
        let shown = &self.text[range.clone()];
        let has_letter = shown.bytes().any(|byte| byte.is_ascii_uppercase());
        let has_digit = shown.bytes().any(|byte| byte.is_ascii_digit());
        let code: String = shown.chars().filter(|c| !c.is_whitespace()).collect();
        let is_plain = code.bytes().all(is_code);
        (is_plain && has_letter && has_digit && self.is_alone(&range)).then_some(Candidate {
            code,
            range,
            shape: Shape::Capitals,
            is_alone: true,
            is_marked: false,
            is_origin_bound: false,
        })
    }

    /// Two groups of capitals and digits that a colon introduces: `Code: X7K 9QD`.
    fn grouped_letters(&self, tokens: &[Token]) -> Option<Candidate> {
        let [first, second, ..] = tokens else { return None };
        let is_group =
            |token: &Token| (3..=4).contains(&token.len()) && !token.has_small && !token.has_hyphen;
        let is_mixed = |token: &Token| !token.is_digits && token.has_digit;
        let is_apart = |a: &Token, b: &Token| self.text[a.range.end..b.range.start] == *" ";
        let goes_on = || tokens.get(2).is_some_and(|third| is_group(third) && is_apart(second, third));
        let fits = is_group(first)
            && is_group(second)
            && first.len() == second.len()
            && (is_mixed(first) || is_mixed(second))
            && is_apart(first, second)
            && self.before(first.range.start, COLON_MAX).trim_end().ends_with([':', '：'])
            && !goes_on();
        let range = first.range.start..second.range.end;
        fits.then(|| Candidate {
            code: self.text[range.clone()].replace(' ', ""),
            is_alone: self.is_alone(&range),
            range,
            shape: Shape::Capitals,
            is_marked: false,
            is_origin_bound: false,
        })
    }

    fn add_groups(&self, group: &[Token], found: &mut Vec<Candidate>) {
        let digits: Vec<&str> = group.iter().map(|token| &self.text[token.range.clone()]).collect();
        let range = group[0].range.start..group[group.len() - 1].range.end;
        if let Some(code) = joined_groups(&digits) {
            self.push(range, code, Shape::Digits, found);
            return;
        }
        // A long number beside a short one or a date, as in `482913 10 minutes` and `24 Nov 2026 482913`.
        let mut long = group.iter().filter(|token| token.len() > 2 && !ends_date(self.text, &token.range));
        if let (Some(token), None) = (long.next(), long.next())
            && token.len() >= 4
        {
            self.add_token(token, found);
        }
    }

    fn add_token(&self, token: &Token, found: &mut Vec<Candidate>) {
        let written = &self.text[token.range.clone()];
        if token.is_digits {
            let code = if token.has_hyphen {
                joined_groups(&written.split('-').collect::<Vec<_>>())
            } else {
                LENGTHS.contains(&written.len()).then(|| written.to_owned())
            };
            if let Some(code) = code {
                self.push(token.range.clone(), code, Shape::Digits, found);
            }
            return;
        }
        if let Some(digits) = after_prefix(written) {
            self.push(token.range.clone(), digits.to_owned(), Shape::Digits, found);
            return;
        }
        if LENGTHS.contains(&written.len())
            && let Some(shape) = Shape::of_token(written)
        {
            self.push(token.range.clone(), written.to_owned(), shape, found);
        }
    }

    fn push(&self, range: Range<usize>, code: String, shape: Shape, found: &mut Vec<Candidate>) {
        if makes_something_else(self.before(range.start, TOUCH_MAX), self.after(range.end, TOUCH_MAX)) {
            return;
        }
        let before = self.text.before(range.start, char::MAX_LEN_UTF8).chars().next_back();
        let after = self.text.after(range.end, char::MAX_LEN_UTF8).chars().next();
        let is_alone = self.is_alone(&range);
        let is_marked = are_marks(before, after);
        found.push(Candidate { code, range, shape, is_alone, is_marked, is_origin_bound: false });
    }

    /// Whether the line has no letter and no digit but those of a range.
    fn is_alone(&self, range: &Range<usize>) -> bool {
        range.start <= self.written.start && self.written.end <= range.end
    }

    /// What is before a place in the line, up to `max` octets.
    fn before(&self, at: usize, max: usize) -> &'a str {
        self.text.before(at, max.min(at - self.range.start))
    }

    /// What is after a place in the line, up to `max` octets.
    fn after(&self, at: usize, max: usize) -> &'a str {
        self.text.after(at, max.min(self.range.end - at))
    }
}

/// The digits after a prefix of one or two letters that names the sender: `G-123456`, `FB-12345`.
fn after_prefix(token: &str) -> Option<&str> {
    let (prefix, digits) = token.split_once('-')?;
    let is_prefix = prefix.bytes().all(|byte| byte.is_ascii_uppercase())
        && ((prefix.len() == 1 && digits.len() >= 4) || (prefix.len() == 2 && digits.len() >= 5));
    (is_prefix && digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}
