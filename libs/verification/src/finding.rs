//! What follows from the answers of a domain's name servers: a decision without I/O.

mod seen;

use hickory_proto::rr::Name;
use tempmail_model::verification::{Finding, RecordFinding};
use tempmail_model::verify_token::txt_value;

pub use seen::SeenRecords;
pub(crate) use seen::host_text;

/// The records that a claimant of a domain must have set.
#[derive(Clone, Copy)]
pub struct ExpectedRecords<'a> {
    /// The domain, as A-labels.
    pub domain: &'a str,
    /// The claimant's token.
    pub token: &'a str,
    /// The token of the tenant that holds the domain, if another does.
    pub incumbent_token: Option<&'a str>,
    /// The host that mail of the domain must go to.
    pub mx_host: &'a str,
}

/// What was found of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainFindings {
    /// The claimant's TXT record.
    pub txt: RecordFinding,
    /// The MX record.
    pub mx: RecordFinding,
    /// The holder's TXT record. Unlike the others, [`Finding::Found`] if any voting server has
    /// it, so that a holder loses the domain only where it is absent everywhere
    /// ([`Finding::Missing`]). [`Finding::Unknown`] where nobody voted or nobody holds it.
    pub incumbent_txt: Finding,
}

impl DomainFindings {
    /// Nobody voted.
    pub const UNKNOWN: Self =
        Self { txt: RecordFinding::UNKNOWN, mx: RecordFinding::UNKNOWN, incumbent_txt: Finding::Unknown };
}

/// What one server says of the records of one type at one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAnswer<R> {
    /// These are there.
    Records {
        /// The records, or the first of very many; if empty, there are none.
        records: Vec<R>,
        /// What is shown of all of them.
        seen: SeenRecords,
    },
    /// The name stands for another one.
    Alias(Name),
    /// Nothing that counts: no answer, a failure, or the answer of a server that is not
    /// responsible for the name.
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

/// The vote. At least one server must vote, and every one that does must have the record.
///
/// Of `txt`, each element is one server's records at `_tempmail.<domain>`, their character
/// strings joined; of `mx`, one server's exchanges at the domain. An alias that is left in
/// `txt` could not be followed and is no vote. In `mx` it is a mismatch, and so is an exchange
/// that says that the domain takes no mail (RFC 7505), whatever is beside it.
pub fn tally(
    question: &ExpectedRecords<'_>,
    txt: &[ServerAnswer<Vec<u8>>],
    mx: &[ServerAnswer<Name>],
) -> DomainFindings {
    let expected = txt_value(question.token);
    let mx_host = host(question.mx_host);
    let holds = |token| {
        let expected = txt_value(token);
        any_of(txt.iter().filter_map(|answer| judge_txt(answer, &expected)))
    };
    DomainFindings {
        txt: found(txt, |answer| judge_txt(answer, &expected)),
        mx: found(mx, |answer| judge_mx(answer, mx_host.as_ref())),
        incumbent_txt: question.incumbent_token.map_or(Finding::Unknown, holds),
    }
}

/// All votes on a record, and what those have that have something else.
fn found<R>(
    answers: &[ServerAnswer<R>],
    judge: impl Fn(&ServerAnswer<R>) -> Option<Finding>,
) -> RecordFinding {
    let finding = all_of(answers.iter().filter_map(&judge));
    let others = answers.iter().filter(|answer| judge(answer) == Some(Finding::Mismatch));
    let seen = others.map(ServerAnswer::seen).fold(SeenRecords::default(), SeenRecords::and);
    RecordFinding { finding, seen: seen.into_texts() }
}

/// One server's vote on a TXT record, if it has one.
fn judge_txt(answer: &ServerAnswer<Vec<u8>>, expected: &str) -> Option<Finding> {
    let ServerAnswer::Records { records: texts, .. } = answer else { return None };
    if texts.is_empty() {
        return Some(Finding::Missing);
    }
    let is_there = texts.iter().any(|text| text == expected.as_bytes());
    Some(if is_there { Finding::Found } else { Finding::Mismatch })
}

/// One server's vote on the MX record, if it has one.
fn judge_mx(answer: &ServerAnswer<Name>, mx_host: Option<&Name>) -> Option<Finding> {
    match answer {
        ServerAnswer::Records { records: exchanges, .. } if exchanges.is_empty() => Some(Finding::Missing),
        ServerAnswer::Records { records: exchanges, .. } => {
            let ours = exchanges.iter().any(|exchange| Some(exchange) == mx_host);
            let takes_mail = !exchanges.iter().any(Name::is_root);
            Some(if ours && takes_mail { Finding::Found } else { Finding::Mismatch })
        }
        ServerAnswer::Alias(_) => Some(Finding::Mismatch),
        ServerAnswer::NoVote => None,
    }
}

/// Found if every vote is, unknown without any; else the vote that tells the owner most.
fn all_of(votes: impl Iterator<Item = Finding>) -> Finding {
    votes.fold(Finding::Unknown, |found, vote| match (found, vote) {
        (Finding::Mismatch, _) | (_, Finding::Mismatch) => Finding::Mismatch,
        (Finding::Missing, _) | (_, Finding::Missing) => Finding::Missing,
        (Finding::Unknown, vote) => vote,
        (found, _) => found,
    })
}

/// Found if any vote is, unknown without any, else missing.
fn any_of(mut votes: impl Iterator<Item = Finding>) -> Finding {
    match votes.next() {
        None => Finding::Unknown,
        Some(Finding::Found) => Finding::Found,
        Some(_) if votes.any(|vote| vote == Finding::Found) => Finding::Found,
        Some(_) => Finding::Missing,
    }
}

/// The name of a host as answers have it: with the root, compared without regard to case.
fn host(text: &str) -> Option<Name> {
    let mut name = Name::from_ascii(text).ok()?;
    name.set_fqdn(true);
    Some(name)
}

#[cfg(test)]
mod tests;
