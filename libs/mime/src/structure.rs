//! The parts of a message (RFC 2045, RFC 2046), found in one pass over its lines.
//!
//! The work is linear in the length of the message: a line is compared with at most 50 boundaries,
//! and only if it starts with `--`. Messages within a message (`message/rfc822`) are attachments and
//! are not parsed.

mod leaves;
mod part;

use std::borrow::Cow;
use std::ops::Range;

use crate::text::{self, Flowed};
use crate::transfer::TransferEncoding;

pub use leaves::{Leaves, TooComplex};

/// The role of a leaf part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Part of the message's plain text.
    Text,
    /// Part of the message's HTML.
    Html,
    /// Anything else.
    Attachment,
}

/// A part that is not a multipart.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Its role.
    pub role: Role,
    /// `type/subtype` in lower case.
    pub media_type: String,
    /// The declared charset.
    pub charset: Option<String>,
    /// How the lines of a plain text flow, if they do.
    flowed: Option<Flowed>,
    /// The encoding of its body.
    pub encoding: TransferEncoding,
    /// The range of its encoded body in the message.
    pub body: Range<usize>,
    /// The file name, decoded, without directories, at most 255 characters.
    pub file_name: Option<String>,
    /// The content id without angle brackets.
    pub content_id: Option<String>,
    /// Whether it is displayed within the text.
    pub inline: bool,
}

/// An attachment with its index and its decoded length.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// Its index among the attachments, from 0.
    pub index: usize,
    /// Octets of the decoded body.
    pub size: usize,
    /// The part.
    pub leaf: Leaf,
}

impl Attachment {
    /// As [`Leaf::content_type_with_charset`].
    pub fn content_type_with_charset(&self) -> String {
        self.leaf.content_type_with_charset()
    }

    /// The file name for a download.
    pub fn download_name(&self) -> String {
        self.leaf.file_name.clone().unwrap_or_else(|| format!("attachment-{}", self.index))
    }
}

/// The parts of a message.
#[derive(Debug)]
pub struct Structure {
    /// The leaf parts in their order, at least one.
    pub leaves: Vec<Leaf>,
    /// The range of the header section of the message.
    pub header: Range<usize>,
}

impl Structure {
    /// Parses a message. One with too many parts becomes a single attachment.
    pub fn parse(raw: &[u8]) -> Self {
        let leaves = Leaves::new(raw);
        let header = leaves.header();
        let leaves = leaves.collect::<Result<_, TooComplex>>();
        Self { leaves: leaves.unwrap_or_else(|TooComplex| vec![Leaf::opaque(raw.len())]), header }
    }

    /// The attachments in order, with their decoded lengths.
    pub fn attachments(self, raw: &[u8]) -> Vec<Attachment> {
        let attachments = self.leaves.into_iter().filter(|leaf| leaf.role == Role::Attachment);
        attachments
            .enumerate()
            .map(|(index, leaf)| Attachment {
                index,
                size: leaf.encoding.decoded_len(&raw[leaf.body.clone()]),
                leaf,
            })
            .collect()
    }
}

impl Leaf {
    /// The media type with its charset, for octets that are not converted.
    pub fn content_type_with_charset(&self) -> String {
        match &self.charset {
            Some(charset) if charset.bytes().all(part::is_token) => {
                format!("{}; charset={charset}", self.media_type)
            }
            _ => self.media_type.clone(),
        }
    }

    /// The decoded text of the part, without byte order mark and soft line breaks (RFC 3676), and with U+FFFD for
    /// U+0000. HTML may declare its charset itself.
    pub fn text<'a>(&self, raw: &'a [u8]) -> Cow<'a, str> {
        self.text_of(&raw[self.body.clone()])
    }

    /// The decoded text of the first `max` octets of the encoded body.
    pub fn text_prefix<'a>(&self, raw: &'a [u8], max: usize) -> Cow<'a, str> {
        let body = &raw[self.body.clone()];
        match body.get(..max).filter(|_| max < body.len()) {
            // With an incomplete character at its end, UTF-8 would not be recognized.
            Some(cut) if self.encoding == TransferEncoding::Identity => {
                self.text_of(text::whole_characters(cut))
            }
            Some(cut) => {
                let octets = self.encoding.decode(cut);
                Cow::Owned(self.text_of_octets(text::whole_characters(&octets)).into_owned())
            }
            None => self.text_of(body),
        }
    }

    fn text_of<'a>(&self, body: &'a [u8]) -> Cow<'a, str> {
        match self.encoding.decode(body) {
            Cow::Borrowed(octets) => self.text_of_octets(octets),
            Cow::Owned(octets) => {
                if let Cow::Owned(text) = self.text_of_octets(&octets) {
                    return Cow::Owned(text);
                }
                // A text that is borrowed is these octets: they are not copied.
                text::body(Cow::Owned(text::utf8(octets)))
            }
        }
    }

    fn text_of_octets<'a>(&self, octets: &'a [u8]) -> Cow<'a, str> {
        let declared = self.charset.as_deref();
        let charset = match self.role {
            Role::Html => text::document_charset(octets, declared),
            Role::Text | Role::Attachment => declared.map(Cow::Borrowed),
        };
        let text = text::body(text::decoded(octets, charset.as_deref()));
        match self.flowed {
            Some(flowed) => Cow::Owned(flowed.unfold(&text)),
            None => text,
        }
    }

    /// The body of a multipart without any part, as text.
    fn whole_body(body: Range<usize>) -> Self {
        Self {
            role: Role::Text,
            media_type: "text/plain".into(),
            charset: None,
            flowed: None,
            encoding: TransferEncoding::Identity,
            body,
            file_name: None,
            content_id: None,
            inline: false,
        }
    }

    fn opaque(length: usize) -> Self {
        Self {
            role: Role::Attachment,
            media_type: "message/rfc822".into(),
            file_name: Some("message.eml".into()),
            ..Self::whole_body(0..length)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::leaves::PARTS_MAX;
    use super::*;
    use crate::header::parse_addresses;

    /// `role media-type body` of each leaf.
    fn leaves(raw: &str) -> Vec<(Role, String, String)> {
        let structure = Structure::parse(raw.as_bytes());
        structure
            .leaves
            .into_iter()
            .map(|leaf| (leaf.role, leaf.media_type, raw[leaf.body].to_owned()))
            .collect()
    }

    fn is(leaves: &[(Role, String, String)], expected: &[(Role, &str, &str)]) {
        let leaves: Vec<(Role, &str, &str)> = leaves
            .iter()
            .map(|(role, media_type, body)| (*role, media_type.as_str(), body.as_str()))
            .collect();
        assert_eq!(leaves, expected);
    }

    #[test]
    fn parses_plain_messages() {
        is(&leaves("Subject: x\r\n\r\nhello\r\n"), &[(Role::Text, "text/plain", "hello\r\n")]);
        is(&leaves(""), &[(Role::Text, "text/plain", "")]);
        is(&leaves("A: b\r\nno header\r\n"), &[(Role::Text, "text/plain", "no header\r\n")]);
        is(&leaves("Content-Type: text/html\n\n<p>"), &[(Role::Html, "text/html", "<p>")]);
        is(&leaves("Content-Type: text/csv\n\na,b"), &[(Role::Text, "text/csv", "a,b")]);
        is(&leaves("Content-Type: image/png\n\nx"), &[(Role::Attachment, "image/png", "x")]);
        is(&leaves("Content-Type: what is this\n\nx"), &[(Role::Text, "text/plain", "x")]);
        is(&leaves("Content-Type: multipart/mixed\n\nx"), &[(Role::Text, "multipart/mixed", "x")]);
        is(&leaves("Content-Type: multipart/mixed; boundary=b\n\nx"), &[(Role::Text, "text/plain", "x")]);
    }

    #[test]
    fn parses_nested_multiparts() {
        let raw = "Content-Type: multipart/mixed; boundary=\"a b\"\r\n\r\npreamble\r\n--a b\r\n\
            Content-Type: multipart/alternative; boundary=alt\r\n\r\n\
            --alt\r\n\r\nplain\r\n--alt\r\nContent-Type: multipart/related; boundary=rel\r\n\r\n\
            --rel\r\nContent-Type: text/html\r\n\r\n<img>\r\n--rel\r\nContent-Type: image/png\r\n\
            Content-ID: <i@x>\r\n\r\npng\r\n--rel--\r\n--alt--\r\nepilogue\r\n\
            --a b\r\nContent-Type: text/plain; name=n.txt\r\n\r\nfile\r\n--a b  \r\n\
            Content-Type: message/rfc822\r\n\r\nSubject: y\r\n\r\n--ab\r\ninner\r\n--a b--\r\n";
        is(
            &leaves(raw),
            &[
                (Role::Text, "text/plain", "plain"),
                (Role::Html, "text/html", "<img>"),
                (Role::Attachment, "image/png", "png"),
                (Role::Attachment, "text/plain", "file"),
                (Role::Attachment, "message/rfc822", "Subject: y\r\n\r\n--ab\r\ninner"),
            ],
        );
        let attachments = Structure::parse(raw.as_bytes()).attachments(raw.as_bytes());
        assert!(attachments[0].leaf.inline && attachments[0].leaf.content_id.as_deref() == Some("i@x"));
        assert!(!attachments[1].leaf.inline && attachments[1].leaf.file_name.as_deref() == Some("n.txt"));
        assert_eq!(
            attachments.iter().map(|a| (a.index, a.size)).collect::<Vec<_>>(),
            [(0, 3), (1, 4), (2, 25)]
        );
    }

    /// Roles of the leaves of a multipart with these parts, each a header section and a body.
    fn roles(subtype: &str, parts: &[&str]) -> Vec<Role> {
        let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
        let raw = format!("Content-Type: multipart/{subtype}; boundary=b\n\n{parts}--b--\n");
        leaves(&raw).into_iter().map(|(role, ..)| role).collect()
    }

    const PLAIN: &str = "Content-Type: text/plain\n\nx";
    const NAMED_PLAIN: &str = "Content-Type: text/plain; name=x.txt\n\nx";
    const HTML: &str = "Content-Type: text/html\n\nx";
    const NAMED_HTML: &str = "Content-Type: text/html; name=x.html\nContent-ID: <h@x>\n\nx";
    const ATTACHED_HTML: &str = "Content-Type: text/html\nContent-Disposition: attachment\n\nx";
    const INLINE_PLAIN: &str = "Content-Disposition: inline; filename=x.txt\n\nx";
    const PNG: &str = "Content-Type: image/png\n\nx";

    #[test]
    fn derives_roles_from_the_enclosing_multipart() {
        use Role::{Attachment, Html, Text};
        for (subtype, parts, expected) in [
            ("alternative", &[NAMED_PLAIN, NAMED_HTML][..], &[Text, Html][..]),
            ("alternative", &[PNG, NAMED_PLAIN, NAMED_HTML], &[Attachment, Text, Html]),
            ("alternative", &[PLAIN, ATTACHED_HTML], &[Text, Attachment]),
            ("alternative", &["Content-Type: text/calendar\n\nx", PLAIN], &[Attachment, Text]),
            ("mixed", &[NAMED_PLAIN, NAMED_HTML], &[Text, Attachment]),
            ("mixed", &[HTML, NAMED_PLAIN, PLAIN], &[Html, Attachment, Text]),
            ("mixed", &[PNG, NAMED_HTML], &[Attachment, Html]),
            ("mixed", &[INLINE_PLAIN, INLINE_PLAIN], &[Text, Attachment]),
            ("mixed", &[PNG, INLINE_PLAIN], &[Attachment, Attachment]),
            ("x-unknown", &[PLAIN, NAMED_HTML], &[Text, Attachment]),
            ("related", &[NAMED_HTML, PNG], &[Html, Attachment]),
            ("related", &[PNG, HTML], &[Attachment, Html]),
            ("related", &[PLAIN, NAMED_HTML, PNG], &[Text, Html, Attachment]),
            ("related", &[HTML, NAMED_HTML, NAMED_PLAIN], &[Html, Attachment, Attachment]),
            ("related; start=\"<h@x>\"", &[PNG, NAMED_HTML], &[Attachment, Html]),
            ("related; start=\"h@x\"", &[HTML, NAMED_HTML], &[Html, Html]),
            ("related; start=\"<missing@x>\"", &[NAMED_HTML, PNG], &[Html, Attachment]),
        ] {
            assert_eq!(roles(subtype, parts), expected, "{subtype}: {parts:?}");
        }
    }

    #[test]
    fn derives_roles_within_nested_multiparts() {
        use Role::{Attachment, Html, Text};
        let mixed = "Content-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: text/html; name=x.html\n\nx\n\
            --c\nContent-Type: text/plain; name=y.txt\n\ny\n--c--";
        assert_eq!(roles("alternative", &[PLAIN, mixed]), [Text, Html, Attachment]);
        assert_eq!(roles("mixed", &[PLAIN, mixed]), [Text, Attachment, Attachment]);
        let forms = mixed.replace("mixed", "alternative");
        assert_eq!(roles("mixed", &[&forms, NAMED_PLAIN]), [Html, Text, Attachment]);
        assert_eq!(roles("related", &[&forms, PNG, NAMED_HTML]), [Html, Text, Attachment, Attachment]);
    }

    #[test]
    fn reads_fields_with_mistakes() {
        let two = |field: &str| {
            leaves(&format!("{field}\n\n--b\n\none\n--b\nContent-Type: text/html\n\ntwo\n--b--\n"))
        };
        for field in [
            "Content-Type: multipart/alternative boundary=b",
            "Content-Type: multipart/alternative, boundary=\"b\"",
            "Content-Type: multipart/alternative:boundary=b; charset=utf-8",
            "Content-Type: multipart/alternative; charset=utf-8 boundary=b",
            "Content-Type: multipart/alternative;\nboundary=\"b\"\nX: y",
            "Content-Type: multipart/alternative;",
            "Content-Type: multipart/alternative; bounary=b",
        ] {
            is(&two(field), &[(Role::Text, "text/plain", "one"), (Role::Html, "text/html", "two")]);
        }
        for field in [
            "text/html charset=utf-8",
            "text/html, charset=utf-8",
            "text/html:charset=utf-8",
            "TEXT/HTML;charset='utf-8'",
            "text/html;\ncharset=utf-8",
        ] {
            let raw = format!("Content-Type: {field}\n\n<p>");
            is(&leaves(&raw), &[(Role::Html, "text/html", "<p>")]);
            let structure = Structure::parse(raw.as_bytes());
            assert_eq!(structure.leaves[0].charset.as_deref(), Some("utf-8"), "{field}");
        }
        for field in [
            "attachment filename=a.txt",
            "attachment, filename=a.txt",
            "attachment:filename=a.txt",
            "attachment; name=a.txt",
        ] {
            let raw = format!("Content-Disposition: {field}\n\nx");
            let leaf = &Structure::parse(raw.as_bytes()).leaves[0];
            assert_eq!((leaf.role, leaf.file_name.as_deref()), (Role::Attachment, Some("a.txt")), "{field}");
        }
        // A rule is no delimiter.
        let ruled = "Content-Type: multipart/mixed\n\n-- \nAda\n-----\n--b\nno part";
        is(&leaves(ruled), &[(Role::Text, "multipart/mixed", &ruled[31..])]);
    }

    #[test]
    fn decodes_texts_by_their_labels_and_octets() {
        let text = |raw: &[u8]| Structure::parse(raw).leaves[0].text(raw).into_owned();
        let html = b"Content-Type: text/html\n\n<meta http-equiv=Content-Type content=\"text/html; charset=windows-1251\">\xc2\xe0\xf8";
        assert!(text(html).ends_with("Ваш"));
        let plain = b"Content-Type: text/plain\n\n<meta charset=windows-1251>\xc2\xe0";
        assert!(text(plain).ends_with("Âà"), "plain text declares nothing");
        let flowed =
            b"Content-Type: text/plain; Format=Flowed; DelSp=Yes\n\nhttps://a.example/ab \ncd\n\nBye";
        assert_eq!(text(flowed), "https://a.example/abcd\n\nBye");
        let flowed = b"Content-Type: text/plain; format=flowed\nContent-Transfer-Encoding: quoted-printable\n\none=20\ntwo\n";
        assert_eq!(text(flowed), "one two\n");
        let html = b"Content-Type: text/html; format=flowed\n\n<p>one \ntwo";
        assert_eq!(text(html), "<p>one \ntwo");
    }

    #[test]
    fn parses_unclosed_and_empty_parts() {
        let head = "Content-Type: multipart/mixed; boundary=b\n\n";
        is(
            &leaves(&format!("{head}--b\n\none\n--b\n\ntwo")),
            &[(Role::Text, "text/plain", "one"), (Role::Text, "text/plain", "two")],
        );
        is(
            &leaves(&format!("{head}--b\n--b\n\n--b--\n")),
            &[(Role::Text, "text/plain", ""), (Role::Text, "text/plain", "")],
        );
    }

    #[test]
    fn parses_dispositions_and_file_names() {
        let raw = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment\n\nx\n\
            --b\nContent-Disposition: inline; filename==?utf-8?q?a=07=C3=A9.txt?=\n\ny\n\
            --b\nContent-Type: application/pdf; charset=\"a b\"\n\nz\n--b--";
        let attachments = Structure::parse(raw).attachments(raw);
        let names: Vec<_> = attachments.iter().map(|a| (a.leaf.inline, a.download_name())).collect();
        let expected = [(false, "attachment-0"), (true, "aé.txt"), (false, "attachment-2")];
        assert_eq!(names, expected.map(|(inline, name)| (inline, name.to_owned())));
        assert_eq!(attachments[2].content_type_with_charset(), "application/pdf");
    }

    #[test]
    fn returns_one_attachment_for_too_many_parts() {
        let parts =
            |n: usize| format!("Content-Type: multipart/mixed; boundary=b\n\n{}", "--b\n\nx\n".repeat(n));
        assert_eq!(leaves(&parts(999)).len(), 999);
        let opaque = parts(1_000);
        is(&leaves(&opaque), &[(Role::Attachment, "message/rfc822", opaque.as_str())]);

        let levels = |n: usize| -> String {
            (0..n).map(|i| format!("Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n")).collect()
        };
        assert_eq!(leaves(&format!("{}\nx", levels(50)))[0].2, "x");
        assert_eq!(leaves(&format!("{}\nx", levels(51)))[0].1, "message/rfc822");
        assert_eq!(leaves(&levels(10_000)).len(), 1);
    }

    #[test]
    fn terminates_on_adversarial_structures() {
        let head = "Content-Type: multipart/mixed; boundary=b\n\n";
        let unclosed = "--b\nContent-Type: multipart/mixed; boundary=never\n\n".repeat(900);
        let began = Instant::now();
        for raw in [
            format!("{head}{unclosed}{}", "--x\n".repeat(4 << 20)),
            format!("{head}{}", "--b\n\n".repeat(100_000)),
            format!("{head}{}", "--b\nContent-Type: multipart/mixed\n\n-- \n".repeat(100_000)),
            "Content-Type: message/rfc822\n\n".repeat(100_000),
            format!("{head}--b\n{}", "A: b\n".repeat(1 << 20)),
            format!("{head}{}", format!("--b\nContent-Type: a{}b\n\n", " ".repeat(8_000)).repeat(1_000)),
            format!("{head}{}", format!("--b\nContent-Type: a; b=\"{}\n\n", ";".repeat(8_000)).repeat(1_000)),
        ] {
            assert!(leaves(&raw).len() <= PARTS_MAX);
        }
        let unclosed = format!("x <a b@x{}", ",".repeat(1 << 20));
        assert!(parse_addresses(unclosed.as_bytes()).count() <= 1 << 20);
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
