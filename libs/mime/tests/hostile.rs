//! The parser never panics, hangs or overflows the stack.

use proptest::prelude::*;
use tempmail_mime::{
    Excerpt, Leaves, Structure, TransferDecoder, TransferEncoding, decode_header, header_fields,
    html_to_text, parse_addresses, text,
};

/// Does all that readers of a message do.
fn read(raw: &[u8]) {
    let structure = Structure::parse(raw);
    for field in header_fields(&raw[structure.header.clone()]) {
        decode_header(field.value);
        parse_addresses(field.value).for_each(|address| assert!(!address.to_string().is_empty()));
    }
    assert!((1..=1_000).contains(&structure.leaves.len()));
    for leaf in &structure.leaves {
        let whole = leaf.text(raw);
        assert!(!whole.contains('\0'));
        for max in [0, 1, 100] {
            leaf.text_prefix(raw, max);
        }
        let mut excerpt = Excerpt::new(50);
        html_to_text(&whole, &mut excerpt);
        let excerpt = String::from(excerpt);
        assert!(excerpt.chars().count() <= 50 && !excerpt.contains(char::is_control));
    }
    structure.attachments(raw).iter().for_each(|attachment| {
        attachment.content_type_with_charset();
        assert_eq!(text::single_line(&attachment.download_name()), attachment.download_name());
    });
}

/// Pieces of messages, so that generated messages have structure.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "\r\n",
        "\n",
        "\r\n\r\n",
        " ",
        "\t",
        ":",
        ";",
        "=",
        "\"",
        "(",
        ")",
        "\\",
        "<",
        ">",
        "@",
        ",",
        "'",
        "%",
        "&",
        "--b",
        "--b--",
        "--c",
        "--c--",
        "From: ",
        "Subject: ",
        "To: ",
        "Content-Type: ",
        "text/plain",
        "text/html",
        "multipart/mixed",
        "multipart/related",
        "multipart/digest",
        "message/rfc822",
        "; boundary=b",
        "; boundary=c",
        "; charset=",
        "utf-8",
        "utf-7",
        "csutf7",
        "utf-16",
        "iso-2022-jp",
        "windows-1252",
        "big5",
        "gb18030",
        "; name*0*=utf-8''%",
        "; name*1=",
        "; filename=",
        "=?utf-8?q?=C3",
        "=?iso-2022-jp?b?GyRC",
        "?=",
        "Content-Transfer-Encoding: base64",
        "Content-Transfer-Encoding: quoted-printable",
        "Content-Disposition: ",
        "Content-ID: <",
        "+AGE-",
        "<!--",
        "-->",
        "<script>",
        "</script",
        "&#x41;",
        "&#xffffffff;",
        "&eacute;",
        "é",
    ]);
    prop_oneof![
        8 => known.prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ]
}

proptest! {
    #[test]
    fn accepts_any_octets(raw in prop::collection::vec(any::<u8>(), 0..2_000)) {
        read(&raw);
    }

    #[test]
    fn accepts_any_message(pieces in prop::collection::vec(piece(), 0..120)) {
        read(&pieces.concat());
    }

    #[test]
    fn decodes_pieces_like_the_whole(pieces in prop::collection::vec(piece(), 0..40)) {
        for encoding in [TransferEncoding::Identity, TransferEncoding::Base64, TransferEncoding::QuotedPrintable] {
            let mut decoder = TransferDecoder::new(encoding);
            let mut decoded = Vec::new();
            pieces.iter().for_each(|piece| decoder.push(piece, &mut decoded));
            decoder.finish(&mut decoded);
            prop_assert_eq!(decoded, encoding.decode(&pieces.concat()).into_owned());
        }
    }
}

#[test]
fn terminates_on_floods() {
    let head = "Content-Type: multipart/mixed; boundary=b\r\n\r\n";
    let unclosed = "--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n";
    for raw in [
        "Content-Type: message/rfc822\r\n\r\n".repeat(100_000),
        format!("{head}{}{}", unclosed.repeat(1_900), "--x\r\n".repeat(5_000_000)),
        format!("{head}{}", "--b\r\nContent-Type: text/plain; a*0=\"".repeat(100_000)),
    ] {
        assert!(Leaves::new(raw.as_bytes()).count() <= 1_001);
    }
    for flood in ["=?utf-8?q?x", "=?", "=?utf-8?q?a?= ", "=?utf-8?b?", "<", "(", "\"", "a<b>,", ":", ","] {
        read(format!("To: {}\r\n\r\n", flood.repeat((1 << 20) / flood.len())).as_bytes());
    }
    for flood in ["<", "&", "<a", "<!", "<!--", "<script>", "</script", "<a b='", "&a", " ", "<p>"] {
        let mut excerpt = Excerpt::new(100);
        html_to_text(&flood.repeat((1 << 20) / flood.len()), &mut excerpt);
    }
}
