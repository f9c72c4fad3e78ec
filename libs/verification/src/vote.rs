//! The vote of a domain's name servers on its records, and what they have in place of what was expected. Nothing here
//! does I/O.

use std::collections::BTreeSet;

use hickory_proto::rr::Name;
use tempmail_model::verification::{Finding, RecordFinding};
use tempmail_model::verify_token::txt_value;

/// The records that prove a domain.
#[derive(Clone, Copy)]
pub struct ExpectedRecords<'a> {
    /// The domain, as A-labels.
    pub domain: &'a str,
    /// The token of the tenant that claims the domain.
    pub token: &'a str,
    /// The token of the incumbent: another tenant whose domain serves the name.
    pub incumbent_token: Option<&'a str>,
    /// The host that the MX record has to name.
    pub mx_host: &'a str,
}

/// What the servers have for a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainFindings {
    /// The TXT record of the claiming tenant.
    pub txt: RecordFinding,
    /// The MX record.
    pub mx: RecordFinding,
    /// The TXT record of the incumbent. Unlike the others, [`Finding::Found`] if any voting server has it, so that the
    /// incumbent loses the domain only if no server has it ([`Finding::Missing`]). [`Finding::Unknown`] without votes
    /// or without an incumbent.
    pub incumbent_txt: Finding,
}

impl DomainFindings {
    /// No server voted.
    pub const UNKNOWN: Self =
        Self { txt: RecordFinding::UNKNOWN, mx: RecordFinding::UNKNOWN, incumbent_txt: Finding::Unknown };
}

/// The answer of one server about the records of one type at one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerAnswer<R> {
    /// It has these records.
    Records {
        /// The records, or the first of very many; may be empty.
        records: Vec<R>,
        /// The texts that are shown of all of them.
        seen: SeenRecords,
    },
    /// The name is an alias of another one.
    Alias(Name),
    /// No vote: no answer, a failure, or a server that is not responsible for the name.
    NoVote,
}

impl<R> ServerAnswer<R> {
    /// There are no records.
    pub fn none() -> Self {
        Self::Records { records: Vec::new(), seen: SeenRecords::default() }
    }

    /// What the server has at the name.
    fn seen(&self) -> SeenRecords {
        match self {
            Self::Records { seen, .. } => seen.clone(),
            Self::Alias(target) => SeenRecords::from_iter([format!("CNAME {}", host_text(target))]),
            Self::NoVote => SeenRecords::default(),
        }
    }
}

/// Counts the votes. A record is found if at least one server votes, and every one that votes has it.
///
/// Each element of `txt` is one server's records at `_tempmail.<domain>`, their character strings joined; of `mx`,
/// one server's exchanges at the domain. An alias in `txt` could not be followed and is no vote. In `mx` it is a
/// mismatch, and so is an exchange that says that the domain accepts no mail (RFC 7505), even beside others.
pub(crate) fn tally(
    records: &ExpectedRecords<'_>,
    txt: &[ServerAnswer<Vec<u8>>],
    mx: &[ServerAnswer<Name>],
) -> DomainFindings {
    let expected = txt_value(records.token);
    let mx_host = host(records.mx_host);
    let any_has = |token| {
        let expected = txt_value(token);
        any_of(txt.iter().filter_map(|answer| vote_on_txt(answer, &expected)))
    };
    DomainFindings {
        txt: found(txt, |answer| vote_on_txt(answer, &expected)),
        mx: found(mx, |answer| vote_on_mx(answer, mx_host.as_ref())),
        incumbent_txt: records.incumbent_token.map_or(Finding::Unknown, any_has),
    }
}

/// The result of the votes on a record, and the records of servers that have something else.
fn found<R>(
    answers: &[ServerAnswer<R>],
    vote: impl Fn(&ServerAnswer<R>) -> Option<Finding>,
) -> RecordFinding {
    let finding = all_of(answers.iter().filter_map(&vote));
    let others = answers.iter().filter(|answer| vote(answer) == Some(Finding::Mismatch));
    let seen = others.map(ServerAnswer::seen).fold(SeenRecords::default(), SeenRecords::merge);
    RecordFinding { finding, seen: seen.into_texts() }
}

/// One server's vote on a TXT record, if it has one.
fn vote_on_txt(answer: &ServerAnswer<Vec<u8>>, expected: &str) -> Option<Finding> {
    let ServerAnswer::Records { records: texts, .. } = answer else { return None };
    if texts.is_empty() {
        return Some(Finding::Missing);
    }
    let is_there = texts.iter().any(|text| text == expected.as_bytes());
    Some(if is_there { Finding::Found } else { Finding::Mismatch })
}

/// One server's vote on the MX record, if it has one.
fn vote_on_mx(answer: &ServerAnswer<Name>, mx_host: Option<&Name>) -> Option<Finding> {
    match answer {
        ServerAnswer::Records { records: exchanges, .. } if exchanges.is_empty() => Some(Finding::Missing),
        ServerAnswer::Records { records: exchanges, .. } => {
            let ours = exchanges.iter().any(|exchange| Some(exchange) == mx_host);
            let accepts_mail = !exchanges.iter().any(Name::is_root);
            Some(if ours && accepts_mail { Finding::Found } else { Finding::Mismatch })
        }
        ServerAnswer::Alias(_) => Some(Finding::Mismatch),
        ServerAnswer::NoVote => None,
    }
}

/// Found if every vote is, unknown without votes; else mismatch if any vote is, else missing.
fn all_of(votes: impl Iterator<Item = Finding>) -> Finding {
    votes.fold(Finding::Unknown, |found, vote| match (found, vote) {
        (Finding::Mismatch, _) | (_, Finding::Mismatch) => Finding::Mismatch,
        (Finding::Missing, _) | (_, Finding::Missing) => Finding::Missing,
        (Finding::Unknown, vote) => vote,
        (found, _) => found,
    })
}

/// Found if any vote is, unknown without votes, else missing.
fn any_of(mut votes: impl Iterator<Item = Finding>) -> Finding {
    match votes.next() {
        None => Finding::Unknown,
        Some(Finding::Found) => Finding::Found,
        Some(_) if votes.any(|vote| vote == Finding::Found) => Finding::Found,
        Some(_) => Finding::Missing,
    }
}

/// A host name as answers have it: fully qualified. Names are compared without regard to case.
fn host(text: &str) -> Option<Name> {
    let mut name = Name::from_ascii(text).ok()?;
    name.set_fqdn(true);
    Some(name)
}

/// Records that are kept at most.
const RECORDS_MAX: usize = 5;
/// Characters of a record that are kept at most.
const CHARACTERS_MAX: usize = 255;

/// The texts of records: the first 5 in sorted order, each once and at most 255 characters, U+FFFD for invisible
/// characters. It does not depend on the order in which servers answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SeenRecords(BTreeSet<String>);

impl SeenRecords {
    /// The texts, sorted.
    pub fn into_texts(self) -> Vec<String> {
        self.0.into_iter().collect()
    }

    fn keep(&mut self, text: String) {
        self.0.insert(text);
        if self.0.len() > RECORDS_MAX {
            self.0.pop_last();
        }
    }

    /// The records of both.
    fn merge(mut self, other: Self) -> Self {
        other.0.into_iter().for_each(|text| self.keep(text));
        self
    }
}

impl FromIterator<String> for SeenRecords {
    fn from_iter<I: IntoIterator<Item = String>>(records: I) -> Self {
        let mut seen = Self::default();
        records.into_iter().for_each(|record| seen.keep(shown(&record)));
        seen
    }
}

fn shown(record: &str) -> String {
    record
        .chars()
        .take(CHARACTERS_MAX)
        .map(|c| if is_visible(c) { c } else { char::REPLACEMENT_CHARACTER })
        .collect()
}

/// Not a control character, without width, or one that changes the direction of text.
fn is_visible(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !c.is_control() && !is_format
}

/// A host name without the last dot, in lower case: servers may repeat the random case of a query.
pub(crate) fn host_text(host: &Name) -> String {
    let text = host.to_lowercase().to_ascii();
    match text.strip_suffix('.') {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests;
