//! Header fields: encoded words, charsets, folding, addresses, and violations of the rules.

use tempmail_tests::corpus::fixture;

use super::reader::{ADA, Expected, Reader};

/// A mail whose body is `x`.
fn x() -> Expected {
    Expected { preview: "x", text: "x", ..ADA }
}

#[tokio::test]
async fn decodes_encoded_words() {
    let table = [
        (
            "rfc2047-b",
            Expected {
                subject: "Grüße aus Köln",
                from: "André <andre@sender.test>",
                from_email: "andre@sender.test",
                ..x()
            },
        ),
        (
            "rfc2047-q",
            Expected {
                subject: "Re: Rechnung über 5€ (again)",
                from: "Jörg Müller <joerg@sender.test>",
                from_email: "joerg@sender.test",
                ..x()
            },
        ),
        // White space between encoded words is not shown, between a word and text it is.
        (
            "rfc2047-adjacent-words",
            Expected {
                subject: "first and last and plain end",
                from: "Zoë Qué <zoe@sender.test>",
                from_email: "zoe@sender.test",
                ..x()
            },
        ),
        // What is no encoded word is shown as it is.
        (
            "rfc2047-broken-words",
            Expected {
                subject: "=?utf-8?X?abc?= then =?utf-8?Q?never ends",
                from: "a@sender.test",
                from_email: "a@sender.test",
                ..x()
            },
        ),
    ];
    Reader::start().await.table(&table).await;
}

/// RFC 2047 6.2 lets a client show such a word as it is, or its bytes.
#[tokio::test]
async fn keeps_encoded_words_of_an_unknown_charset_readable() {
    let shown = Reader::start().await.show(&fixture("rfc2047-unknown-charset")).await;
    let subject = shown.text("subject").replace('_', " ");
    assert!(subject.contains("take me to your reader"), "{subject}");
}

/// A character whose bytes are split over two words violates RFC 2047 5, but occurs. It may
/// be joined or shown as damaged; the rest is intact.
#[tokio::test]
async fn damages_only_a_character_split_over_two_encoded_words() {
    let shown = Reader::start().await.show(&fixture("rfc2047-split-character")).await;
    let subject = shown.text("subject");
    assert!(subject.starts_with("Gr") && subject.ends_with("ße"), "{subject}");
}

#[tokio::test]
async fn decodes_folding_comments_and_raw_utf8() {
    let table = [
        ("folded-headers", Expected { subject: "one two three", ..x() }),
        (
            "eight-bit-headers",
            Expected {
                subject: "Grüße, 世界",
                from: "Jörg <joerg@sender.test>",
                from_email: "joerg@sender.test",
                ..x()
            },
        ),
        (
            "internationalized",
            Expected {
                subject: "国際化",
                from: "用户 <用户@例え.テスト>",
                from_email: "用户@例え.テスト",
                preview: "本文",
                text: "本文",
                ..ADA
            },
        ),
        (
            "no-from",
            Expected {
                subject: "Nobody wrote this",
                preview: "Anonymous.",
                text: "Anonymous.",
                ..Expected::default()
            },
        ),
        (
            "control-characters",
            Expected {
                subject: "bell and escape[31m red",
                from: "ada@sender.test",
                from_email: "ada@sender.test",
                ..x()
            },
        ),
        (
            "nul-in-header",
            Expected {
                subject: "before\u{fffd}after",
                from: "ada@sender.test",
                from_email: "ada@sender.test",
                ..x()
            },
        ),
    ];
    Reader::start().await.table(&table).await;
}

#[tokio::test]
async fn excludes_comments_from_the_from_address() {
    let shown = Reader::start().await.show(&fixture("from-with-comments")).await;
    assert_eq!(shown.email["from_email"], "pete@silly.test");
    assert!(shown.text("from").starts_with("Pete"), "{}", shown.full);
}

#[tokio::test]
async fn shows_every_author() {
    let reader = Reader::start().await;
    let shown = reader.show(&fixture("several-froms")).await;
    assert_eq!(shown.email["from_email"], "ada@sender.test");
    for author in ["Ada", "ada@sender.test", "Babbage, Charles", "charles@sender.test"] {
        assert!(shown.text("from").contains(author), "{author}: {}", shown.text("from"));
    }
    let shown = reader.show(&fixture("group-addresses")).await;
    assert_eq!(shown.email["from_email"], "ada@sender.test");
    for author in ["Ada", "ada@sender.test", "charles@sender.test"] {
        assert!(shown.text("from").contains(author), "{author}: {}", shown.text("from"));
    }
}

/// `to[]` is the To header, not the envelope; an empty group has no address.
#[tokio::test]
async fn takes_to_from_the_header_instead_of_the_envelope() {
    let reader = Reader::start().await;
    let shown = reader.show(&fixture("group-addresses")).await;
    assert!(!shown.email["to"].to_string().contains('@'), "{}", shown.email["to"]);
    let shown = reader.show(&fixture("plain")).await;
    assert!(shown.email["to"].to_string().contains("someone@inbox.localhost"), "{}", shown.email["to"]);
    let names: Vec<_> = shown.email["headers"]
        .as_array()
        .expect("headers is a list")
        .iter()
        .map(|field| field["name"].as_str().expect("a field has a name").to_ascii_lowercase())
        .collect();
    for name in ["from", "to", "date", "message-id", "subject", "content-type"] {
        assert!(names.iter().any(|shown| shown == name), "{name}: {names:?}");
    }
}

#[tokio::test]
async fn damages_only_undecodable_characters_of_8_bit_headers() {
    let shown = Reader::start().await.show(&fixture("eight-bit-headers-latin1")).await;
    let subject = shown.text("subject");
    assert!(subject.starts_with("Caf") && subject.ends_with(" au lait"), "{subject}");
    assert_eq!(shown.email["from_email"], "joerg@sender.test");
}

/// Two Subjects violate RFC 5322 3.6: one of them is shown, the same on every surface.
#[tokio::test]
async fn shows_one_of_two_subjects_consistently() {
    let shown = Reader::start().await.show(&fixture("duplicate-subject")).await;
    assert!(["The first", "The second"].contains(&shown.text("subject").as_str()), "{}", shown.full);
}
