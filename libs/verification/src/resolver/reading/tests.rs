//! Messages as servers send them, well or badly.

use hickory_proto::op::OpCode;
use hickory_proto::rr::Record;
use hickory_proto::rr::rdata::{CNAME, NS, SOA, TXT as Txt};
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

fn text_at_a(message: &Message, links: usize) -> Answer<Vec<u8>> {
    read(message, &name("x.a."), links, &TXT)
}

#[test]
fn failures_are_no_vote() {
    for code in [ResponseCode::ServFail, ResponseCode::Refused, ResponseCode::FormErr, ResponseCode::NotImp] {
        let message = message(code, &[("x.a.", txt("t"))], &[("a.", soa())]);
        assert_eq!(text_at_a(&message, 0), Answer::NoVote, "{code}");
    }
}

#[test]
fn negative_answers_have_no_records() {
    let none = Answer::Records(Vec::new());
    for code in [ResponseCode::NoError, ResponseCode::NXDomain] {
        assert_eq!(text_at_a(&message(code, &[], &[("a.", soa())]), 0), none, "{code}");
        assert_eq!(text_at_a(&message(code, &[], &[("a.", soa()), ("a.", ns())]), 0), none, "{code}");
        assert_eq!(text_at_a(&message(code, &[], &[]), 0), none, "{code}: RFC 2308 2.2, type 3");
    }
}

#[test]
fn referrals_are_no_vote() {
    let message = message(ResponseCode::NoError, &[], &[("x.a.", ns())]);
    assert_eq!(text_at_a(&message, 0), Answer::NoVote);
}

#[test]
fn answers_about_other_names_are_no_vote() {
    let message = message(ResponseCode::NoError, &[("y.a.", txt("t"))], &[("a.", soa())]);
    assert_eq!(text_at_a(&message, 8), Answer::NoVote);
}

#[test]
fn names_are_compared_without_regard_to_case_and_records_of_other_types_left_out() {
    let message = message(ResponseCode::NoError, &[("X.A.", txt("t")), ("x.a.", ns())], &[]);
    assert_eq!(text_at_a(&message, 0), Answer::Records(vec![b"t".to_vec()]));
    assert_eq!(read(&message, &name("x.a."), 0, &MX), Answer::NoVote, "it does not say that there are none");
}

#[test]
fn records_of_other_classes_are_left_out() {
    let mut message = message(ResponseCode::NoError, &[("x.a.", txt("t"))], &[]);
    message.answers[0].dns_class = DNSClass::CH;
    assert_eq!(text_at_a(&message, 0), Answer::NoVote);
}

#[test]
fn aliases_are_followed_as_far_as_they_may_be() {
    let chain = [("x.a.", cname("y.b.")), ("Y.b.", cname("z.c.")), ("z.c.", txt("t"))];
    let message = message(ResponseCode::NoError, &chain, &[]);
    assert_eq!(text_at_a(&message, 0), Answer::Alias(name("y.b.")));
    assert_eq!(text_at_a(&message, 1), Answer::Alias(name("z.c.")));
    assert_eq!(text_at_a(&message, 2), Answer::Records(vec![b"t".to_vec()]));
}

#[test]
fn an_alias_to_nothing_has_no_records() {
    let message = message(ResponseCode::NXDomain, &[("x.a.", cname("y.b."))], &[("b.", soa())]);
    assert_eq!(text_at_a(&message, 0), Answer::Alias(name("y.b.")), "its target is for others to judge");
    assert_eq!(text_at_a(&message, 8), Answer::Records(Vec::new()));
}

#[test]
fn a_loop_ends() {
    let message = message(ResponseCode::NoError, &[("x.a.", cname("y.b.")), ("y.b.", cname("x.a."))], &[]);
    assert!(matches!(text_at_a(&message, ALIASES_MAX), Answer::Alias(_)));
}

#[test]
fn no_more_than_a_hundred_records_are_read() {
    let many = vec![("x.a.", txt("t")); 150];
    assert_eq!(
        text_at_a(&message(ResponseCode::NoError, &many, &[]), 0),
        Answer::Records(vec![b"t".to_vec(); 100])
    );
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
