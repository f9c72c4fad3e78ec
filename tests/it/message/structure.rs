//! Multiparts: alternatives, related parts, nesting, and missing boundaries.

use tempmail_tests::corpus::fixture;

use super::reader::{ADA, Attachment, Expected, Reader};

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
