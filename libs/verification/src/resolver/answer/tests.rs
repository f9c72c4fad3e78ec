//! Messages as servers send them, well or badly.

use hickory_proto::op::OpCode;
use hickory_proto::rr::Record;
use hickory_proto::rr::rdata::{CNAME, MX as Mx, NS, SOA, TXT as Txt};
use proptest::prelude::*;

use super::*;
use crate::resolver::record_kind::{ALIASES_MAX, MX, TXT};

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn message(response_code: ResponseCode, answers: &[(&str, RData)], authorities: &[(&str, RData)]) -> Message {
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
    for code in [ResponseCode::ServFail, ResponseCode::Refused, ResponseCode::FormErr, ResponseCode::NotImp] {
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
    let message = message(ResponseCode::NoError, &[("x.a.", cname("y.b.")), ("y.b.", cname("x.a."))], &[]);
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
