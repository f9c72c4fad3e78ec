//! Reads the records at a name from a message.

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, RecordType};

use super::record_kind::RecordKind;
use crate::vote::ServerAnswer;

/// Records of an answer that are read at most.
const RECORDS_MAX: usize = 100;

/// Reads the records of a kind at `name`, following up to `max_aliases` aliases inside the message.
pub(super) fn read_answer<R>(
    message: &Message,
    name: &Name,
    max_aliases: usize,
    kind: &RecordKind<R>,
) -> ServerAnswer<R> {
    if !is_usable(message) {
        return ServerAnswer::NoVote;
    }
    let mut name = name;
    for followed in 0.. {
        let records: Vec<R> = at(message, name).filter_map(kind.data).take(RECORDS_MAX).collect();
        if !records.is_empty() {
            // From all records, so that those that are shown do not depend on their order.
            let seen = at(message, name).filter_map(kind.shown).collect();
            return ServerAnswer::Records { records, seen };
        }
        match at(message, name).find_map(alias) {
            Some(target) if followed == max_aliases => return ServerAnswer::Alias(target.clone()),
            Some(target) => name = target,
            None if followed == 0 && !message.answers.is_empty() => return ServerAnswer::NoVote,
            None => break,
        }
    }
    if is_referral(message) { ServerAnswer::NoVote } else { ServerAnswer::none() }
}

/// Whether the server answers with records, or that there are none.
pub(super) fn is_usable(message: &Message) -> bool {
    matches!(message.metadata.response_code, ResponseCode::NoError | ResponseCode::NXDomain)
}

/// The apex of the zone that a negative answer comes from.
pub(super) fn apex(message: &Message) -> Option<&Name> {
    message
        .authorities
        .iter()
        .find(|record| record.record_type() == RecordType::SOA)
        .map(|record| &record.name)
}

fn at<'m>(message: &'m Message, name: &'m Name) -> impl Iterator<Item = &'m RData> {
    let of_name = message.answers.iter().filter(move |record| record.name == *name);
    of_name.filter(|record| record.dns_class == DNSClass::IN).map(|record| &record.data)
}

fn alias(data: &RData) -> Option<&Name> {
    match data {
        RData::CNAME(target) => Some(&target.0),
        _ => None,
    }
}

/// Whether an answer without records refers to other servers. An answer that there are none has the SOA of the zone, or no
/// name servers (RFC 2308 2.2).
fn is_referral(message: &Message) -> bool {
    let refers = message.authorities.iter().any(|record| record.record_type() == RecordType::NS);
    refers && apex(message).is_none()
}

#[cfg(test)]
mod tests;
