//! Reads the records at a name from a message: of which type, and how each is read and shown.

use std::net::IpAddr;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, RecordType};

use crate::vote::{ServerAnswer, host_text};

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

/// Whether an answer without records refers to other servers. An answer that there are none has the SOA of the zone,
/// or no name servers (RFC 2308 2.2).
fn is_referral(message: &Message) -> bool {
    let refers = message.authorities.iter().any(|record| record.record_type() == RecordType::NS);
    refers && apex(message).is_none()
}

/// Aliases that are followed from one name at most.
pub(super) const ALIASES_MAX: usize = 8;

/// A type of record whose data is read as `R`.
pub(super) struct RecordKind<R> {
    /// The type to query.
    pub record_type: RecordType,
    /// The data of a record of this type.
    pub data: fn(&RData) -> Option<R>,
    /// The text of a record of this type, as its owner is shown it; `None` if it is not shown.
    pub shown: fn(&RData) -> Option<String>,
    /// Aliases that may lead to a record.
    pub max_aliases: usize,
}

/// Texts: the character strings of each record, joined.
pub(super) const TXT: RecordKind<Vec<u8>> = RecordKind {
    record_type: RecordType::TXT,
    data: |data| match data {
        RData::TXT(txt) => Some(txt.txt_data.concat()),
        _ => None,
    },
    shown: |data| match data {
        RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
        _ => None,
    },
    max_aliases: ALIASES_MAX,
};

/// Exchanges; their preference is shown, but not compared.
pub(super) const MX: RecordKind<Name> = RecordKind {
    record_type: RecordType::MX,
    data: |data| match data {
        RData::MX(mx) => Some(mx.exchange.clone()),
        _ => None,
    },
    shown: |data| match data {
        RData::MX(mx) => Some(format!("{} {}", mx.preference, host_text(&mx.exchange))),
        _ => None,
    },
    max_aliases: 0,
};

/// Name servers.
pub(super) const NS: RecordKind<Name> = RecordKind {
    record_type: RecordType::NS,
    data: |data| match data {
        RData::NS(host) => Some(host.0.clone()),
        _ => None,
    },
    shown: |_| None,
    max_aliases: 0,
};

/// IPv4 addresses.
pub(super) const A: RecordKind<IpAddr> = RecordKind {
    record_type: RecordType::A,
    data: |data| match data {
        RData::A(address) => Some(address.0.into()),
        _ => None,
    },
    shown: |_| None,
    max_aliases: ALIASES_MAX,
};

/// IPv6 addresses.
pub(super) const AAAA: RecordKind<IpAddr> = RecordKind {
    record_type: RecordType::AAAA,
    data: |data| match data {
        RData::AAAA(address) => Some(address.0.into()),
        _ => None,
    },
    shown: |_| None,
    max_aliases: ALIASES_MAX,
};

#[cfg(test)]
mod tests {
    use hickory_proto::op::OpCode;
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::{CNAME, MX as Mx, NS, SOA, TXT as Txt};
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn message(
        response_code: ResponseCode,
        answers: &[(&str, RData)],
        authorities: &[(&str, RData)],
    ) -> Message {
        let mut message = Message::error_msg(1, OpCode::Query, response_code);
        let record = |(at, data): &(&str, RData)| Record::from_rdata(name(at), 1, data.clone());
        message.add_answers(answers.iter().map(record)).add_authorities(authorities.iter().map(record));
        message
    }

    fn txt(text: &str) -> RData {
        RData::TXT(Txt::new(vec![text.to_owned()]))
    }

    fn cname(target: &str) -> RData {
        RData::CNAME(CNAME(name(target)))
    }

    fn soa() -> RData {
        RData::SOA(SOA::new(name("a."), name("a."), 1, 1, 1, 1, 1))
    }

    fn ns() -> RData {
        RData::NS(NS(name("ns.")))
    }

    /// Records with these texts.
    fn texts(texts: &[&str]) -> ServerAnswer<Vec<u8>> {
        ServerAnswer::Records {
            records: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
            seen: texts.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    /// What is shown of records.
    fn shown<R>(answer: ServerAnswer<R>) -> Vec<String> {
        match answer {
            ServerAnswer::Records { seen, .. } => seen.into_texts(),
            ServerAnswer::Alias(_) | ServerAnswer::NoVote => panic!("there are records"),
        }
    }

    fn text_at_a(message: &Message, max_aliases: usize) -> ServerAnswer<Vec<u8>> {
        read_answer(message, &name("x.a."), max_aliases, &TXT)
    }

    #[test]
    fn counts_no_vote_for_a_failure() {
        for code in
            [ResponseCode::ServFail, ResponseCode::Refused, ResponseCode::FormErr, ResponseCode::NotImp]
        {
            let message = message(code, &[("x.a.", txt("t"))], &[("a.", soa())]);
            assert_eq!(text_at_a(&message, 0), ServerAnswer::NoVote, "{code}");
        }
    }

    #[test]
    fn reads_no_records_from_a_negative_answer() {
        let none = ServerAnswer::none();
        for code in [ResponseCode::NoError, ResponseCode::NXDomain] {
            assert_eq!(text_at_a(&message(code, &[], &[("a.", soa())]), 0), none, "{code}");
            assert_eq!(text_at_a(&message(code, &[], &[("a.", soa()), ("a.", ns())]), 0), none, "{code}");
            assert_eq!(text_at_a(&message(code, &[], &[]), 0), none, "{code}: RFC 2308 2.2, type 3");
        }
    }

    #[test]
    fn counts_no_vote_for_a_referral() {
        let message = message(ResponseCode::NoError, &[], &[("x.a.", ns())]);
        assert_eq!(text_at_a(&message, 0), ServerAnswer::NoVote);
    }

    #[test]
    fn counts_no_vote_for_an_answer_about_another_name() {
        let message = message(ResponseCode::NoError, &[("y.a.", txt("t"))], &[("a.", soa())]);
        assert_eq!(text_at_a(&message, 8), ServerAnswer::NoVote);
    }

    #[test]
    fn ignores_case_and_records_of_other_types() {
        let message = message(ResponseCode::NoError, &[("X.A.", txt("t")), ("x.a.", ns())], &[]);
        assert_eq!(text_at_a(&message, 0), texts(&["t"]));
        assert_eq!(
            read_answer(&message, &name("x.a."), 0, &MX),
            ServerAnswer::NoVote,
            "it does not say that there are none"
        );
    }

    #[test]
    fn ignores_records_of_other_classes() {
        let mut message = message(ResponseCode::NoError, &[("x.a.", txt("t"))], &[]);
        message.answers[0].dns_class = DNSClass::CH;
        assert_eq!(text_at_a(&message, 0), ServerAnswer::NoVote);
    }

    #[test]
    fn follows_aliases_up_to_the_limit() {
        let chain = [("x.a.", cname("y.b.")), ("Y.b.", cname("z.c.")), ("z.c.", txt("t"))];
        let message = message(ResponseCode::NoError, &chain, &[]);
        assert_eq!(text_at_a(&message, 0), ServerAnswer::Alias(name("y.b.")));
        assert_eq!(text_at_a(&message, 1), ServerAnswer::Alias(name("z.c.")));
        assert_eq!(text_at_a(&message, 2), texts(&["t"]));
    }

    #[test]
    fn reads_no_records_behind_an_alias_to_nothing() {
        let message = message(ResponseCode::NXDomain, &[("x.a.", cname("y.b."))], &[("b.", soa())]);
        assert_eq!(
            text_at_a(&message, 0),
            ServerAnswer::Alias(name("y.b.")),
            "its target is for others to judge"
        );
        assert_eq!(text_at_a(&message, 8), ServerAnswer::none());
    }

    #[test]
    fn ends_in_a_loop_of_aliases() {
        let message =
            message(ResponseCode::NoError, &[("x.a.", cname("y.b.")), ("y.b.", cname("x.a."))], &[]);
        assert!(matches!(text_at_a(&message, ALIASES_MAX), ServerAnswer::Alias(_)));
    }

    #[test]
    fn reads_a_hundred_records_and_shows_the_first_of_all() {
        let numbers: Vec<String> = (0..200).map(|number| format!("{number:03}")).collect();
        let mut answers: Vec<_> = numbers.iter().map(|number| ("x.a.", txt(number))).collect();
        for _ in 0..2 {
            let answer = text_at_a(&message(ResponseCode::NoError, &answers, &[]), 0);
            assert!(matches!(&answer, ServerAnswer::Records { records, .. } if records.len() == 100));
            assert_eq!(shown(answer), ["000", "001", "002", "003", "004"]);
            answers.reverse();
        }
    }

    #[test]
    fn shows_records_as_a_zone_file_does() {
        let pieces = RData::TXT(Txt::from_bytes(vec![b"a\x1b", b"\xffb"]));
        let exchange = |preference, host| RData::MX(Mx::new(preference, name(host)));
        let records = [("x.a.", pieces), ("x.a.", exchange(10, "Mail.X.a.")), ("x.a.", exchange(0, "."))];
        let message = message(ResponseCode::NoError, &records, &[]);
        assert_eq!(shown(text_at_a(&message, 0)), ["a\u{fffd}\u{fffd}b"]);
        assert_eq!(shown(read_answer(&message, &name("x.a."), 0, &MX)), ["0 .", "10 mail.x.a"]);
    }

    proptest! {
        /// Whatever a server sends is read or dropped.
        #[test]
        fn reads_any_bytes_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 12..600), flip in any::<u8>()) {
            let whole = message(ResponseCode::NoError, &[("x.a.", cname("y.b.")), ("y.b.", txt("t"))], &[("a.", soa())]);
            let mut broken = whole.to_vec().unwrap();
            let at = usize::from(flip) % broken.len();
            broken[at] ^= bytes[0] | 1;
            bytes[2] |= 0x80;
            for bytes in [bytes, broken] {
                if let Ok(message) = Message::from_vec(&bytes) {
                    read_answer(&message, &name("x.a."), ALIASES_MAX, &TXT);
                    read_answer(&message, &Name::root(), ALIASES_MAX, &TXT);
                }
            }
        }
    }
}
