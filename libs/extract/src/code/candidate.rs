//! What may be a code by its form and by what touches it.

use std::ops::Range;

use super::line::Line;
use super::shape::{LENGTHS, Shape};
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
