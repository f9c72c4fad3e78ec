//! Every combination of answers, and properties of the vote.

use proptest::prelude::*;

use super::Finding::{Found, Mismatch, Missing, Unknown};
use super::*;

const EXPECTED: ExpectedRecords<'static> = ExpectedRecords {
    domain: "acme.test",
    token: "claimant",
    incumbent_token: Some("incumbent"),
    mx_host: "mx.inbox.test",
};

fn txt(texts: &[&str]) -> ServerAnswer<Vec<u8>> {
    ServerAnswer::Records {
        records: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
        seen: texts.iter().map(|text| (*text).to_owned()).collect(),
    }
}

fn mx(exchanges: &[&str]) -> ServerAnswer<Name> {
    ServerAnswer::Records {
        records: exchanges.iter().map(|exchange| Name::from_ascii(exchange).unwrap()).collect(),
        seen: exchanges.iter().map(|exchange| format!("10 {exchange}")).collect(),
    }
}

/// An answer about TXT, and its votes for the claimant's and the incumbent's record.
type TxtCase = (ServerAnswer<Vec<u8>>, Option<Finding>, Option<Finding>);

/// Every kind of answer about TXT.
fn txt_answers() -> Vec<TxtCase> {
    let (ours, incumbents) = ("tempmail-verify=claimant", "tempmail-verify=incumbent");
    vec![
        (txt(&[ours]), Some(Found), Some(Missing)),
        (txt(&["beside", ours]), Some(Found), Some(Missing)),
        (txt(&[ours, incumbents]), Some(Found), Some(Found)),
        (txt(&[incumbents]), Some(Mismatch), Some(Found)),
        (txt(&["beside"]), Some(Mismatch), Some(Missing)),
        (txt(&[]), Some(Missing), Some(Missing)),
        (ServerAnswer::Alias(Name::root()), None, None),
        (ServerAnswer::NoVote, None, None),
    ]
}

/// Every kind of answer about MX, with its vote.
fn mx_answers() -> Vec<(ServerAnswer<Name>, Option<Finding>)> {
    vec![
        (mx(&["mx.inbox.test."]), Some(Found)),
        (mx(&["elsewhere.test.", "MX.Inbox.Test."]), Some(Found)),
        (mx(&["elsewhere.test."]), Some(Mismatch)),
        (mx(&["."]), Some(Mismatch)),
        (mx(&[".", "mx.inbox.test."]), Some(Mismatch)),
        (mx(&[]), Some(Missing)),
        (ServerAnswer::Alias(Name::from_ascii("mx.inbox.test.").unwrap()), Some(Mismatch)),
        (ServerAnswer::NoVote, None),
    ]
}

fn of_all(votes: &[Option<Finding>]) -> Finding {
    let votes: Vec<_> = votes.iter().flatten().collect();
    if votes.is_empty() {
        Unknown
    } else if votes.iter().all(|vote| **vote == Found) {
        Found
    } else if votes.contains(&&Mismatch) {
        Mismatch
    } else {
        Missing
    }
}

fn of_any(votes: &[Option<Finding>]) -> Finding {
    if votes.contains(&Some(Found)) {
        Found
    } else if votes.iter().any(Option::is_some) {
        Missing
    } else {
        Unknown
    }
}

#[test]
fn is_unknown_without_answers() {
    assert_eq!(tally(&EXPECTED, &[], &[]), DomainFindings::UNKNOWN);
}

/// All combinations of three servers, one of which may be absent.
#[test]
fn follows_the_rule_for_every_combination_of_answers() {
    let (txts, mxs) = (txt_answers(), mx_answers());
    for a in 0..txts.len() {
        for b in 0..txts.len() {
            for c in 0..=txts.len() {
                let chosen: Vec<_> = [a, b, c].iter().filter_map(|at| txts.get(*at)).cloned().collect();
                let answers: Vec<_> = chosen.iter().map(|(answer, ..)| answer.clone()).collect();
                let found = tally(&EXPECTED, &answers, &[]);
                let ours: Vec<_> = chosen.iter().map(|(_, vote, _)| *vote).collect();
                let incumbents: Vec<_> = chosen.iter().map(|(.., vote)| *vote).collect();
                assert_eq!(found.txt.finding, of_all(&ours), "{answers:?}");
                assert_eq!(found.incumbent_txt, of_any(&incumbents), "{answers:?}");
                assert_eq!(found.mx, RecordFinding::UNKNOWN);

                let chosen: Vec<_> = [a, b, c].iter().filter_map(|at| mxs.get(*at)).cloned().collect();
                let answers: Vec<_> = chosen.iter().map(|(answer, _)| answer.clone()).collect();
                let votes: Vec<_> = chosen.iter().map(|(_, vote)| *vote).collect();
                assert_eq!(tally(&EXPECTED, &[], &answers).mx.finding, of_all(&votes), "{answers:?}");
            }
        }
    }
}

#[test]
fn finds_nothing_of_an_incumbent_without_one() {
    let question = ExpectedRecords { incumbent_token: None, ..EXPECTED };
    for (answer, ..) in txt_answers() {
        assert_eq!(tally(&question, &[answer], &[]).incumbent_txt, Unknown);
    }
}

#[test]
fn finds_no_mx_record_if_the_host_is_not_a_name() {
    let question = ExpectedRecords { mx_host: "a..b", ..EXPECTED };
    assert_eq!(tally(&question, &[], &[mx(&["mx.inbox.test."])]).mx.finding, Mismatch);
}

/// Only what is wrong needs to be mended.
#[test]
fn shows_the_records_of_servers_that_have_something_else() {
    let ours = "tempmail-verify=claimant";
    let answers =
        [txt(&[ours, "beside"]), txt(&["b", "a"]), txt(&[]), ServerAnswer::NoVote, txt(&["c", "a"])];
    let found = tally(&EXPECTED, &answers, &[]);
    assert_eq!((found.txt.finding, found.txt.seen), (Mismatch, vec!["a".into(), "b".into(), "c".into()]));
    for nothing_else in [&answers[..1], &answers[2..3], &answers[3..4]] {
        assert_eq!(tally(&EXPECTED, nothing_else, &[]).txt.seen, [""; 0], "{nothing_else:?}");
    }

    let alias = ServerAnswer::Alias(Name::from_ascii("MX.Inbox.Test.").unwrap());
    let answers = [mx(&["mx.inbox.test."]), mx(&["."]), alias];
    assert_eq!(tally(&EXPECTED, &[], &answers).mx.seen, ["10 .", "CNAME mx.inbox.test"]);
}

fn some_txt() -> impl Strategy<Value = Vec<ServerAnswer<Vec<u8>>>> {
    let one = prop_oneof![
        4 => prop::sample::select(txt_answers()).prop_map(|(answer, ..)| answer),
        1 => prop::collection::vec(".{0,20}", 0..4)
            .prop_map(|texts| txt(&texts.iter().map(String::as_str).collect::<Vec<_>>())),
    ];
    prop::collection::vec(one, 0..30)
}

fn some_mx() -> impl Strategy<Value = Vec<ServerAnswer<Name>>> {
    prop::collection::vec(prop::sample::select(mx_answers()).prop_map(|(answer, _)| answer), 0..30)
}

proptest! {
    #[test]
    fn does_not_depend_on_the_order_of_servers(
        (txt, shuffled) in some_txt().prop_flat_map(|txt| (Just(txt.clone()), Just(txt).prop_shuffle())),
        (mx, mixed) in some_mx().prop_flat_map(|mx| (Just(mx.clone()), Just(mx).prop_shuffle())),
    ) {
        prop_assert_eq!(tally(&EXPECTED, &txt, &mx), tally(&EXPECTED, &shuffled, &mixed));
    }

    #[test]
    fn ignores_servers_without_a_vote(txt in some_txt(), mx in some_mx(), at in any::<usize>()) {
        let before = tally(&EXPECTED, &txt, &mx);
        let (mut more_txt, mut more_mx) = (txt.clone(), mx.clone());
        more_txt.insert(at % (txt.len() + 1), ServerAnswer::NoVote);
        more_mx.insert(at % (mx.len() + 1), ServerAnswer::NoVote);
        prop_assert_eq!(tally(&EXPECTED, &more_txt, &more_mx), before);
    }

    /// One more vote can spoil a record, but never prove it where the others do not; and it
    /// can save the incumbent, but never make its record absent.
    #[test]
    fn an_additional_vote_never_displaces_the_incumbent(
        txt in some_txt(),
        mx in some_mx(),
        more in prop::sample::select(txt_answers()),
    ) {
        let before = tally(&EXPECTED, &txt, &mx);
        let longer: Vec<_> = txt.into_iter().chain([more.0]).collect();
        let after = tally(&EXPECTED, &longer, &mx);
        if after.txt.finding == Found {
            prop_assert!(matches!(before.txt.finding, Found | Unknown));
        }
        if before.incumbent_txt == Found {
            prop_assert_eq!(after.incumbent_txt, Found);
        }
    }
}

fn texts(records: &[&str]) -> Vec<String> {
    records.iter().map(|record| (*record).to_owned()).collect::<SeenRecords>().into_texts()
}

#[test]
fn keeps_five_records_sorted_without_duplicates() {
    assert_eq!(texts(&["c", "a", "f", "b", "a", "e", "d"]), ["a", "b", "c", "d", "e"]);
    assert_eq!(texts(&[]), [""; 0]);
    assert_eq!(texts(&[""]), [""], "a record without text is one");
}

#[test]
fn replaces_invisible_characters() {
    let marked = "a\u{fffd}b";
    for c in ['\0', '\x07', '\x1b', '\n', '\x7f', '\u{9b}', '\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}'] {
        assert_eq!(texts(&[&format!("a{c}b")]), [marked], "{c:?}");
    }
    assert_eq!(texts(&["tempmail-verify= ä字😀\""]), ["tempmail-verify= ä字😀\""]);
}

#[test]
fn cuts_a_long_record_between_characters() {
    assert_eq!(texts(&[&"ä".repeat(300)]), ["ä".repeat(255)]);
    let (one, two) = (format!("{}1", "x".repeat(255)), format!("{}2", "x".repeat(255)));
    assert_eq!(texts(&[&one, &two]).len(), 1, "what is kept of them is the same");
}

#[test]
fn shows_hosts_in_lower_case_without_the_last_dot() {
    for (name, text) in
        [("Mail.ACME.test.", "mail.acme.test"), ("mail.acme.test", "mail.acme.test"), (".", ".")]
    {
        assert_eq!(host_text(&Name::from_ascii(name).unwrap()), text);
    }
    let odd = Name::from_labels([&b"a.b\0\x1b\xff"[..], b"test"]).unwrap();
    let text = host_text(&odd);
    assert!(text.bytes().all(|octet| octet.is_ascii_graphic()), "{text}");
}

proptest! {
    #[test]
    fn does_not_depend_on_order_repetition_or_grouping(
        (records, shuffled) in prop::collection::vec("[a-d\u{0}\u{200b}ä]{0,4}", 0..40)
            .prop_flat_map(|records| (Just(records.clone()), Just(records).prop_shuffle())),
        at in any::<prop::sample::Index>(),
    ) {
        let seen: SeenRecords = records.iter().cloned().collect();
        let (head, tail) = shuffled.split_at(at.index(shuffled.len() + 1));
        let grouped = SeenRecords::from_iter(head.to_vec()).merge(tail.iter().chain(head).cloned().collect());
        prop_assert_eq!(&seen, &grouped);
        prop_assert!(seen.into_texts().len() <= 5);
    }
}
