//! What lists show of a mail: From, Subject and the first characters of the body. Taken once,
//! when the mail is accepted; everything else is parsed when it is read.

use std::fmt::Write as _;

use tempmail_mime::{
    Excerpt, Leaf, Leaves, Role, decode_header, header_fields, html_to_text, parse_addresses,
};

/// Most characters of a stored Subject.
const SUBJECT_MAX: usize = 1_000;
/// Most characters of a stored From header.
const FROM_MAX: usize = 512;
/// Characters of a preview.
const PREVIEW_MAX: usize = 100;
/// Octets of a mail that are looked at.
const LOOKED_AT_MAX: usize = 1 << 20;
/// Octets of a body that a preview is looked for in: most have it at their beginning.
const BODY_PREFIXES: [usize; 2] = [2 << 10, 64 << 10];

/// The summary fields of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The From header as text, RFC 2047 decoded, at most 512 characters.
    pub from_text: String,
    /// The first address in it, or "".
    pub from_email: String,
    /// The Subject, decoded, at most 1,000 characters.
    pub subject: String,
    /// The first 100 characters of the text (else of the HTML's text), white space folded.
    pub preview: String,
}

impl Summary {
    /// The summary of a mail's data, of which the first MiB is looked at. Text that can't be
    /// decoded is left out, never an error.
    pub fn of(data: &[u8]) -> Self {
        let data = &data[..data.len().min(LOOKED_AT_MAX)];
        let leaves = Leaves::new(data);
        let mut summary = Self::default();
        let mut has_subject = false;
        for field in header_fields(&data[leaves.header()]) {
            if field.name.eq_ignore_ascii_case("from") {
                summary.add_originators(field.value);
            } else if field.name.eq_ignore_ascii_case("subject") && !has_subject {
                has_subject = true;
                summary.subject = cut(decode_header(field.value), SUBJECT_MAX);
            }
        }
        summary.from_text = cut(summary.from_text, FROM_MAX);
        summary.preview = preview(data, leaves);
        summary
    }

    /// `Name <address>, …`, as a mail client shows it.
    fn add_originators(&mut self, value: &[u8]) {
        for address in parse_addresses(value) {
            if self.from_text.len() > FROM_MAX * 4 {
                return;
            }
            let gap = if self.from_text.is_empty() { "" } else { ", " };
            write!(self.from_text, "{gap}{address}").expect("a string takes all");
            if self.from_email.is_empty() {
                self.from_email = cut(address.email, FROM_MAX);
            }
        }
    }
}

/// From the text, else from the first HTML, of a mail that is taken apart only as far as that
/// needs it.
fn preview(data: &[u8], leaves: Leaves<'_>) -> String {
    let mut text = Excerpt::new(PREVIEW_MAX);
    let mut html = None;
    for leaf in leaves.map_while(Result::ok) {
        match leaf.role {
            Role::Text => add(&mut text, &leaf, data, |text, excerpt| excerpt.push(text)),
            Role::Html if html.is_none() => html = Some(leaf),
            Role::Html | Role::Attachment => {}
        }
        if text.is_full() {
            return text.into();
        }
        // Where another part follows, its text is no part of the last word.
        text.push(" ");
    }
    if text.is_empty()
        && let Some(leaf) = html
    {
        add(&mut text, &leaf, data, html_to_text);
    }
    text.into()
}

/// Adds the beginning of a body, no more of it than is needed.
fn add(excerpt: &mut Excerpt, leaf: &Leaf, data: &[u8], read: impl Fn(&str, &mut Excerpt)) {
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
fn cut(mut text: String, max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max) {
        text.truncate(end);
        // It waits in the batcher, and a flood must not leave its size behind.
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_decoded_and_bodies_folded() {
        let summary = Summary::of(
            b"From: =?utf-8?q?J=C3=B6rg?= <joerg@a.example>, b@b.example\r\n\
              Subject: =?iso-8859-1?q?caf=E9?=\r\n\r\n  one\r\n two\tthree  \r\n",
        );
        assert_eq!(summary.from_text, "Jörg <joerg@a.example>, b@b.example");
        assert_eq!(summary.from_email, "joerg@a.example");
        assert_eq!(summary.subject, "café");
        assert_eq!(summary.preview, "one two three");
    }

    #[test]
    fn html_only_gives_its_text() {
        let summary = Summary::of(b"Content-Type: text/html\r\n\r\n<style>a{}</style><p>Code <b>123</b></p>");
        assert_eq!(summary.preview, "Code 123");
    }

    #[test]
    fn nothing_is_no_error() {
        assert_eq!(Summary::of(b""), Summary::default());
        // As its text body is shown.
        assert_eq!(Summary::of(b"\0"), Summary { preview: "\u{fffd}".into(), ..Summary::default() });
    }

    #[test]
    fn fields_are_cut_and_cleaned() {
        let data = format!("Subject: a\0b\x07{}\r\n\r\n{}", "x".repeat(2_000), "y".repeat(300));
        let summary = Summary::of(data.as_bytes());
        assert_eq!(summary.subject.chars().count(), SUBJECT_MAX);
        assert!(summary.subject.starts_with("a\u{fffd}bx"));
        assert_eq!(summary.preview.len(), PREVIEW_MAX);
    }

    #[test]
    fn the_first_of_several_is_shown() {
        let summary = Summary::of(
            b"Subject: one\r\nSubject: two\r\nFrom: team: me, (x) \"A B\" <a@b.example>;\r\n\
              From: c@b.example (C)\r\n\r\n",
        );
        assert_eq!(summary.subject, "one");
        assert_eq!(summary.from_text, "me, A B <a@b.example>, C <c@b.example>");
        assert_eq!(summary.from_email, "a@b.example");
    }

    #[test]
    fn text_is_preferred_and_joined() {
        let preview = |parts: &[&str]| {
            let parts: String = parts.iter().map(|part| format!("--b\r\n{part}\r\n")).collect();
            let head = "Content-Type: multipart/mixed; boundary=b\r\n\r\n";
            Summary::of(format!("{head}{parts}--b--\r\n").as_bytes()).preview
        };
        let (html, text) = ("Content-Type: text/html\r\n\r\n<p>html", "\r\ntext");
        assert_eq!(preview(&[html, text, "Content-Type: image/png\r\n\r\nx", text]), "text text");
        assert_eq!(preview(&["\r\n ", html]), "html");
        assert_eq!(preview(&["Content-Disposition: attachment\r\n\r\nx"]), "");
    }

    #[test]
    fn bodies_are_looked_at_as_far_as_needed() {
        let preview = |body: &str| Summary::of(format!("\r\n{body}").as_bytes()).preview;
        // No prefix of it ends between characters.
        assert_eq!(preview(&format!("x{}", "é".repeat(40_000))), format!("x{}", "é".repeat(99)));
        assert_eq!(preview(&format!("x{}é", " \r\n".repeat(10_000))), "x é");
        assert_eq!(preview(&format!("{}x", " \r\n".repeat(30_000))), "");
    }

    #[test]
    fn hostile_mails_are_bounded() {
        let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
        assert_eq!(Summary::of(nested.as_bytes()), Summary::default());

        let mut unclosed = String::from("Subject: x\r\nContent-Type: multipart/mixed; boundary=b0\r\n\r\n");
        for i in 0..1_900 {
            let part = format!("--b{i}\r\nContent-Type: multipart/mixed; boundary=b{}\r\n\r\n", i + 1);
            unclosed.push_str(&part);
            unclosed.push_str(&"--filler\r\n".repeat(1_320));
        }
        assert!(unclosed.len() > 25_000_000);
        let summary = Summary::of(unclosed.as_bytes());
        assert_eq!((summary.subject.as_str(), summary.preview.as_str()), ("x", ""));
    }

    proptest::proptest! {
        #[test]
        fn no_octets_panic(
            head in "(From|Subject|Content-Type|[a-z]{0,3}): .{0,200}\r\n",
            body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..1_000),
        ) {
            let summary = Summary::of(&[head.as_bytes(), &body].concat());
            assert!(summary.from_text.chars().count() <= FROM_MAX);
            assert!(summary.preview.chars().count() <= PREVIEW_MAX);
            assert!(![summary.from_text, summary.from_email, summary.subject, summary.preview].concat().contains('\0'));
        }
    }
}
