//! Replies. Each is a fixed text, so no reply repeats what the client sent.

use super::{DeliveryOutcome, RecipientRejection};
use crate::memory::MemoryError;

/// A reply of one line without its CRLF: code, enhanced code (RFC 2034; not in the greeting and
/// in replies to EHLO and HELO), text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply(&'static str);

impl Reply {
    /// The three digits.
    pub(crate) fn code(self) -> &'static str {
        &self.0[..3]
    }

    /// Whether it is a permanent rejection (5yz), which counts towards the errors of a session.
    pub(crate) fn is_permanent(self) -> bool {
        self.0.starts_with('5')
    }

    /// The limit that it reports, as a word for metrics; `None` if it is about something else.
    pub(crate) fn limit(self) -> Option<&'static str> {
        Some(match self {
            TIMEOUT => "silence",
            TOO_SLOW => "data_rate",
            TRANSACTION_TOO_LONG => "transaction_time",
            SESSION_TOO_LONG => "session_time",
            SESSION_REPLACED => "idle_session",
            TOO_MANY_CONNECTIONS => "connections",
            TOO_MANY_PEER_CONNECTIONS => "peer_connections",
            TOO_MANY_ERRORS => "errors",
            TOO_MANY_UNKNOWN => "unknown_recipients",
            PEER_RATE => "peer_rate",
            TOTAL_RATE => "total_rate",
            NO_MEMORY => "memory",
            NO_PEER_MEMORY => "peer_memory",
            NO_TENANT_MEMORY => "tenant_memory",
            TOO_MANY_LARGE => "large_messages",
            _ => return None,
        })
    }

    /// Appends the reply with its CRLF.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: Reply = Reply($text);)*
        #[cfg(test)]
        const ALL: &[Reply] = &[$($name),*];
    };
}

replies! {
    /// QUIT.
    BYE = "221 2.0.0 Bye";
    /// STARTTLS.
    START_TLS = "220 2.0.0 Ready to start TLS";
    /// RSET, NOOP.
    OK = "250 2.0.0 OK";
    /// MAIL.
    SENDER_OK = "250 2.1.0 Sender OK";
    /// RCPT.
    RECIPIENT_OK = "250 2.1.5 Recipient OK";
    /// BDAT that is not the last.
    CHUNK_OK = "250 2.0.0 Chunk received";
    /// Committed to disk.
    STORED = "250 2.0.0 Stored";
    /// VRFY: it discloses nothing about addresses.
    VRFY = "252 2.5.0 Send some mail to find out";
    /// HELP.
    HELP = "214 2.0.0 This server only receives mail: EHLO MAIL RCPT DATA BDAT RSET NOOP QUIT STARTTLS";
    /// AUTH that has succeeded.
    AUTHENTICATED = "235 2.7.0 Authentication successful";
    /// AUTH PLAIN without an initial response.
    AUTH_RESPONSE = "334 ";
    /// AUTH LOGIN: `Username:` in base64.
    AUTH_USER_NAME = "334 VXNlcm5hbWU6";
    /// AUTH LOGIN: `Password:` in base64.
    AUTH_PASSWORD = "334 UGFzc3dvcmQ6";
    /// DATA.
    START_DATA = "354 End data with <CR><LF>.<CR><LF>";

    /// More errors than a session may have.
    TOO_MANY_ERRORS = "421 4.7.0 Too many errors, closing";
    /// The client was silent for too long.
    TIMEOUT = "421 4.4.2 Timeout, closing";
    /// Message data arrives too slowly.
    TOO_SLOW = "421 4.4.2 Data arrives too slowly, closing";
    /// The process is draining.
    DRAINING = "421 4.3.2 Shutting down, connect again";
    /// The time of a transaction has passed since MAIL.
    TRANSACTION_TOO_LONG = "421 4.4.2 The mail transaction takes too long, closing";
    /// The time of a session has passed.
    SESSION_TOO_LONG = "421 4.4.2 The session takes too long, connect again";
    /// `smtp.connections_per_peer` is reached, and this session of the peer was idle for longest.
    SESSION_REPLACED = "421 4.7.0 Closing in favor of another connection from your network, connect again";
    /// `smtp.connections` is reached.
    TOO_MANY_CONNECTIONS = "421 4.7.0 Too many connections, try again later";
    /// `smtp.connections_per_peer` is reached.
    TOO_MANY_PEER_CONNECTIONS = "421 4.7.0 Too many connections from your network, close some of them";
    /// More recipients that do not exist than `smtp.unknown_recipients_per_minute`.
    TOO_MANY_UNKNOWN = "421 4.7.0 Too many unknown recipients from your network, try again later";
    /// `smtp.tenant_messages_per_minute_per_peer`, `smtp.address_messages_per_minute_per_peer`, or the octets an hour.
    PEER_RATE = "450 4.7.1 Too much mail from your network to this recipient, try again later";
    /// `smtp.tenant_messages_per_minute`, `smtp.address_messages_per_minute`.
    TOTAL_RATE = "450 4.2.1 This recipient is receiving too much mail, try again later";
    /// Plain text after STARTTLS may have been injected (CVE-2011-0411).
    DATA_AFTER_STARTTLS = "421 4.7.0 Data sent after STARTTLS and before the TLS handshake, closing";
    /// Postgres is unavailable.
    UNAVAILABLE = "451 4.3.0 Storage is not available, try again later";
    /// There was no turn to store a large message.
    TOO_MANY_LARGE = "451 4.3.2 Too many large messages in progress, try again later";
    /// A recipient was removed between RCPT and the end of data.
    RECIPIENTS_CHANGED = "451 4.2.1 A recipient is no longer served, try again";
    /// DATA, BDAT if no RCPT was accepted, and one was rejected for now only.
    RECIPIENTS_DEFERRED = "451 4.5.0 No recipient could be accepted at this time, try again later";
    /// The quota of a recipient is exceeded.
    MAILBOX_FULL = "452 4.2.2 Mailbox is full";
    /// The capacity of the installation is exceeded.
    STORE_FULL = "452 4.3.1 Storage is full, try again later";
    /// `smtp.memory_bytes` is exceeded.
    NO_MEMORY = "452 4.3.1 Too many messages in progress, try again later";
    /// `smtp.memory_bytes_per_peer` is exceeded.
    NO_PEER_MEMORY = "452 4.3.1 Too many messages in progress from your network, try again later";
    /// `smtp.memory_bytes_per_tenant` is exceeded.
    NO_TENANT_MEMORY = "452 4.3.1 Too many messages in progress to these recipients, try again later";
    /// More recipients than RCPTMAX.
    TOO_MANY_RECIPIENTS = "452 4.5.3 Too many recipients, send the rest in another transaction";

    /// No such command.
    UNKNOWN_COMMAND = "500 5.5.1 Command not recognized";
    /// A line that is not UTF-8 text.
    BAD_LINE = "500 5.5.2 Syntax error: a command is UTF-8 text without control characters";
    /// A command line that ends in a bare LF.
    BARE_LF_LINE = "500 5.5.2 Lines must end in <CR><LF>";
    /// A command line that is too long.
    LINE_TOO_LONG = "500 5.5.2 Line too long";
    /// EHLO, HELO without a name.
    HELLO_SYNTAX = "501 Syntax: EHLO hostname";
    /// MAIL that can't be parsed.
    MAIL_SYNTAX = "501 5.5.4 Syntax: MAIL FROM:<address> [parameters]";
    /// RCPT that can't be parsed.
    RCPT_SYNTAX = "501 5.5.4 Syntax: RCPT TO:<address>";
    /// An argument of a command that has none.
    NO_ARGUMENT = "501 5.5.4 This command takes no argument";
    /// VRFY without an argument.
    ARGUMENT_NEEDED = "501 5.5.4 This command needs an argument";
    /// BDAT without a valid size, so that data can't be distinguished from commands.
    BDAT_SYNTAX = "501 5.5.4 Syntax: BDAT size [LAST], closing";
    /// AUTH without a mechanism, or with too many arguments.
    AUTH_SYNTAX = "501 5.5.4 Syntax: AUTH mechanism [initial-response]";
    /// A response of AUTH that is not base64, or not of its mechanism.
    AUTH_INVALID = "501 5.5.2 Invalid response of this mechanism";
    /// A response of AUTH that is `*`.
    AUTH_CANCELLED = "501 5.7.0 Authentication cancelled";
    /// A parameter of MAIL with an invalid value, or given twice.
    BAD_PARAMETER = "501 5.5.4 A parameter has an invalid value or is given twice";
    /// EXPN, AUTH, STARTTLS without a certificate.
    NOT_IMPLEMENTED = "502 5.5.1 Command not implemented";
    /// MAIL before EHLO.
    HELLO_FIRST = "503 5.5.1 Send EHLO first";
    /// AUTH in a mail transaction, or again.
    AUTH_OUT_OF_PLACE = "503 5.5.1 AUTH is possible once, and not in a mail transaction";
    /// A mechanism that is not offered.
    AUTH_MECHANISM = "504 5.5.4 Use AUTH PLAIN or AUTH LOGIN";
    /// MAIL within a transaction.
    NESTED_MAIL = "503 5.5.1 A mail transaction is open, send RSET first";
    /// RCPT, DATA, BDAT without MAIL.
    MAIL_FIRST = "503 5.5.1 Send MAIL first";
    /// DATA or RCPT after BDAT.
    CHUNKING_STARTED = "503 5.5.1 The message was started with BDAT, send BDAT or RSET";
    /// A health check of a load balancer that sends more than QUIT.
    ONLY_QUIT = "503 5.5.1 A connection without a client address may only QUIT, closing";
    /// STARTTLS within TLS.
    TLS_ACTIVE = "503 5.5.1 TLS is already active";
    /// DATA, BDAT if there was no RCPT or all were rejected.
    NO_RECIPIENTS = "554 5.5.1 No valid recipients";
    /// A header of the PROXY protocol from an address outside `smtp.proxy_networks`.
    PROXY_REFUSED = "554 5.7.1 The PROXY protocol is not accepted from this address, closing";
    /// A domain that is not served here.
    NOT_SERVED = "550 5.7.1 This domain is not served here";
    /// No such mailbox, or a reserved address.
    NO_SUCH_MAILBOX = "550 5.1.1 No such mailbox";
    /// The tenant is suspended.
    SUSPENDED = "550 5.2.1 Mailbox is disabled";
    /// The declared SIZE, or the message, is too big.
    TOO_BIG = "552 5.3.4 Message is too big";
    /// The header section is too big.
    HEADER_TOO_BIG = "552 5.3.4 Header section is too big or has too many fields";
    /// An invalid forward-path.
    BAD_RECIPIENT = "553 5.1.3 Bad recipient address";
    /// An invalid reverse-path.
    BAD_SENDER = "553 5.1.7 Bad sender address";
    /// A reverse-path that is not ASCII, without SMTPUTF8 (RFC 6531 3.5).
    SENDER_NON_ASCII = "553 5.6.7 A sender address outside ASCII needs the parameter SMTPUTF8: MAIL FROM:<address> SMTPUTF8";
    /// A forward-path that is not ASCII, in a transaction without SMTPUTF8.
    RECIPIENT_NON_ASCII = "553 5.6.7 A recipient address outside ASCII needs the parameter SMTPUTF8 of MAIL";
    /// A forward-path that is not ASCII, on a system domain.
    DOMAIN_ASCII_ONLY = "553 5.6.7 This domain has no addresses outside ASCII";
    /// A path in another encoding.
    PATH_NOT_UTF8 = "553 5.6.7 An address outside ASCII must be UTF-8, with the parameter SMTPUTF8 of MAIL";
    /// The data has a bare CR or LF.
    BARE_LINE_END = "554 5.6.0 Message has a bare <CR> or <LF>: lines must end in <CR><LF>";
    /// The data has a line that is too long.
    DATA_LINE_TOO_LONG = "554 5.6.0 Message has a line that is too long";
    /// Postgres rejects the content.
    REJECTED = "554 5.6.0 Message can't be stored";
    /// A parameter that is unknown or not offered.
    UNKNOWN_PARAMETER = "555 5.5.4 Parameter not recognized or not offered";
}

impl From<RecipientRejection> for Reply {
    fn from(rejection: RecipientRejection) -> Self {
        match rejection {
            RecipientRejection::NotServed => NOT_SERVED,
            RecipientRejection::Unknown => NO_SUCH_MAILBOX,
            RecipientRejection::Suspended => SUSPENDED,
            RecipientRejection::NonAscii => DOMAIN_ASCII_ONLY,
            RecipientRejection::MailboxFull => MAILBOX_FULL,
            RecipientRejection::StoreFull => STORE_FULL,
            RecipientRejection::PeerRate => PEER_RATE,
            RecipientRejection::TotalRate => TOTAL_RATE,
            RecipientRejection::Unavailable => UNAVAILABLE,
        }
    }
}

impl From<MemoryError> for Reply {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Process => NO_MEMORY,
            MemoryError::Peer => NO_PEER_MEMORY,
            MemoryError::Tenant => NO_TENANT_MEMORY,
        }
    }
}

impl From<DeliveryOutcome> for Reply {
    fn from(outcome: DeliveryOutcome) -> Self {
        match outcome {
            DeliveryOutcome::Stored => STORED,
            DeliveryOutcome::Unavailable => UNAVAILABLE,
            DeliveryOutcome::Busy => TOO_MANY_LARGE,
            DeliveryOutcome::OverQuota => MAILBOX_FULL,
            DeliveryOutcome::StoreFull => STORE_FULL,
            DeliveryOutcome::PeerRate => PEER_RATE,
            DeliveryOutcome::TotalRate => TOTAL_RATE,
            DeliveryOutcome::RecipientsChanged => RECIPIENTS_CHANGED,
            DeliveryOutcome::Rejected => REJECTED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reply_is_well_formed() {
        for reply in ALL {
            let text = reply.0;
            assert!(text.len() <= 510 && text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{text}");
            assert!(
                text.as_bytes()[..3].iter().all(u8::is_ascii_digit) && text.as_bytes()[3] == b' ',
                "{text}"
            );
            let class = &text[..1];
            if class == "3" || *reply == HELLO_SYNTAX {
                continue;
            }
            let enhanced = text[4..].split(' ').next().unwrap();
            assert!(enhanced.starts_with(class) && enhanced.matches('.').count() == 2, "{text}");
        }
    }
}
