//! Trace fields of the final delivery (RFC 5321 4.4): one that is stored with the mail, and what is
//! added when a recipient reads it, so that recipients are not disclosed to each other.

use std::net::IpAddr;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use uuid::Uuid;

/// The protocol of the `with` clause of `Received:` (RFC 3848, RFC 6531 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// After HELO.
    Smtp,
    /// After EHLO.
    Esmtp,
    /// After EHLO, within TLS.
    Esmtps,
    /// With SMTPUTF8.
    Utf8Smtp,
    /// With SMTPUTF8, within TLS.
    Utf8Smtps,
}

impl Protocol {
    /// The keyword of the `with` clause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Smtp => "SMTP",
            Self::Esmtp => "ESMTP",
            Self::Esmtps => "ESMTPS",
            Self::Utf8Smtp => "UTF8SMTP",
            Self::Utf8Smtps => "UTF8SMTPS",
        }
    }
}

/// The `Received:` field that is stored before a mail, without a `for` clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedField {
    /// The field with its CRLF.
    pub text: String,
    /// Offset at which a [`for_clause`] may be inserted.
    pub for_clause_offset: usize,
}

impl ReceivedField {
    /// The field for a mail that `host` received from `peer` at `at`.
    ///
    /// `hello` is the client's name, sanitized already.
    pub fn new(hello: &str, peer: IpAddr, host: &str, protocol: Protocol, mail: Uuid, at: Timestamp) -> Self {
        let address = match peer.to_canonical() {
            IpAddr::V4(v4) => format!("[{v4}]"),
            IpAddr::V6(v6) => format!("[IPv6:{v6}]"),
        };
        let mut text = format!(
            "Received: from {hello} ({address})\r\n\tby {host} with {protocol}\r\n\tid {mail}",
            protocol = protocol.as_str(),
        );
        let for_clause_offset = text.len();
        let date = at.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000");
        text.push_str(&format!(";\r\n\t{date}\r\n"));
        Self { text, for_clause_offset }
    }
}

/// The `for` clause, for a mail with a single recipient.
pub fn for_clause(address: &str) -> String {
    format!("\r\n\tfor <{address}>")
}

/// The `Return-Path:` field with its CRLF; `sender` is "" for the null reverse-path.
pub fn return_path(sender: &str) -> String {
    format!("Return-Path: <{sender}>\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_for_clause_can_be_inserted_at_its_offset() {
        let at = "2026-11-21T10:00:00.123Z".parse().unwrap();
        let peer = "::ffff:192.0.2.1".parse().unwrap();
        let field =
            ReceivedField::new("client.example", peer, "mx.example", Protocol::Esmtps, Uuid::nil(), at);
        let mut text = field.text.clone();
        text.insert_str(field.for_clause_offset, &for_clause("a@b.example"));
        assert_eq!(
            text,
            "Received: from client.example ([192.0.2.1])\r\n\tby mx.example with ESMTPS\r\n\
             \tid 00000000-0000-0000-0000-000000000000\r\n\tfor <a@b.example>;\r\n\
             \tSat, 21 Nov 2026 10:00:00 +0000\r\n"
        );
    }
}
