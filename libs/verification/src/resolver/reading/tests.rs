//! Messages as servers send them, well or badly.

use hickory_proto::op::OpCode;
use hickory_proto::rr::Record;
use hickory_proto::rr::rdata::{CNAME, MX as Mx, NS, SOA, TXT as Txt};
use proptest::prelude::*;

use super::*;
use crate::resolver::kind::{ALIASES_MAX, MX, TXT};

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

fn text_at_a(message: &Message, links: usize) -> ServerAnswer<Vec<u8>> {
    read(message, &name("x.a."), links, &TXT)
}

#[test]
fn failures_are_no_vote() {
    for code in [ResponseCode::ServFail, ResponseCode::Refused, ResponseCode::FormErr, ResponseCode::NotImp] {
        let message = message(code, &[("x.a.", txt("t"))], &[("a.", soa())]);
        assert_eq!(text_at_a(&message, 0), ServerAnswer::NoVote, "{code}");
    }
}

#[test]
fn negative_answers_have_no_records() {
    let none = ServerAnswer::none();
    for code in [ResponseCode::NoError, ResponseCode::NXDomain] {
        assert_eq!(text_at_a(&message(code, &[], &[("a.", soa())]), 0), none, "{code}");
        assert_eq!(text_at_a(&message(code, &[], &[("a.", soa()), ("a.", ns())]), 0), none, "{code}");
        assert_eq!(text_at_a(&message(code, &[], &[]), 0), none, "{code}: RFC 2308 2.2, type 3");
    }
}

#[test]
fn referrals_are_no_vote() {
    let message = message(ResponseCode::NoError, &[], &[("x.a.", ns())]);
    assert_eq!(text_at_a(&message, 0), ServerAnswer::NoVote);
}

#[test]
fn answers_about_other_names_are_no_vote() {
    let message = message(ResponseCode::NoError, &[("y.a.", txt("t"))], &[("a.", soa())]);
    assert_eq!(text_at_a(&message, 8), ServerAnswer::NoVote);
}

#[test]
fn names_are_compared_without_regard_to_case_and_records_of_other_types_left_out() {
    let message = message(ResponseCode::NoError, &[("X.A.", txt("t")), ("x.a.", ns())], &[]);
    assert_eq!(text_at_a(&message, 0), texts(&["t"]));
    assert_eq!(
        read(&message, &name("x.a."), 0, &MX),
        ServerAnswer::NoVote,
        "it does not say that there are none"
    );
}

#[test]
fn records_of_other_classes_are_left_out() {
    let mut message = message(ResponseCode::NoError, &[("x.a.", txt("t"))], &[]);
    message.answers[0].dns_class = DNSClass::CH;
    assert_eq!(text_at_a(&message, 0), ServerAnswer::NoVote);
}

#[test]
fn aliases_are_followed_as_far_as_they_may_be() {
    let chain = [("x.a.", cname("y.b.")), ("Y.b.", cname("z.c.")), ("z.c.", txt("t"))];
    let message = message(ResponseCode::NoError, &chain, &[]);
    assert_eq!(text_at_a(&message, 0), ServerAnswer::Alias(name("y.b.")));
    assert_eq!(text_at_a(&message, 1), ServerAnswer::Alias(name("z.c.")));
    assert_eq!(text_at_a(&message, 2), texts(&["t"]));
}

#[test]
fn an_alias_to_nothing_has_no_records() {
    let message = message(ResponseCode::NXDomain, &[("x.a.", cname("y.b."))], &[("b.", soa())]);
    assert_eq!(
        text_at_a(&message, 0),
        ServerAnswer::Alias(name("y.b.")),
        "its target is for others to judge"
    );
    assert_eq!(text_at_a(&message, 8), ServerAnswer::none());
}

#[test]
fn a_loop_ends() {
    let message = message(ResponseCode::NoError, &[("x.a.", cname("y.b.")), ("y.b.", cname("x.a."))], &[]);
    assert!(matches!(text_at_a(&message, ALIASES_MAX), ServerAnswer::Alias(_)));
}

#[test]
fn a_hundred_records_count_and_those_shown_are_of_all() {
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
fn records_are_shown_as_they_are_written_in_a_zone() {
    let pieces = RData::TXT(Txt::from_bytes(vec![b"a\x1b", b"\xffb"]));
    let exchange = |preference, host| RData::MX(Mx::new(preference, name(host)));
    let records = [("x.a.", pieces), ("x.a.", exchange(10, "Mail.X.a.")), ("x.a.", exchange(0, "."))];
    let message = message(ResponseCode::NoError, &records, &[]);
    assert_eq!(shown(text_at_a(&message, 0)), ["a\u{fffd}\u{fffd}b"]);
    assert_eq!(shown(read(&message, &name("x.a."), 0, &MX)), ["0 .", "10 mail.x.a"]);
}

proptest! {
    /// Whatever a server sends is read or dropped.
    #[test]
    fn nothing_that_is_sent_stops_the_reader(mut bytes in prop::collection::vec(any::<u8>(), 12..600), flip in any::<u8>()) {
        let whole = message(ResponseCode::NoError, &[("x.a.", cname("y.b.")), ("y.b.", txt("t"))], &[("a.", soa())]);
        let mut broken = whole.to_vec().unwrap();
        let at = usize::from(flip) % broken.len();
        broken[at] ^= bytes[0] | 1;
        bytes[2] |= 0x80;
        for bytes in [bytes, broken] {
            if let Ok(message) = Message::from_vec(&bytes) {
                read(&message, &name("x.a."), ALIASES_MAX, &TXT);
                read(&message, &Name::root(), ALIASES_MAX, &TXT);
            }
        }
    }
}
