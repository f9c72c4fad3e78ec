//! The fields of a mail that lists show: From, Subject and a preview. They are extracted once, when
//! the mail is accepted; all else is parsed when it is read.

use std::fmt::Write as _;

use tempmail_mime::{
    Excerpt, Leaf, Leaves, Role, decode_header, header_fields, html_to_text, parse_addresses,
};
use tempmail_store::MailSummary;

/// Maximum characters of a stored Subject.
const SUBJECT_MAX: usize = 1_000;
/// Maximum characters of a stored From header.
const FROM_MAX: usize = 512;
/// Characters of a preview.
const PREVIEW_MAX: usize = 100;
/// Maximum bytes of a mail that are parsed.
const PARSED_MAX: usize = 1 << 20;
/// Bytes of a body that are read for the preview: usually the first prefix is enough.
const BODY_PREFIXES: [usize; 2] = [2 << 10, 64 << 10];

/// Summarizes the first MiB of a mail. Text that can't be decoded is omitted.
pub(super) fn summarize(data: &[u8]) -> MailSummary {
    let data = &data[..data.len().min(PARSED_MAX)];
    let leaves = Leaves::new(data);
    let mut summary = MailSummary::default();
    let mut has_subject = false;
    for field in header_fields(&data[leaves.header()]) {
        if field.name.eq_ignore_ascii_case("from") {
            add_originators(&mut summary, field.value);
        } else if field.name.eq_ignore_ascii_case("subject") && !has_subject {
            has_subject = true;
            summary.subject = truncated(decode_header(field.value), SUBJECT_MAX);
        }
    }
    summary.from_text = truncated(summary.from_text, FROM_MAX);
    summary.preview = preview(data, leaves);
    summary
}

/// Adds `Name <address>, …`, as a mail client shows it.
fn add_originators(summary: &mut MailSummary, value: &[u8]) {
    for address in parse_addresses(value) {
        if summary.from_text.len() > FROM_MAX * 4 {
            return;
        }
        let gap = if summary.from_text.is_empty() { "" } else { ", " };
        write!(summary.from_text, "{gap}{address}").expect("writing to a string never fails");
        if summary.from_email.is_empty() {
            summary.from_email = truncated(address.email, FROM_MAX);
        }
    }
}

/// The preview of the text parts, else of the first HTML part. Later parts are not parsed.
fn preview(data: &[u8], leaves: Leaves<'_>) -> String {
    let mut text = Excerpt::new(PREVIEW_MAX);
    let mut html = None;
    for leaf in leaves.map_while(Result::ok) {
        match leaf.role {
            Role::Text => add_body(&mut text, &leaf, data, |text, excerpt| excerpt.push(text)),
            Role::Html if html.is_none() => html = Some(leaf),
            Role::Html | Role::Attachment => {}
        }
        if text.is_full() {
            return text.into();
        }
        // Separates the text of the next part from the last word.
        text.push(" ");
    }
    if text.is_empty()
        && let Some(leaf) = html
    {
        add_body(&mut text, &leaf, data, html_to_text);
    }
    text.into()
}

/// Adds the text of a body, of which no more is decoded than needed.
fn add_body(excerpt: &mut Excerpt, leaf: &Leaf, data: &[u8], read: impl Fn(&str, &mut Excerpt)) {
    let before = excerpt.clone();
    for max in BODY_PREFIXES {
        *excerpt = before.clone();
        read(&leaf.text_prefix(data, max), excerpt);
        if excerpt.is_full() || leaf.body.len() <= max {
            return;
        }
    }
}

/// The first `max` characters.
fn truncated(mut text: String, max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max) {
        text.truncate(end);
        // The text is queued, and must not keep the memory of a huge header.
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_headers_and_folds_white_space_of_the_body() {
        let summary = summarize(
            b"From: =?utf-8?q?J=C3=B6rg?= <joerg@a.example>, b@b.example\r\n\
              Subject: =?iso-8859-1?q?caf=E9?=\r\n\r\n  one\r\n two\tthree  \r\n",
        );
        assert_eq!(summary.from_text, "Jörg <joerg@a.example>, b@b.example");
        assert_eq!(summary.from_email, "joerg@a.example");
        assert_eq!(summary.subject, "café");
        assert_eq!(summary.preview, "one two three");
    }

    #[test]
    fn previews_the_text_of_html() {
        let summary = summarize(b"Content-Type: text/html\r\n\r\n<style>a{}</style><p>Code <b>123</b></p>");
        assert_eq!(summary.preview, "Code 123");
    }

    #[test]
    fn summarizes_an_empty_mail() {
        assert_eq!(summarize(b""), MailSummary::default());
        // Like the text body.
        assert_eq!(summarize(b"\0"), MailSummary { preview: "\u{fffd}".into(), ..MailSummary::default() });
    }

    #[test]
    fn truncates_and_cleans_fields() {
        let data = format!("Subject: a\0b\x07{}\r\n\r\n{}", "x".repeat(2_000), "y".repeat(300));
        let summary = summarize(data.as_bytes());
        assert_eq!(summary.subject.chars().count(), SUBJECT_MAX);
        assert!(summary.subject.starts_with("a\u{fffd}bx"));
        assert_eq!(summary.preview.len(), PREVIEW_MAX);
    }

    #[test]
    fn uses_the_first_of_repeated_fields() {
        let summary = summarize(
            b"Subject: one\r\nSubject: two\r\nFrom: team: me, (x) \"A B\" <a@b.example>;\r\n\
              From: c@b.example (C)\r\n\r\n",
        );
        assert_eq!(summary.subject, "one");
        assert_eq!(summary.from_text, "me, A B <a@b.example>, C <c@b.example>");
        assert_eq!(summary.from_email, "a@b.example");
    }

    #[test]
    fn prefers_text_parts_and_joins_them() {
        let preview = |parts: &[&str]| {
            let parts: String = parts.iter().map(|part| format!("--b\r\n{part}\r\n")).collect();
            let head = "Content-Type: multipart/mixed; boundary=b\r\n\r\n";
            summarize(format!("{head}{parts}--b--\r\n").as_bytes()).preview
        };
        let (html, text) = ("Content-Type: text/html\r\n\r\n<p>html", "\r\ntext");
        assert_eq!(preview(&[html, text, "Content-Type: image/png\r\n\r\nx", text]), "text text");
        assert_eq!(preview(&["\r\n ", html]), "html");
        assert_eq!(preview(&["Content-Disposition: attachment\r\n\r\nx"]), "");
    }

    #[test]
    fn decodes_longer_prefixes_of_the_body_until_the_preview_is_full() {
        let preview = |body: &str| summarize(format!("\r\n{body}").as_bytes()).preview;
        // Every prefix ends within a character.
        assert_eq!(preview(&format!("x{}", "é".repeat(40_000))), format!("x{}", "é".repeat(99)));
        assert_eq!(preview(&format!("x{}é", " \r\n".repeat(10_000))), "x é");
        assert_eq!(preview(&format!("{}x", " \r\n".repeat(30_000))), "");
    }

    #[test]
    fn bounds_the_work_on_hostile_mails() {
        let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
        assert_eq!(summarize(nested.as_bytes()), MailSummary::default());

        let mut unclosed = String::from("Subject: x\r\nContent-Type: multipart/mixed; boundary=b0\r\n\r\n");
        for i in 0..1_900 {
            let part = format!("--b{i}\r\nContent-Type: multipart/mixed; boundary=b{}\r\n\r\n", i + 1);
            unclosed.push_str(&part);
            unclosed.push_str(&"--filler\r\n".repeat(1_320));
        }
        assert!(unclosed.len() > 25_000_000);
        let summary = summarize(unclosed.as_bytes());
        assert_eq!((summary.subject.as_str(), summary.preview.as_str()), ("x", ""));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(
            head in "(From|Subject|Content-Type|[a-z]{0,3}): .{0,200}\r\n",
            body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..1_000),
        ) {
            let summary = summarize(&[head.as_bytes(), &body].concat());
            assert!(summary.from_text.chars().count() <= FROM_MAX);
            assert!(summary.preview.chars().count() <= PREVIEW_MAX);
            assert!(![summary.from_text, summary.from_email, summary.subject, summary.preview].concat().contains('\0'));
        }
    }
}
