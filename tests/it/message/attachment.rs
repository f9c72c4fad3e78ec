//! Attachments: encoded and hostile names, messages, texts.

use tempmail_tests::corpus::fixture;

use super::reader::{ADA, Attachment, Expected, Reader};

/// A mail whose text says `See the file.` and that has one attachment.
fn one(subject: &'static str, attachment: Attachment) -> Expected {
    let text = "See the file.";
    Expected { subject, preview: text, text, attachments: vec![attachment], ..ADA }
}

fn file(filename: &'static str, content_type: &'static str, content: &'static [u8]) -> Attachment {
    Attachment { filename: Some(filename), content_type, content_id: None, inline: false, content }
}

fn hostile(filename: &'static str) -> Attachment {
    file(filename, "application/octet-stream", b"payload")
}

#[tokio::test]
async fn decodes_file_names() {
    const OCTETS: &str = "application/octet-stream";
    let table = [
        (
            "rfc2231-continuations",
            one("A name in pieces", file("€ exchange rates über.txt", OCTETS, b"rates")),
        ),
        ("rfc2231-charset", one("A name with its charset", file("Prüfung.txt", OCTETS, b"exam"))),
        ("rfc2047-in-filename", one("An old habit", file("Übersicht.csv", "text/csv", b"a,b"))),
    ];
    Reader::start().await.table(&table).await;
}

/// A file name has no path (RFC 2183 2.3), no control character and at most 255 characters.
#[tokio::test]
async fn sanitizes_hostile_file_names() {
    const LONG: &str = concat!(
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
    );
    const SUBJECT: &str = "A hostile name";
    let table = [
        ("name-path", one(SUBJECT, hostile("passwd"))),
        ("name-windows-path", one(SUBJECT, hostile("x.exe"))),
        ("name-quotes", one(SUBJECT, hostile("say \"hi\"; ok.txt"))),
        ("name-crlf", one(SUBJECT, hostile("aX-Evil: 1.txt"))),
        ("name-nul", one(SUBJECT, hostile("a\u{fffd}b.txt"))),
        ("name-bidi", one(SUBJECT, hostile("invoicefdp.exe"))),
        ("name-long", one(SUBJECT, hostile(LONG))),
    ];
    let reader = Reader::start().await;
    reader.table(&table).await;

    let shown = reader.show(&fixture("name-crlf")).await;
    let download = reader.mailbox_get(&shown.id, "/attachments/0").await;
    assert_eq!(download.header("x-evil"), "", "a name adds no field to the answer");
}

#[tokio::test]
async fn shows_text_files_and_single_part_files_as_attachments() {
    let table = [
        (
            "text-attachment",
            Expected {
                subject: "Text twice",
                preview: "The body.",
                text: "The body.",
                attachments: vec![file("notes.txt", "text/plain", b"Not the body.")],
                ..ADA
            },
        ),
        (
            "attachment-alone",
            Expected {
                subject: "No text at all",
                attachments: vec![file("alone.pdf", "application/pdf", b"%PDF-1.4 alone")],
                ..ADA
            },
        ),
        (
            "attachment-without-name",
            Expected {
                subject: "Nameless",
                preview: "See below.",
                text: "See below.",
                attachments: vec![Attachment { filename: None, ..hostile("") }],
                ..ADA
            },
        ),
    ];
    Reader::start().await.table(&table).await;
}

/// The parts of an embedded message are not parts of the outer one.
#[tokio::test]
async fn shows_an_embedded_message_as_one_attachment() {
    let reader = Reader::start().await;
    let mail = fixture("message-rfc822");
    let shown = reader.show(&mail).await;
    assert_eq!(shown.text("text_body"), "Forwarded below.");
    assert_eq!(shown.attachments().len(), 1, "{}", shown.full);
    assert_eq!(shown.attachments()[0]["content_type"], "message/rfc822");
    assert_eq!(shown.attachments()[0]["filename"], "original.eml");
    let mail = String::from_utf8(mail).expect("this fixture is text");
    let inner =
        &mail[mail.find("From: Charles").expect("an inner From")..mail.rfind("\r\n--b--").expect("an end")];
    assert_eq!(reader.mailbox_get(&shown.id, "/attachments/0").await.text(), inner);
    assert_eq!(shown.attachments()[0]["size"], inner.len());
}
