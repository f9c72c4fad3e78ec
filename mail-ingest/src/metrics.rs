//! Counters of inbound SMTP, made once. Labels are reply codes and verdicts, never anything a
//! client sent.

use ::metrics::{Counter, Gauge, counter, gauge};

use crate::delivery::Verdict;
use crate::smtp::{RecipientRefusal, Reply};

/// The counters.
#[derive(Debug)]
pub struct Metrics {
    /// Connections that are open.
    pub connections: Gauge,
    /// Connections accepted.
    pub accepted: Counter,
    /// Connections refused for a limit.
    pub refused: Counter,
    /// TLS handshakes that failed.
    pub tls_failed: Counter,
    stored: Counter,
    octets: Counter,
}

impl Metrics {
    /// Names them to the recorder that is installed.
    pub fn new() -> Self {
        Self {
            connections: gauge!("tempmail_smtp_connections"),
            accepted: counter!("tempmail_smtp_connections_total", "result" => "accepted"),
            refused: counter!("tempmail_smtp_connections_total", "result" => "refused"),
            tls_failed: counter!("tempmail_smtp_tls_failures_total"),
            stored: counter!("tempmail_smtp_mails_total", "code" => Reply::from(Verdict::Stored).code()),
            octets: counter!("tempmail_smtp_octets_total"),
        }
    }

    /// A recipient was refused.
    pub fn recipient_refused(&self, refusal: RecipientRefusal) {
        let reason = match refusal {
            RecipientRefusal::NotOurs => "not_ours",
            RecipientRefusal::Unknown => "unknown",
            RecipientRefusal::Suspended => "suspended",
            RecipientRefusal::NonAscii => "non_ascii",
            RecipientRefusal::MailboxFull => "mailbox_full",
            RecipientRefusal::StoreFull => "store_full",
            RecipientRefusal::Unavailable => "unavailable",
        };
        let code = Reply::from(refusal).code();
        counter!("tempmail_smtp_recipients_refused_total", "code" => code, "reason" => reason).increment(1);
    }

    /// A mail of `octets` has its verdict.
    pub fn delivered(&self, verdict: Verdict, octets: u64) {
        if verdict == Verdict::Stored {
            self.stored.increment(1);
            self.octets.increment(octets);
        } else {
            counter!("tempmail_smtp_mails_total", "code" => Reply::from(verdict).code()).increment(1);
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
