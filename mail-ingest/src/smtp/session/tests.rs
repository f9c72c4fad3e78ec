//! Scripted clients, with their input whole and in any split.

use std::sync::Arc;

use proptest::prelude::*;
use tempmail_model::address::RecipientAddress;
use tempmail_model::trace::Protocol;

use super::{Action, Session, SessionSettings};
use crate::memory::MemoryBudget;
use crate::smtp::command::LINE_MAX;
use crate::smtp::data::DataLimits;
use crate::smtp::reply::{self, Reply};
use crate::smtp::{
    AcceptedRecipient, DeliveryOutcome, Peer, PendingRecipient, ReceivedMail, RecipientRejection,
};

const HELLO: &str = "EHLO client.example\r\n";

fn settings() -> SessionSettings {
    SessionSettings {
        hostname: "mx.example".into(),
        tls_offered: true,
        catches_all: false,
        data: DataLimits {
            message_octets: 10_000,
            header_octets: 1_000,
            header_fields: 10,
            takes_any_line: false,
        },
        max_recipients: 5,
        max_errors: 8,
        memory: MemoryBudget::of(100_000),
    }
}

fn session(settings: SessionSettings) -> Session {
    Session::new(Arc::new(settings), peer(), false)
}

fn peer() -> Peer {
    Peer { address: "192.0.2.1".parse().unwrap(), client: None }
}

/// Recipients of the tests: `no…` is unknown, `later` can't be looked up, all others exist.
fn check(recipient: PendingRecipient) -> Result<AcceptedRecipient, RecipientRejection> {
    let address = match recipient {
        PendingRecipient::Postmaster => Ok(RecipientAddress::parse("postmaster@default.example").unwrap()),
        PendingRecipient::Address(address) => match address.local_part() {
            name if name.starts_with("no") => Err(RecipientRejection::Unknown),
            "later" => Err(RecipientRejection::Unavailable),
            _ => Ok(address),
        },
    };
    address.map(|address| AcceptedRecipient { address, tenant: None })
}

#[derive(Debug, Default)]
struct Transcript {
    out: Vec<u8>,
    mails: Vec<ReceivedMail>,
    closed: bool,
    start_tls: bool,
    /// Numbers of recipients that were checked together.
    checks: Vec<usize>,
    /// How often replies had to be sent before more commands were handled.
    flushes: usize,
}

impl Transcript {
    /// Replies without their texts: code, and enhanced code where there is one.
    fn codes(&self) -> Vec<String> {
        let text = String::from_utf8(self.out.clone()).unwrap();
        let code = |line: &str| {
            let enhanced = line[4..].split(' ').next().filter(|word| word.matches('.').count() == 2);
            match enhanced.filter(|word| word.starts_with(&line[..1])) {
                Some(enhanced) => format!("{} {enhanced}", &line[..3]),
                None => line[..3].to_owned(),
            }
        };
        text.lines().filter(|line| line.as_bytes()[3] == b' ').map(code).collect()
    }

    fn mail_texts(&self) -> Vec<(String, Vec<String>, Vec<u8>)> {
        let recipients =
            |mail: &ReceivedMail| mail.recipients.iter().map(|to| to.address.as_str().to_owned()).collect();
        self.mails.iter().map(|mail| (mail.sender.clone(), recipients(mail), mail.data.clone())).collect()
    }
}

/// Feeds `blocks` to a session as a connection does.
fn run<'a>(session: &mut Session, blocks: impl IntoIterator<Item = &'a [u8]>) -> Transcript {
    let mut transcript = Transcript::default();
    let mut input: Vec<u8> = Vec::new();
    for block in blocks {
        input.extend_from_slice(block);
        loop {
            let mut replies = Vec::new();
            let step = session.feed(&input, &mut replies);
            transcript.out.append(&mut replies);
            input.drain(..step.consumed);
            match step.action {
                Action::Read => break,
                Action::Flush => transcript.flushes += 1,
                Action::CheckRecipients(recipients) => {
                    transcript.checks.push(recipients.len());
                    session.recipients_checked(recipients.into_iter().map(check), &mut transcript.out);
                }
                Action::Deliver(mail) => {
                    transcript.mails.push(*mail);
                    session.delivered(DeliveryOutcome::Stored, &mut transcript.out);
                }
                Action::StartTls => {
                    transcript.start_tls = true;
                    return transcript;
                }
                Action::Close => {
                    transcript.closed = true;
                    return transcript;
                }
            }
        }
        assert!(input.len() <= LINE_MAX, "unconsumed input is bounded");
    }
    transcript
}

fn script(text: &str) -> Transcript {
    run(&mut session(settings()), [text.as_bytes()])
}

#[track_caller]
fn codes(text: &str, expected: &[&str]) {
    assert_eq!(script(text).codes(), expected, "{text}");
}

#[test]
fn receives_a_mail() {
    let transcript = script(
        "EHLO client.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<C@d.example>\r\nDATA\r\n\
         Subject: x\r\n\r\n..body\r\n.\r\nQUIT\r\n",
    );
    assert_eq!(transcript.codes(), ["250", "250 2.1.0", "250 2.1.5", "354", "250 2.0.0", "221 2.0.0"]);
    let mail = &transcript.mails[0];
    assert_eq!(mail.data, b"Subject: x\r\n\r\n.body\r\n");
    assert_eq!((mail.hello.as_str(), mail.sender.as_str()), ("client.example", "a@b.example"));
    assert_eq!(mail.protocol, Protocol::Esmtp);
    assert!(transcript.closed);
}

#[test]
fn lists_extensions_after_ehlo() {
    let text = String::from_utf8(script(HELLO).out).unwrap();
    assert_eq!(
        text,
        "250-mx.example\r\n250-PIPELINING\r\n250-SIZE 10000\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n\
         250-CHUNKING\r\n250-ENHANCEDSTATUSCODES\r\n250-STARTTLS\r\n250 LIMITS RCPTMAX=5\r\n"
    );
    let mut after_tls = Session::new(Arc::new(settings()), peer(), true);
    let text = String::from_utf8(run(&mut after_tls, [HELLO.as_bytes()]).out).unwrap();
    assert!(!text.contains("STARTTLS"));
    assert_eq!(run(&mut after_tls, [&b"STARTTLS\r\n"[..]]).codes(), ["503 5.5.1"]);
}

#[test]
fn rejects_commands_out_of_sequence() {
    codes("MAIL FROM:<>\r\nRCPT TO:<a@b>\r\nDATA\r\n", &["503 5.5.1", "503 5.5.1", "503 5.5.1"]);
    codes("HELO a\r\nMAIL FROM:<>\r\nMAIL FROM:<>\r\n", &["250", "250 2.1.0", "503 5.5.1"]);
    codes(
        "HELO a\r\nMAIL FROM:<>\r\nDATA\r\nRSET\r\nDATA\r\n",
        &["250", "250 2.1.0", "554 5.5.1", "250 2.0.0", "503 5.5.1"],
    );
    codes(
        "HELO a\r\nMAIL FROM:<>\r\nRCPT TO:<no@b>\r\nDATA\r\n",
        &["250", "250 2.1.0", "550 5.1.1", "554 5.5.1"],
    );
    codes(
        "HELO a\r\nMAIL FROM:<>\r\nRCPT TO:<later@b>\r\nDATA\r\nBDAT 1 LAST\r\nx",
        &["250", "250 2.1.0", "451 4.3.0", "451 4.5.0", "451 4.5.0"],
    );
    codes("HELO a\r\nMAIL FROM:<>\r\nEHLO a\r\nRCPT TO:<a@b>\r\n", &["250", "250 2.1.0", "250", "503 5.5.1"]);
    codes(
        "NOOP x\r\nHELP\r\nVRFY a\r\nEXPN a\r\nAUTH PLAIN\r\nWHAT\r\nEHLO\r\n",
        &["250 2.0.0", "214 2.0.0", "252 2.5.0", "502 5.5.1", "502 5.5.1", "500 5.5.1", "501"],
    );
}

#[test]
fn checks_pipelined_recipients_together_and_replies_in_order() {
    let transcript = script(
        "HELO a\r\nMAIL FROM:<>\r\nRCPT TO:<a@b>\r\nRCPT TO:<no@b>\r\nRCPT TO:<A@B>\r\nRCPT TO:<x@[1.2.3.4]>\r\n\
         RCPT TO:<\"a b\"@c>\r\nRCPT TO:<later@b>\r\nRCPT TO:<Postmaster>\r\nDATA\r\n\r\n.\r\n",
    );
    assert_eq!(
        transcript.codes()[2..9],
        ["250 2.1.5", "550 5.1.1", "250 2.1.5", "550 5.7.1", "553 5.1.3", "451 4.3.0", "250 2.1.5"]
    );
    assert_eq!(transcript.checks, [3, 2]);
    assert_eq!(transcript.mail_texts()[0].1, ["a@b", "postmaster@default.example"]);
}

#[test]
fn limits_the_number_of_accepted_recipients() {
    let mut text = String::from("HELO a\r\nMAIL FROM:<>\r\n");
    for name in ["no1", "a", "b", "no2", "c", "d", "e", "f", "no3"] {
        text += &format!("RCPT TO:<{name}@x>\r\n");
    }
    let transcript = script(&text);
    assert_eq!(
        transcript.codes()[2..],
        [
            "550 5.1.1",
            "250 2.1.5",
            "250 2.1.5",
            "550 5.1.1",
            "250 2.1.5",
            "250 2.1.5",
            "250 2.1.5",
            "452 4.5.3",
            "452 4.5.3"
        ]
    );
}

#[test]
fn requires_smtputf8_for_addresses_outside_ascii() {
    codes("HELO a\r\nMAIL FROM:<>\r\nRCPT TO:<\u{fc}@b>\r\n", &["250", "250 2.1.0", "553 5.6.7"]);
    let transcript = script("EHLO a\r\nMAIL FROM:<\u{fc}@b> SMTPUTF8\r\nRCPT TO:<\u{fc}@b>\r\nDATA\r\n.\r\n");
    assert_eq!(transcript.mails[0].protocol, Protocol::Utf8Smtp);
    assert_eq!(transcript.mail_texts()[0], ("\u{fc}@b".into(), vec!["\u{fc}@b".into()], Vec::new()));
}

#[test]
fn rejects_lines_that_are_too_long_or_do_not_end_in_crlf() {
    let long = "x".repeat(5_000);
    codes(&format!("NOOP {long}\r\nNOOP\r\n"), &["500 5.5.2", "250 2.0.0"]);
    codes(&format!("NOOP {long}\nNOOP\r\nNOOP\r\n"), &["500 5.5.2", "250 2.0.0"]);
    codes("NOOP\nNOOP\r\n", &["500 5.5.2", "250 2.0.0"]);
    codes("NO\rOP\r\nNOOP \0\r\n", &["500 5.5.2", "500 5.5.2"]);
    let just = format!("NOOP {}\r\n", "x".repeat(LINE_MAX - 7));
    codes(&just, &["250 2.0.0"]);
    codes(&format!("{}\r\n", &just[..just.len() - 1]), &["500 5.5.2"]);
}

#[test]
fn closes_the_session_if_data_follows_starttls() {
    let transcript = script("EHLO a\r\nSTARTTLS\r\n");
    assert!(transcript.start_tls);
    assert_eq!(transcript.codes()[1..], ["220 2.0.0"]);
    let transcript = script("EHLO a\r\nSTARTTLS\r\nRSET\r\n");
    assert!(transcript.closed && !transcript.start_tls);
    assert_eq!(transcript.codes()[1..], ["421 4.7.0"]);
    codes("STARTTLS now\r\n", &["501 5.5.4"]);
    let mut plain = session(SessionSettings { tls_offered: false, ..settings() });
    assert_eq!(run(&mut plain, [&b"STARTTLS\r\n"[..]]).codes(), ["502 5.5.1"]);
}

#[test]
fn takes_any_password_where_all_mail_is_caught() {
    let sink = |input: &str| {
        let mut session = session(SessionSettings { catches_all: true, ..settings() });
        run(&mut session, [input.as_bytes()])
    };
    let hello = sink(HELLO);
    assert!(String::from_utf8_lossy(&hello.out).contains("250-AUTH PLAIN LOGIN\r\n"));
    for (input, expected) in [
        ("AUTH PLAIN\r\n", vec!["503 5.5.1"]),
        ("EHLO a\r\nAUTH PLAIN AGEAYg==\r\nAUTH LOGIN\r\n", vec!["250", "235 2.7.0", "503 5.5.1"]),
        ("EHLO a\r\nAUTH PLAIN\r\nAGEAYg==\r\nNOOP\r\n", vec!["250", "334", "235 2.7.0", "250 2.0.0"]),
        ("EHLO a\r\nAUTH LOGIN\r\nYQ==\r\nYg==\r\n", vec!["250", "334", "334", "235 2.7.0"]),
        ("EHLO a\r\nAUTH LOGIN\r\n*\r\nNOOP\r\n", vec!["250", "334", "501 5.7.0", "250 2.0.0"]),
        ("EHLO a\r\nMAIL FROM:<a@b> AUTH=<>\r\nAUTH PLAIN\r\n", vec!["250", "250 2.1.0", "503 5.5.1"]),
    ] {
        assert_eq!(sink(input).codes(), expected, "{input}");
    }
    codes("AUTH PLAIN AGEAYg==\r\n", &["502 5.5.1"]);
    codes("MAIL FROM:<a@b> AUTH=<>\r\n", &["555 5.5.4"]);
}

#[test]
fn takes_bare_lf_where_all_mail_is_caught() {
    let mut settings = SessionSettings { catches_all: true, ..settings() };
    settings.data.takes_any_line = true;
    let mail = "HELO a\nMAIL FROM:<>\nRCPT TO:<a@b>\nDATA\nSubject: x\n\n..a\r\nb\n.\nQUIT\n";
    let transcript = run(&mut session(settings), [mail.as_bytes()]);
    assert_eq!(transcript.mails[0].data, b"Subject: x\r\n\r\n.a\r\nb\r\n");
    assert!(transcript.closed);
}

#[test]
fn closes_after_too_many_errors_which_a_stored_mail_resets() {
    let errors = |count: usize| "X\r\n".repeat(count);
    let transcript = script(&(errors(20) + HELLO));
    assert!(transcript.closed);
    assert_eq!(transcript.codes(), [vec!["500 5.5.1"; 8], vec!["421 4.7.0"]].concat());
    let mail = "HELO a\r\nMAIL FROM:<>\r\nRCPT TO:<a@b>\r\nDATA\r\n.\r\n";
    let transcript = script(&(errors(7) + mail + &errors(7)));
    assert!(!transcript.closed);
}

#[test]
fn reads_rejected_data_to_its_end_and_continues() {
    let begin = "HELO a\r\nMAIL FROM:<> SIZE=10\r\nRCPT TO:<a@b>\r\nDATA\r\n";
    for (data, refusal) in [
        ("a\nb\r\n.\n\r\n.\r\n", "554 5.6.0"),
        (&format!("\r\n{}\r\n.\r\n", "x".repeat(10_001)), "552 5.3.4"),
        (&format!("a: {}\r\n\r\n.\r\n", "x".repeat(1_001)), "552 5.3.4"),
        (&format!("{}\r\n.\r\n", "a: b\r\n".repeat(11)), "552 5.3.4"),
    ] {
        let transcript = script(&format!("{begin}{data}MAIL FROM:<>\r\n"));
        assert_eq!(transcript.codes()[3..], ["354", refusal, "250 2.1.0"], "{data}");
        assert!(transcript.mails.is_empty());
    }
    codes("HELO a\r\nMAIL FROM:<> SIZE=10001\r\n", &["250", "552 5.3.4"]);
}

#[test]
fn defers_mail_while_memory_is_exhausted() {
    let none = SessionSettings { memory: MemoryBudget::of(1_000), ..settings() };
    let begin = "HELO a\r\nMAIL FROM:<>\r\nRCPT TO:<a@b>\r\n";
    let text = format!("{begin}DATA\r\nBDAT 1 LAST\r\nxNOOP\r\n");
    assert_eq!(
        run(&mut session(none), [text.as_bytes()]).codes()[3..],
        ["452 4.3.1", "452 4.3.1", "250 2.0.0"]
    );
    let little = SessionSettings { memory: MemoryBudget::of(5_000), ..settings() };
    let text = format!("{begin}DATA\r\n\r\n{}\r\n.\r\nNOOP\r\n", "x".repeat(9_000));
    assert_eq!(run(&mut session(little), [text.as_bytes()]).codes()[3..], ["354", "452 4.3.1", "250 2.0.0"]);
}

#[test]
fn assembles_a_message_from_chunks() {
    let begin = "EHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<a@b>\r\n";
    let transcript = script(&format!("{begin}BDAT 3\r\n\r\n.BDAT 5 LAST\r\nx\r\n.\rBDAT 1\r\n\n"));
    assert_eq!(transcript.codes()[3..], ["250 2.0.0", "554 5.6.0", "503 5.5.1"]);
    let transcript = script(&format!("{begin}BDAT 3\r\n\r\n.BDAT 0\r\nBDAT 4 last\r\n\r\nxxNOOP\r\n"));
    assert_eq!(transcript.codes()[3..], ["250 2.0.0", "250 2.0.0", "250 2.0.0", "250 2.0.0"]);
    assert_eq!(transcript.mails[0].data, b"\r\n.\r\nxx");
    let transcript = script(&format!("{begin}BDAT 0 LAST\r\n"));
    assert_eq!(transcript.mail_texts().len(), 1);
    codes(
        &format!("{begin}BDAT 1\r\nxDATA\r\nRCPT TO:<c@d>\r\nRSET\r\nDATA\r\n"),
        &["250", "250 2.1.0", "250 2.1.5", "250 2.0.0", "503 5.5.1", "503 5.5.1", "250 2.0.0", "503 5.5.1"],
    );
}

#[test]
fn skips_rejected_chunks() {
    codes("BDAT 6\r\nQUIT\r\nNOOP\r\n", &["503 5.5.1", "250 2.0.0"]);
    codes(
        "HELO a\r\nMAIL FROM:<>\r\nRCPT TO:<no@b>\r\nBDAT 6 LAST\r\nQUIT\r\nNOOP\r\n",
        &["250", "250 2.1.0", "550 5.1.1", "554 5.5.1", "250 2.0.0"],
    );
    let begin = "HELO a\r\nMAIL FROM:<>\r\nRCPT TO:<a@b>\r\n";
    let big = "x".repeat(10_001);
    codes(
        &format!("{begin}BDAT 10001\r\n{big}BDAT 6 LAST\r\nQUIT\r\nNOOP\r\n"),
        &["250", "250 2.1.0", "250 2.1.5", "552 5.3.4", "503 5.5.1", "250 2.0.0"],
    );
    let half = &big[..6_000];
    codes(
        &format!("{begin}BDAT 6002\r\n\r\n{half}BDAT 6000\r\n{half}BDAT 6 LAST\r\nQUIT\r\nNOOP\r\n"),
        &["250", "250 2.1.0", "250 2.1.5", "250 2.0.0", "552 5.3.4", "503 5.5.1", "250 2.0.0"],
    );
    for command in ["BDAT", "BDAT x", "BDAT -1", "BDAT 5 FIRST", "BDAT +5 LAST"] {
        let transcript = script(&format!("{command}\r\nNOOP\r\n"));
        assert!(transcript.closed, "{command}");
        assert_eq!(transcript.codes(), ["501 5.5.4"], "{command}");
    }
}

#[test]
fn never_repeats_input_in_replies() {
    let transcript = script(
        "EHLO canary\r\nMAIL FROM:<canary@b> X=canary\r\nMAIL FROM:<canary@b>\r\nRCPT TO:<nocanary@c>\r\n\
         canary\r\nVRFY canary\r\nRCPT TO:<canary@[1.1.1.1]>\r\n",
    );
    assert!(!String::from_utf8(transcript.out).unwrap().contains("canary"));
}

#[test]
fn has_replies_sent_before_it_handles_more_commands() {
    let mut session = session(settings());
    let mut out = Vec::new();
    let input = HELLO.repeat(1_000);
    let step = session.feed(input.as_bytes(), &mut out);
    assert!(matches!(step.action, Action::Flush), "{:?}", step.action);
    assert!(step.consumed < input.len() && out.len() < 5_000, "{} octets of replies", out.len());
    assert!(script(&input).flushes > 10);
}

#[test]
fn numbers_mail_transactions() {
    let mut session = session(settings());
    let mut number = |text: &str| {
        run(&mut session, [text.as_bytes()]);
        session.open_transaction()
    };
    assert_eq!(number("HELO a\r\n"), None);
    assert_eq!(number("MAIL FROM:<>\r\nRCPT TO:<a@b>\r\nBDAT 1\r\nx"), Some(1));
    assert_eq!(number("NOOP\r\n"), Some(1));
    assert_eq!(number("RSET\r\nMAIL FROM:<>\r\n"), Some(2));
    assert_eq!(number("RSET\r\n"), None);
}

#[test]
fn defers_a_message_that_finds_no_memory() {
    let mut session = session(SessionSettings { memory: MemoryBudget::of(10_000), ..settings() });
    let begin = "EHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<a@b>\r\nBDAT 9000\r\n";
    let large = format!("{begin}\r\n{}xNOOP\r\n", "x\r\n".repeat(2_999));
    let transcript = run(&mut session, [large.as_bytes()]);
    assert_eq!(transcript.codes()[3..], ["452 4.3.1", "250 2.0.0"]);
    let replies: Vec<Reply> = session.take_refusals();
    assert_eq!(replies, [reply::NO_TENANT_MEMORY]);
}

/// Lines of a script, valid and invalid.
fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => Just(b"EHLO a\r\n".to_vec()),
        6 => Just(b"MAIL FROM:<s@x.example>\r\n".to_vec()),
        8 => "[ab]|no|later".prop_map(|name| format!("RCPT TO:<{name}@x.example>\r\n").into_bytes()),
        4 => Just(b"DATA\r\n".to_vec()),
        4 => "(a: b\r\n){0,2}(\r\n)?(\\.?\\.?[xy\0]{0,3}(\r\n|\n|\r)){0,4}".prop_map(String::into_bytes),
        4 => Just(b"\r\n.\r\n".to_vec()),
        3 => (0_usize..40, any::<bool>(), 0_usize..2).prop_map(|(octets, last, crlf)| {
            let mut text = format!("BDAT {octets}{}\r\n", if last { " LAST" } else { "" }).into_bytes();
            text.extend(b"a\r\n".iter().cycle().skip(crlf).take(octets));
            text
        }),
        1 => Just(b"RSET\r\n".to_vec()),
        1 => Just([&[b'x'; 3_000][..], b"\r\n"].concat()),
        1 => proptest::collection::vec(any::<u8>(), 0..30),
    ]
}

proptest! {
    #[test]
    fn never_panics_whatever_the_input(
        blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20),
    ) {
        run(&mut session(settings()), blocks.iter().map(Vec::as_slice));
    }

    #[test]
    fn replies_the_same_however_the_input_is_split(
        lines in proptest::collection::vec(line(), 1..25),
        steps in proptest::collection::vec(1_usize..50, 1..20),
    ) {
        let text = [HELLO.as_bytes().to_vec()].into_iter().chain(lines).flatten().collect::<Vec<u8>>();
        let relaxed = || session(SessionSettings { max_errors: 10_000, ..settings() });
        let whole = run(&mut relaxed(), [text.as_slice()]);
        let mut blocks = Vec::new();
        let (mut at, mut steps) = (0, steps.iter().cycle());
        while at < text.len() {
            let end = text.len().min(at + steps.next().unwrap());
            blocks.push(&text[at..end]);
            at = end;
        }
        let split = run(&mut relaxed(), blocks);
        prop_assert_eq!(String::from_utf8_lossy(&whole.out), String::from_utf8_lossy(&split.out));
        prop_assert_eq!(whole.mail_texts(), split.mail_texts());
        prop_assert_eq!(whole.closed, split.closed);
    }
}
