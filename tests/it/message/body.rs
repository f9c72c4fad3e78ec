//! Text bodies: charsets, transfer encodings, damage. Multiparts: alternatives, related parts, nesting, missing boundaries.

use tempmail_tests::corpus::fixture;

use super::reader::{ADA, Attachment, Expected, Reader};

/// A mail with one text.
fn text(subject: &'static str, text: &'static str) -> Expected {
    Expected { subject, preview: text, text, ..ADA }
}

#[tokio::test]
async fn decodes_charsets() {
    let table = [
        (
            "charset-iso-2022-jp",
            Expected {
                from: "山田太郎 <taro@sender.test>",
                from_email: "taro@sender.test",
                ..text("会議のお知らせ", "明日は会議です。")
            },
        ),
        ("charset-shift-jis", text("表の件", "表示と能力。")),
        ("charset-gb18030", text("你好", "你好，世界。𠀀")),
        ("charset-koi8-r", text("Привет", "Привет, мир!")),
        ("charset-windows-1252", text("“quoted” €", "“It’s 5 €” he said…")),
        ("charset-utf-7", text("Seven", "Hi Mom -☺-! A≢Α.")),
        ("charset-unknown", text("From afar", "Still readable.")),
        ("charset-missing", text("No label", "Grüße ohne Etikett.")),
        ("charset-wrong", text("Wrong label", "Café au lait.")),
    ];
    Reader::start().await.table(&table).await;
}

#[tokio::test]
async fn decodes_the_intact_part_of_damaged_encodings() {
    let table = [
        (
            "quoted-printable-damaged",
            Expected {
                preview: "lower é, soft break, =ZZ stays, 50=% too, trailing blanks go end",
                ..text("Damaged", "lower é, soft break, =ZZ stays, 50=% too, trailing blanks go\nend")
            },
        ),
        // RFC 2045 6.8: what is not in the alphabet is ignored.
        ("base64-damaged", text("Damaged", "These octets survive any noise")),
        ("base64-without-padding", text("Cut short", "Missing the padding")),
        // RFC 2045 5.2: a field that can't be understood counts as text/plain.
        ("content-type-garbage", text("Garbage type", "as it is")),
    ];
    Reader::start().await.table(&table).await;
}

#[tokio::test]
async fn shows_plain_bodies_unchanged() {
    let table = [
        (
            "plain",
            Expected {
                preview: "The first line. The second line.",
                ..text("Analytical engine", "The first line.\nThe   second\tline.")
            },
        ),
        ("leading-dots", Expected { preview: ". .. .one ...three", ..text("Dots", ".\n..\n.one\n...three") }),
        ("no-body", text("Nothing more", "")),
        ("only-headers", text("Not even an empty line", "")),
        ("zero-octets", Expected::default()),
        (
            "no-separator",
            Expected {
                preview: "This line is no header field and neither is this.",
                from: "ada@sender.test",
                ..text("No empty line", "This line is no header field\nand neither is this.")
            },
        ),
    ];
    Reader::start().await.table(&table).await;
}

#[tokio::test]
async fn leaves_text_body_empty_for_html_only_mail() {
    let shown = Reader::start().await.show(&fixture("html-only")).await;
    assert_eq!(shown.text("text_body"), "", "no plain text was sent");
    assert_eq!(shown.summary["preview_text"], "Hello & welcome!");
    let html = shown.text("html_body");
    assert!(html.starts_with("<html><head><title>Not shown</title>"), "{html}");
    assert!(html.contains("<script>alert(1)</script>"), "html_body is as received: {html}");
}

#[tokio::test]
async fn keeps_long_lines_whole() {
    let shown = Reader::start().await.show(&fixture("long-lines")).await;
    assert_eq!(shown.text("text_body"), format!("{}\n{}", "a".repeat(998), "b".repeat(5_000)));
    assert_eq!(shown.summary["preview_text"], "a".repeat(100));
}

/// U+0000 is allowed in JSON, but not in Postgres.
#[tokio::test]
async fn replaces_only_the_nul_in_a_body() {
    let shown = Reader::start().await.show(&fixture("nul-in-body")).await;
    assert_eq!(shown.text("text_body").replace('\0', "\u{fffd}"), "before\u{fffd}after");
    assert_eq!(shown.summary["preview_text"], "before\u{fffd}after");
}

/// RFC 2045 6.4 makes it an attachment; many clients show it. Either way it is readable undecoded.
#[tokio::test]
async fn does_not_decode_an_unknown_transfer_encoding() {
    let reader = Reader::start().await;
    let shown = reader.show(&fixture("unknown-transfer-encoding")).await;
    let content = if shown.attachments().is_empty() {
        shown.text("text_body")
    } else {
        reader.mailbox_get(&shown.id, "/attachments/0").await.text()
    };
    assert_eq!(content.trim_end(), "as it is");
}

const DOT: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\
    \x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc`\x00\x00\x02\x00\x00\x01\xe2!\xbc3\x00\x00\x00\x00IEND\xaeB`\x82";

#[tokio::test]
async fn splits_multiparts_into_bodies_and_attachments() {
    let table = [
        (
            "alternative",
            Expected {
                subject: "Two forms",
                preview: "In words: naïve.",
                text: "In words: naïve.",
                html: "<p>In <b>markup</b>: naïve.</p>",
                ..ADA
            },
        ),
        (
            "related-inline-image",
            Expected {
                subject: "A picture in the text",
                preview: "See",
                html: "<p>See <img src=\"cid:dot@sender.test\"></p>",
                attachments: vec![Attachment {
                    filename: Some("dot.png"),
                    content_type: "image/png",
                    content_id: Some("dot@sender.test"),
                    inline: true,
                    content: DOT,
                }],
                ..ADA
            },
        ),
        // The boundaries of the inner parts begin with those of the outer ones.
        (
            "nested-multipart",
            Expected {
                subject: "Boxes in boxes",
                preview: "Plain inside.",
                text: "Plain inside.",
                html: "<p>Markup inside. <img src=\"cid:logo\"></p>",
                attachments: vec![
                    Attachment {
                        filename: Some("logo.png"),
                        content_type: "image/png",
                        content_id: Some("logo"),
                        inline: true,
                        content: DOT,
                    },
                    Attachment {
                        filename: Some("report.pdf"),
                        content_type: "application/pdf",
                        content_id: None,
                        inline: false,
                        content: b"%PDF-1.4 not really",
                    },
                ],
                ..ADA
            },
        ),
    ];
    Reader::start().await.table(&table).await;
}

#[tokio::test]
async fn keeps_content_of_truncated_and_boundaryless_multiparts() {
    let table = [
        (
            "unclosed-multipart",
            Expected {
                subject: "Cut off",
                preview: "The text is whole.",
                text: "The text is whole.",
                attachments: vec![Attachment {
                    filename: Some("cut.bin"),
                    content_type: "application/octet-stream",
                    content_id: None,
                    inline: false,
                    content: b"cut o\r\n",
                }],
                ..ADA
            },
        ),
        (
            "multipart-without-boundary",
            Expected {
                subject: "No boundary",
                preview: "Somebody forgot it.",
                text: "Somebody forgot it.",
                ..ADA
            },
        ),
    ];
    Reader::start().await.table(&table).await;
}

/// It has no parts; how much of it is shown is up to the client.
#[tokio::test]
async fn accepts_a_multipart_whose_boundary_never_appears() {
    let shown = Reader::start().await.show(&fixture("boundary-never-seen")).await;
    assert_eq!(shown.text("subject"), "Boundary elsewhere");
}
