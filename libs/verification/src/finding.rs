//! What follows from the answers of a domain's name servers: a decision without I/O.

use hickory_proto::rr::Name;

/// What the TXT record says before the token.
const TXT_PREFIX: &[u8] = b"tempmail-verify=";

/// The records that a claimant of a domain must have set.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The domain, as A-labels.
    pub domain: &'a str,
    /// The claimant's token.
    pub token: &'a str,
    /// The token of the tenant that holds the domain, if another does.
    pub holder_token: Option<&'a str>,
    /// The host that mail of the domain must go to.
    pub mx_host: &'a str,
}

/// What the servers that voted found of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Every voting server has it.
    Right,
    /// A voting server has nothing in its place.
    Missing,
    /// A voting server has something else in its place.
    Mismatch,
    /// Nobody voted.
    Unknown,
}

/// What was found of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Findings {
    /// The claimant's TXT record.
    pub txt: Finding,
    /// The MX record.
    pub mx: Finding,
    /// The holder's TXT record. Unlike the others, [`Finding::Right`] if any voting server has
    /// it, so that a holder loses the domain only where it is absent everywhere
    /// ([`Finding::Missing`]). [`Finding::Unknown`] where nobody voted or nobody holds it.
    pub holder_txt: Finding,
}

impl Finding {
    /// One word, for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Missing => "missing",
            Self::Mismatch => "mismatch",
            Self::Unknown => "unknown",
        }
    }
}

impl Findings {
    /// Nobody voted.
    pub const UNKNOWN: Self =
        Self { txt: Finding::Unknown, mx: Finding::Unknown, holder_txt: Finding::Unknown };
}

/// What one server says of the records of one type at one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<R> {
    /// These are there, and no others; if empty, none are.
    Records(Vec<R>),
    /// The name stands for another one.
    Alias(Name),
    /// Nothing that counts: no answer, a failure, or the answer of a server that is not
    /// responsible for the name.
    NoVote,
}

/// The vote. At least one server must vote, and every one that does must have the record.
///
/// Of `txt`, each element is one server's records at `_tempmail.<domain>`, their character
/// strings joined; of `mx`, one server's exchanges at the domain. An alias that is left in
/// `txt` could not be followed and is no vote. In `mx` it is a mismatch, and so is an exchange
/// that says that the domain takes no mail (RFC 7505), whatever is beside it.
pub fn decide(question: &Question<'_>, txt: &[Answer<Vec<u8>>], mx: &[Answer<Name>]) -> Findings {
    let holds = |token: &str| {
        let expected = [TXT_PREFIX, token.as_bytes()].concat();
        txt.iter().filter_map(move |answer| judge_txt(answer, &expected))
    };
    let mx_host = host(question.mx_host);
    Findings {
        txt: all_of(holds(question.token)),
        mx: all_of(mx.iter().filter_map(|answer| judge_mx(answer, mx_host.as_ref()))),
        holder_txt: question.holder_token.map_or(Finding::Unknown, |token| any_of(holds(token))),
    }
}

/// One server's vote on a TXT record, if it has one.
fn judge_txt(answer: &Answer<Vec<u8>>, expected: &[u8]) -> Option<Finding> {
    match answer {
        Answer::Records(texts) if texts.is_empty() => Some(Finding::Missing),
        Answer::Records(texts) if texts.iter().any(|text| text == expected) => Some(Finding::Right),
        Answer::Records(_) => Some(Finding::Mismatch),
        Answer::Alias(_) | Answer::NoVote => None,
    }
}

/// One server's vote on the MX record, if it has one.
fn judge_mx(answer: &Answer<Name>, mx_host: Option<&Name>) -> Option<Finding> {
    match answer {
        Answer::Records(exchanges) if exchanges.is_empty() => Some(Finding::Missing),
        Answer::Records(exchanges) => {
            let ours = exchanges.iter().any(|exchange| Some(exchange) == mx_host);
            let takes_mail = !exchanges.iter().any(Name::is_root);
            Some(if ours && takes_mail { Finding::Right } else { Finding::Mismatch })
        }
        Answer::Alias(_) => Some(Finding::Mismatch),
        Answer::NoVote => None,
    }
}

/// Right if every vote is, unknown without any; else the vote that tells the owner most.
fn all_of(votes: impl Iterator<Item = Finding>) -> Finding {
    votes.fold(Finding::Unknown, |found, vote| match (found, vote) {
        (Finding::Mismatch, _) | (_, Finding::Mismatch) => Finding::Mismatch,
        (Finding::Missing, _) | (_, Finding::Missing) => Finding::Missing,
        (Finding::Unknown, vote) => vote,
        (found, _) => found,
    })
}

/// Right if any vote is, unknown without any, else missing.
fn any_of(mut votes: impl Iterator<Item = Finding>) -> Finding {
    match votes.next() {
        None => Finding::Unknown,
        Some(Finding::Right) => Finding::Right,
        Some(_) if votes.any(|vote| vote == Finding::Right) => Finding::Right,
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
