//! Metrics of inbound SMTP. Labels are reply codes and reasons, never what a client sent.

use ::metrics::{Counter, Gauge, counter, gauge};

use crate::smtp::{DeliveryOutcome, RecipientRejection, Reply};

/// The metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Open connections.
    pub(crate) connections: Gauge,
    /// Accepted connections.
    pub(crate) accepted: Counter,
    /// Connections rejected because of a limit.
    pub(crate) rejected: Counter,
    /// Connections of load balancers that were closed for want of a valid PROXY header.
    pub(crate) proxy_headers_refused: Counter,
    /// Failed TLS handshakes.
    pub(crate) tls_failures: Counter,
    /// Replies about unknown recipients that were delayed.
    pub(crate) delayed_rejections: Counter,
    stored: Counter,
    bytes: Counter,
}

impl Metrics {
    /// Registers the metrics with the installed recorder.
    pub(crate) fn new() -> Self {
        Self {
            connections: gauge!("tempmail_smtp_connections"),
            accepted: counter!("tempmail_smtp_connections_total", "result" => "accepted"),
            rejected: counter!("tempmail_smtp_connections_total", "result" => "rejected"),
            proxy_headers_refused: counter!("tempmail_smtp_proxy_headers_refused_total"),
            tls_failures: counter!("tempmail_smtp_tls_failures_total"),
            delayed_rejections: counter!("tempmail_smtp_rejections_delayed_total"),
            stored: counter!("tempmail_smtp_mails_total", "code" => Reply::from(DeliveryOutcome::Stored).code()),
            bytes: counter!("tempmail_smtp_bytes_total"),
        }
    }

    /// Counts a rejected recipient.
    pub(crate) fn recipient_rejected(&self, rejection: RecipientRejection) {
        let reason = match rejection {
            RecipientRejection::NotServed => "not_served",
            RecipientRejection::Unknown => "unknown",
            RecipientRejection::Suspended => "suspended",
            RecipientRejection::NonAscii => "non_ascii",
            RecipientRejection::MailboxFull => "mailbox_full",
            RecipientRejection::StoreFull => "store_full",
            RecipientRejection::PeerRate => "peer_rate",
            RecipientRejection::TotalRate => "total_rate",
            RecipientRejection::Unavailable => "unavailable",
        };
        let code = Reply::from(rejection).code();
        counter!("tempmail_smtp_recipients_rejected_total", "code" => code, "reason" => reason).increment(1);
        self.limited(rejection.into());
    }

    /// Counts a mail that was refused before its delivery.
    pub(crate) fn refused(&self, reply: Reply) {
        counter!("tempmail_smtp_mails_total", "code" => reply.code()).increment(1);
        self.limited(reply);
    }

    /// Counts the reply if it is due to a limit.
    pub(crate) fn limited(&self, reply: Reply) {
        if let Some(limit) = reply.limit() {
            counter!("tempmail_smtp_limited_total", "code" => reply.code(), "limit" => limit).increment(1);
        }
    }

    /// Counts a session that ended since its client did not read the replies, so that it gets none about it.
    pub(crate) fn unread_replies(&self) {
        counter!("tempmail_smtp_limited_total", "code" => "none", "limit" => "unread_replies").increment(1);
    }

    /// Counts a mail with `bytes` of data.
    pub(crate) fn delivered(&self, outcome: DeliveryOutcome, bytes: u64) {
        if outcome == DeliveryOutcome::Stored {
            self.stored.increment(1);
            self.bytes.increment(bytes);
        } else {
            self.refused(outcome.into());
        }
    }
}
