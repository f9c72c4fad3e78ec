//! Sends a mail, reads it on every surface, and compares it with what is expected.

use serde_json::Value;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, Response, SmtpClient, corpus};

/// What is expected of a mail. Line ends in texts count as LF; those at the end are ignored.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// Decoded Subject.
    pub subject: &'static str,
    /// From header as text.
    pub from: &'static str,
    /// First address of it.
    pub from_email: &'static str,
    /// First 100 characters of the text.
    pub preview: &'static str,
    /// Plain text; "" where there is none.
    pub text: &'static str,
    /// HTML; "" where there is none.
    pub html: &'static str,
    /// In their order.
    pub attachments: Vec<Attachment>,
}

/// What is expected of an attachment.
#[derive(Debug, Clone, Copy)]
pub struct Attachment {
    pub filename: Option<&'static str>,
    pub content_type: &'static str,
    pub content_id: Option<&'static str>,
    pub inline: bool,
    pub content: &'static [u8],
}

/// The originator of most fixtures.
pub const ADA: Expected = Expected {
    subject: "",
    from: "Ada Lovelace <ada@sender.test>",
    from_email: "ada@sender.test",
    preview: "",
    text: "",
    html: "",
    attachments: Vec::new(),
};

/// A mail as every surface returns it.
#[derive(Debug)]
pub struct ReadMail {
    pub id: String,
    /// Item of `/api/messages`.
    pub summary: Value,
    /// `/api/messages/{id}`.
    pub full: Value,
    /// `/v1/email/<id>`.
    pub email: Value,
    /// `/raw`, the same on both surfaces.
    pub raw: Vec<u8>,
}

/// Tempmail with a mailbox that every surface can read.
pub struct Reader {
    pub app: App,
    pub mailbox: Mailbox,
}

impl Reader {
    pub async fn start() -> Self {
        let app = App::start().await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), "someone@inbox.localhost").await;
        Self { app, mailbox }
    }

    /// Sends a mail, which is accepted, and reads it on every surface.
    pub async fn show(&self, mail: &[u8]) -> ReadMail {
        let mut client = SmtpClient::connect_with_ehlo(self.app.smtp()).await;
        client.expect_positive("MAIL FROM:<bounce@sender.test>").await;
        client.expect_positive(&format!("RCPT TO:<{}>", self.mailbox.address)).await;
        client.expect_positive("DATA").await;
        let wire = if mail.is_empty() { b".\r\n".to_vec() } else { tempmail_tests::smtp::dot_stuffed(mail) };
        client.send(wire).await;
        let reply = client.reply().await;
        assert_eq!(reply.code, 250, "{reply:?}");
        client.send("QUIT\r\n").await;
        self.read(mail).await
    }

    async fn read(&self, mail: &[u8]) -> ReadMail {
        let summary = self.app.messages(&self.mailbox).await.swap_remove(0);
        let id = summary["id"].as_str().expect("an id is a text").to_owned();
        let full = self.mailbox_get(&id, "").await.expect(200);
        let email = self.v1_get(&id, "").await.expect(200);
        let raw = self.mailbox_get(&id, "/raw").await;
        assert_eq!((raw.status, raw.media_type()), (200, "message/rfc822"));
        assert_eq!(self.v1_get(&id, "/raw").await.body, raw.body, "raw is the same on both surfaces");
        let shown = ReadMail { id, summary, full, email, raw: raw.body };
        shown.assert_consistent();
        shown.assert_raw(mail);
        shown
    }

    pub async fn mailbox_get(&self, id: &str, rest: &str) -> Response {
        self.app.get_mailbox(&self.mailbox, &format!("/api/messages/{id}{rest}")).await
    }

    pub async fn v1_get(&self, id: &str, rest: &str) -> Response {
        self.app.get(&format!("/v1/email/{id}{rest}")).await
    }

    /// Sends every fixture of the table, and reports all differences.
    pub async fn table(&self, table: &[(&str, Expected)]) {
        let mut wrong = Vec::new();
        for (name, expected) in table {
            let shown = self.show(&corpus::fixture(name)).await;
            wrong.extend(shown.differences(expected).into_iter().map(|what| format!("{name}: {what}")));
            wrong.extend(
                self.attachment_differences(&shown, expected)
                    .await
                    .into_iter()
                    .map(|what| format!("{name}: {what}")),
            );
        }
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    async fn attachment_differences(&self, shown: &ReadMail, expected: &Expected) -> Vec<String> {
        let mut wrong = Vec::new();
        for (index, attachment) in expected.attachments.iter().enumerate() {
            let path = format!("/attachments/{index}");
            let download = self.mailbox_get(&shown.id, &path).await;
            assert_eq!(download.status, 200, "{}", download.text());
            assert_eq!(
                self.v1_get(&shown.id, &path).await.body,
                download.body,
                "both surfaces serve the same content"
            );
            difference(&mut wrong, "downloaded content", &download.body.as_slice(), &attachment.content);
            difference(&mut wrong, "downloaded media type", &download.media_type(), &attachment.content_type);
            assert!(download.header("content-disposition").starts_with("attachment"), "{download:?}");
            assert_eq!(download.header("x-content-type-options"), "nosniff");
            assert!(download.header("content-security-policy").contains("sandbox"), "{download:?}");
        }
        let beyond = format!("/attachments/{}", expected.attachments.len());
        self.mailbox_get(&shown.id, &beyond).await.assert_api_error(404, "not_found");
        self.v1_get(&shown.id, &beyond).await.assert_v1_error(404, "not_found");
        wrong
    }
}

impl ReadMail {
    /// A text field of the full message, with LF as line ends and none at the end; empty if absent.
    pub fn text(&self, field: &str) -> String {
        text(&self.full[field]).replace("\r\n", "\n").trim_end_matches('\n').to_owned()
    }

    pub fn attachments(&self) -> &[Value] {
        self.full["attachments"].as_array().expect("attachments is a list")
    }

    /// All surfaces return the same values.
    fn assert_consistent(&self) {
        for field in ["id", "sender", "from", "subject", "size", "created_at"] {
            assert_eq!(self.summary[field], self.full[field], "{field} in the list and in the message");
        }
        let fields = ["id", "sender", "from", "subject", "size", "created_at", "address"];
        for field in fields.iter().chain(&["text_body", "html_body", "attachments"]) {
            assert_eq!(self.full[field], self.email[field], "{field} on both surfaces");
        }
        assert_eq!(self.summary["preview_text"], self.email["preview_text"]);
        assert_eq!(self.full["sender"], "bounce@sender.test");
    }

    /// `/raw` is the trace fields of the final delivery, then what was sent.
    fn assert_raw(&self, mail: &[u8]) {
        let mut sent = mail.to_vec();
        if !sent.is_empty() && !sent.ends_with(b"\r\n") {
            sent.extend_from_slice(b"\r\n");
        }
        assert!(self.raw.ends_with(&sent), "raw ends with what was sent");
        let trace = String::from_utf8_lossy(&self.raw[..self.raw.len() - sent.len()]);
        assert!(trace.starts_with("Return-Path: <bounce@sender.test>\r\nReceived: from "), "{trace}");
        assert!(trace.ends_with("\r\n"), "{trace}");
        let mut lines = trace.trim_end_matches("\r\n").split("\r\n").skip(2);
        assert!(lines.all(|line| line.starts_with([' ', '\t'])), "only two fields: {trace}");
        assert_eq!(self.full["size"], self.raw.len(), "size is the length of raw");
    }

    fn differences(&self, expected: &Expected) -> Vec<String> {
        let mut wrong = Vec::new();
        difference(&mut wrong, "subject", &text(&self.full["subject"]), &expected.subject);
        difference(&mut wrong, "from", &text(&self.full["from"]), &expected.from);
        difference(&mut wrong, "from_email", &text(&self.email["from_email"]), &expected.from_email);
        difference(&mut wrong, "preview_text", &text(&self.summary["preview_text"]), &expected.preview);
        difference(&mut wrong, "text_body", &self.text("text_body").as_str(), &expected.text);
        difference(&mut wrong, "html_body", &self.text("html_body").as_str(), &expected.html);
        difference(
            &mut wrong,
            "number of attachments",
            &self.attachments().len(),
            &expected.attachments.len(),
        );
        for (index, (shown, expected)) in self.attachments().iter().zip(&expected.attachments).enumerate() {
            let mut field = |name: &str, expected: Value| {
                difference(&mut wrong, &format!("{name} of attachment {index}"), &shown[name], &expected);
            };
            field("index", index.into());
            field("filename", expected.filename.into());
            field("content_type", expected.content_type.into());
            field("content_id", expected.content_id.into());
            field("inline", expected.inline.into());
            field("size", expected.content.len().into());
        }
        wrong
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn difference<T: PartialEq + std::fmt::Debug>(wrong: &mut Vec<String>, what: &str, shown: &T, expected: &T) {
    if shown != expected {
        wrong.push(format!("{what} is {shown:?}, not {expected:?}"));
    }
}
