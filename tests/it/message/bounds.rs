//! The largest mails that are taken, what is shown of them, and those that are refused.

use tempmail_tests::{SmtpClient, corpus};

use super::shown::Reader;

/// What `EHLO` announces as SIZE.
const MAX: usize = 26_214_400;
/// Octets of a header section.
const MAX_HEADER: usize = 256 << 10;

/// Sends a mail that must be refused and asserts that nothing of it is kept.
async fn is_refused(reader: &Reader, mail: &[u8], status: &str) {
    let before = reader.app.count("SELECT seq FROM stream").await;
    let mut client = SmtpClient::connect_with_ehlo(reader.app.smtp()).await;
    let reply = client.transact("bounce@sender.test", &[&reader.mailbox.address], mail).await;
    assert_eq!(reply.status(), status, "{reply:?}");
    assert_eq!(reader.app.count("SELECT seq FROM stream").await, before, "nothing was stored");
    client.expect_positive("NOOP").await;
}

#[tokio::test]
async fn the_announced_size_is_taken_and_one_octet_more_is_not() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::of_size(MAX)).await;
    assert_eq!(shown.text("subject"), "As large as asked for");
    is_refused(&reader, &corpus::of_size(MAX + 1), "552 5.3.4").await;
}

#[tokio::test]
async fn the_header_section_is_bounded() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::header_section(MAX_HEADER - 2)).await;
    assert_eq!(shown.text("subject"), "A long header section");
    is_refused(&reader, &corpus::header_section(MAX_HEADER + 1), "552 5.3.4").await;
    is_refused(&reader, &corpus::long_subject(20_000_000), "552 5.3.4").await;
    let shown = reader.show(&corpus::header_fields(1_000)).await;
    assert_eq!(shown.text("subject"), "Many fields");
    is_refused(&reader, &corpus::header_fields(1_001), "552 5.3.4").await;
}

#[tokio::test]
async fn floods_in_the_header_are_cut() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::encoded_word_flood(250_000)).await;
    assert_eq!(shown.text("subject"), "é".repeat(1_000));
    let shown = reader.show(&corpus::long_subject(200_000)).await;
    assert_eq!(shown.text("subject").chars().count(), 1_000);
    let shown = reader.show(&corpus::address_flood(10_000)).await;
    assert_eq!(shown.text("subject"), "Many readers");
}

/// MIME beyond 50 levels or 1,000 parts is one opaque attachment.
#[tokio::test]
async fn mime_is_taken_apart_only_so_far() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::deep(40)).await;
    assert_eq!(shown.text("text_body"), "At the bottom.");
    assert!(shown.attachments().is_empty(), "{}", shown.full);
    for levels in [60, 10_000] {
        let shown = reader.show(&corpus::deep(levels)).await;
        assert_eq!(shown.text("subject"), "Very deep");
        assert_eq!(shown.attachments().len(), 1, "{levels} levels: {}", shown.full);
    }

    let shown = reader.show(&corpus::many_parts(900)).await;
    assert_eq!(shown.text("text_body"), "The first part.");
    assert_eq!(shown.attachments().len(), 900);
    for parts in [1_100, 100_000] {
        let shown = reader.show(&corpus::many_parts(parts)).await;
        assert_eq!(shown.text("subject"), "Very wide");
        assert_eq!(shown.attachments().len(), 1, "{parts} parts");
        let opaque = reader.mailbox_get(&shown.id, "/attachments/0").await;
        assert_eq!(opaque.status, 200);
        assert_eq!(shown.attachments()[0]["size"], opaque.body.len());
    }
}

#[tokio::test]
async fn deep_messages_and_deep_markup_are_shown() {
    let reader = Reader::start().await;
    let shown = reader.show(&corpus::deep_messages(1_000)).await;
    assert_eq!(shown.text("subject"), "A message");
    let shown = reader.show(&corpus::deep_html(100_000)).await;
    assert_eq!(shown.text("subject"), "Deep markup");
}

/// Whatever the fixture is, it is stored, listed, read in full and given back to the octet.
#[tokio::test]
async fn every_fixture_is_read_on_every_surface() {
    let reader = Reader::start().await;
    let names = corpus::fixture_names();
    assert!(names.len() >= 60, "{}", names.len());
    for name in names {
        reader.show(&corpus::fixture(&name)).await;
    }
}
