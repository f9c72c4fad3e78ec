//! Replies. Each is a fixed text: nothing the client sent ever comes back to it.

use crate::delivery::Verdict;

/// One line of reply, without its CRLF: code, enhanced code (RFC 2034; not in greeting and
/// answers to EHLO and HELO), text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply(&'static str);

impl Reply {
    /// The reply as sent, without CRLF.
    pub const fn text(self) -> &'static str {
        self.0
    }

    /// The three digits.
    pub fn code(self) -> &'static str {
        &self.0[..3]
    }

    /// Whether it refuses for good (5yz), which counts towards `smtp.max_errors`.
    pub fn is_permanent(self) -> bool {
        self.0.starts_with('5')
    }

    /// Appends it with its CRLF.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: Reply = Reply($text);)*
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
    /// VRFY: nothing is told about addresses before mail is sent to them.
    VRFY = "252 2.5.0 Send some mail to find out";
    /// HELP.
    HELP = "214 2.0.0 This server only receives mail: EHLO MAIL RCPT DATA BDAT RSET NOOP QUIT STARTTLS";
    /// DATA.
    START_DATA = "354 End data with <CR><LF>.<CR><LF>";

    /// Twenty errors.
    TOO_MANY_ERRORS = "421 4.7.0 Too many errors, closing";
    /// Silence for too long.
    TIMEOUT = "421 4.4.2 Timeout, closing";
    /// Data that comes in too slowly.
    TOO_SLOW = "421 4.4.2 Data comes too slowly, closing";
    /// The pod is draining.
    DRAINING = "421 4.3.2 Going down, connect again";
    /// Connections of this peer, or of all.
    TOO_MANY_CONNECTIONS = "421 4.7.0 Too many connections, try again later";
    /// Plain text behind STARTTLS might have been injected (CVE-2011-0411).
    BEHIND_STARTTLS = "421 4.7.0 Nothing may follow STARTTLS before the handshake, closing";
    /// Postgres is away.
    UNAVAILABLE = "451 4.3.0 Storage is not available, try again later";
    /// A recipient's owner changed between RCPT and the end of data.
    RECIPIENTS_CHANGED = "451 4.2.1 A recipient is no longer served, send again";
    /// DATA, BDAT where no RCPT was accepted, but not every one refused for good.
    RECIPIENTS_DEFERRED = "451 4.5.0 No recipient could be accepted now, try again later";
    /// Over the quota of a recipient.
    MAILBOX_FULL = "452 4.2.2 Mailbox is full";
    /// Over the bounds of the installation.
    STORE_FULL = "452 4.3.1 Storage is full, try again later";
    /// No memory for message data.
    NO_MEMORY = "452 4.3.1 Too much mail in hand, try again later";
    /// RCPTMAX.
    TOO_MANY_RECIPIENTS = "452 4.5.3 Too many recipients, send the rest in another transaction";

    /// No such command.
    UNKNOWN_COMMAND = "500 5.5.1 Command not recognized";
    /// A line that is no command line.
    BAD_LINE = "500 5.5.2 Syntax error: a command is UTF-8 text without control characters";
    /// Bare LF in a command line.
    BARE_LF_LINE = "500 5.5.2 Lines must end in <CR><LF>";
    /// Longer than a command line may be.
    LINE_TOO_LONG = "500 5.5.2 Line too long";
    /// EHLO, HELO without a name.
    HELLO_SYNTAX = "501 Name yourself: EHLO host.example";
    /// MAIL that can't be read.
    MAIL_SYNTAX = "501 5.5.4 Syntax: MAIL FROM:<address> [parameters]";
    /// RCPT that can't be read.
    RCPT_SYNTAX = "501 5.5.4 Syntax: RCPT TO:<address>";
    /// Argument where none is.
    NO_ARGUMENT = "501 5.5.4 This command takes no argument";
    /// VRFY without an argument.
    ARGUMENT_NEEDED = "501 5.5.4 This command needs an argument";
    /// BDAT whose size is unknown, so that what follows can't be told from commands.
    BDAT_SYNTAX = "501 5.5.4 Syntax: BDAT size [LAST], closing";
    /// A parameter of MAIL with a bad or second value.
    BAD_PARAMETER = "501 5.5.4 Bad value of a parameter, or given twice";
    /// EXPN, AUTH, STARTTLS without a certificate.
    NOT_IMPLEMENTED = "502 5.5.1 Command not implemented";
    /// MAIL before EHLO.
    HELLO_FIRST = "503 5.5.1 Send EHLO first";
    /// MAIL in a transaction.
    NESTED_MAIL = "503 5.5.1 A mail transaction is open, send RSET first";
    /// RCPT, DATA, BDAT without MAIL.
    MAIL_FIRST = "503 5.5.1 Send MAIL first";
    /// DATA or RCPT after BDAT.
    CHUNKS_BEGUN = "503 5.5.1 The message has begun with BDAT, send BDAT or RSET";
    /// STARTTLS in TLS.
    TLS_ACTIVE = "503 5.5.1 TLS is active";
    /// DATA, BDAT where every RCPT was refused.
    NO_RECIPIENTS = "554 5.5.1 No valid recipients";
    /// A domain that is not served here.
    NOT_OURS = "550 5.7.1 This domain is not served here";
    /// No such mailbox, or a reserved name.
    NO_SUCH_MAILBOX = "550 5.1.1 No such mailbox";
    /// The tenant is suspended.
    SUSPENDED = "550 5.2.1 Mailbox is disabled";
    /// SIZE, or the message itself.
    TOO_BIG = "552 5.3.4 Message is too big";
    /// Header section.
    HEADER_TOO_BIG = "552 5.3.4 Header section is too big or has too many fields";
    /// A forward-path that mail can't go to.
    BAD_RECIPIENT = "553 5.1.3 Bad recipient address";
    /// A reverse-path that can't be one.
    BAD_SENDER = "553 5.1.7 Bad sender address";
    /// Not ASCII: without SMTPUTF8, or on a system domain.
    NON_ASCII = "553 5.6.7 An address outside ASCII needs SMTPUTF8, and is not served on this domain";
    /// Bare CR or LF in the data.
    BARE_LINE_END = "554 5.6.0 Message has a bare <CR> or <LF>: lines must end in <CR><LF>";
    /// Line of message data.
    DATA_LINE_TOO_LONG = "554 5.6.0 Message has a line that is too long";
    /// The store can't take this mail.
    REFUSED = "554 5.6.0 Message can't be stored";
    /// Extension that is not offered.
    UNKNOWN_PARAMETER = "555 5.5.4 Parameter not recognized or not offered";
}

/// Why a forward-path is refused at RCPT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientRefusal {
    /// Its domain is not served here.
    NotOurs,
    /// No mailbox, reserved, or held.
    Unknown,
    /// Its tenant is suspended.
    Suspended,
    /// A local part outside ASCII on a system domain.
    NonAscii,
    /// Usage and declared size pass the quota.
    MailboxFull,
    /// Shared inboxes, or the installation, are full.
    StoreFull,
    /// Postgres does not answer.
    Unavailable,
}

impl From<RecipientRefusal> for Reply {
    fn from(refusal: RecipientRefusal) -> Self {
        match refusal {
            RecipientRefusal::NotOurs => NOT_OURS,
            RecipientRefusal::Unknown => NO_SUCH_MAILBOX,
            RecipientRefusal::Suspended => SUSPENDED,
            RecipientRefusal::NonAscii => NON_ASCII,
            RecipientRefusal::MailboxFull => MAILBOX_FULL,
            RecipientRefusal::StoreFull => STORE_FULL,
            RecipientRefusal::Unavailable => UNAVAILABLE,
        }
    }
}

impl From<Verdict> for Reply {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Stored => STORED,
            Verdict::TryAgain => UNAVAILABLE,
            Verdict::Full => MAILBOX_FULL,
            Verdict::RecipientsChanged => RECIPIENTS_CHANGED,
            Verdict::Refused => REFUSED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_well_formed() {
        for reply in ALL {
            let text = reply.text();
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
