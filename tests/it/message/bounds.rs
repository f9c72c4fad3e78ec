//! The largest mails that are accepted, what is shown of them, and larger ones, which are rejected.

use tempmail_tests::{SmtpClient, corpus};

use super::reader::Reader;

/// SIZE as `EHLO` announces it.
const MAX: usize = 26_214_400;
/// Most bytes of a header section.
const MAX_HEADER: usize = 256 << 10;

/// Asserts that a mail is rejected and not stored.
async fn assert_rejected(reader: &Reader, mail: &[u8], status: &str) {
    let before = reader.app.count("SELECT seq FROM stream").await;
    let mut client = SmtpClient::connect_with_ehlo(reader.app.smtp()).await;
    let reply = client.transact("bounce@sender.test", &[&reader.mailbox.address], mail).await;
    assert_eq!(reply.status(), status, "{reply:?}");
    assert_eq!(reader.app.count("SELECT seq FROM stream").await, before, "nothing was stored");
    client.expect_positive("NOOP").await;
}

#[tokio::test]
async fn accepts_the_announced_size_and_rejects_one_byte_more() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::of_size(MAX)).await;
    assert_eq!(shown.text("subject"), "As large as asked for");
    assert_rejected(&reader, &corpus::of_size(MAX + 1), "552 5.3.4").await;
}

#[tokio::test]
async fn limits_size_and_fields_of_the_header_section() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::header_section(MAX_HEADER - 2)).await;
    assert_eq!(shown.text("subject"), "A long header section");
    assert_rejected(&reader, &corpus::header_section(MAX_HEADER + 1), "552 5.3.4").await;
    assert_rejected(&reader, &corpus::long_subject(300_000), "552 5.3.4").await;
    let shown = reader.show(&corpus::header_fields(1_000)).await;
    assert_eq!(shown.text("subject"), "Many fields");
    assert_rejected(&reader, &corpus::header_fields(1_001), "552 5.3.4").await;
}

#[tokio::test]
async fn truncates_oversized_header_values() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::encoded_word_flood(250_000)).await;
    assert_eq!(shown.text("subject"), "é".repeat(1_000));
    let shown = reader.show(&corpus::long_subject(200_000)).await;
    assert_eq!(shown.text("subject").chars().count(), 1_000);
    let shown = reader.show(&corpus::address_flood(10_000)).await;
    assert_eq!(shown.text("subject"), "Many readers");
}

/// MIME of more than 50 levels or 1,000 parts is one opaque attachment.
#[tokio::test]
async fn limits_mime_depth_and_parts() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::deep(40)).await;
    assert_eq!(shown.text("text_body"), "At the bottom.");
    assert!(shown.attachments().is_empty(), "{}", shown.full);
    for levels in [60, 500] {
        let shown = reader.show(&corpus::deep(levels)).await;
        assert_eq!(shown.text("subject"), "Very deep");
        assert_eq!(shown.attachments().len(), 1, "{levels} levels: {}", shown.full);
    }

    let shown = reader.show(&corpus::many_parts(900)).await;
    assert_eq!(shown.text("text_body"), "The first part.");
    assert_eq!(shown.attachments().len(), 900);
    for parts in [1_100, 2_000] {
        let shown = reader.show(&corpus::many_parts(parts)).await;
        assert_eq!(shown.text("subject"), "Very wide");
        assert_eq!(shown.attachments().len(), 1, "{parts} parts");
        let opaque = reader.mailbox_get(&shown.id, "/attachments/0").await;
        assert_eq!(opaque.status, 200);
        assert_eq!(shown.attachments()[0]["size"], opaque.body.len());
    }
}

#[tokio::test]
async fn shows_deeply_nested_messages_and_markup() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::deep_messages(200)).await;
    assert_eq!(shown.text("subject"), "A message");
    let shown = reader.show(&corpus::deep_html(5_000)).await;
    assert_eq!(shown.text("subject"), "Deep markup");
}

/// Every fixture is stored, listed, read in full and returned byte by byte.
#[tokio::test]
async fn serves_every_fixture_on_every_surface() {
    let reader = Reader::start().await;
    let names = corpus::fixture_names();
    assert!(names.len() >= 60, "{}", names.len());
    for name in names {
        reader.show(&corpus::fixture(&name)).await;
    }
}

/// Mails far beyond every bound.
mod chaos {
    use super::*;

    #[tokio::test]
    #[ignore = "chaos: mails with 100,000 parts or elements, and header fields of 20 MB"]
    async fn survives_hostile_depth_width_and_length() {
        let reader = Reader::start().await;
        assert_rejected(&reader, &corpus::long_subject(20_000_000), "552 5.3.4").await;
        for (mail, subject) in [
            (corpus::deep(10_000), "Very deep"),
            (corpus::many_parts(100_000), "Very wide"),
            (corpus::deep_messages(1_000), "A message"),
            (corpus::deep_html(100_000), "Deep markup"),
        ] {
            assert_eq!(reader.show(&mail).await.text("subject"), subject);
        }
    }
}
