//! What a span says: ids, counts and words of this program, never what a client sent.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use tempmail_model::chance;
use uuid::Uuid;

/// The random bits of an id (UUIDv7) by which messages are chosen. They are the last ones, by which collectors
/// choose traces, too.
const RANDOM_BITS: u64 = 56;

/// A stage that a message passes; each is a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The transaction that received the mail, from MAIL to the reply to its data.
    SmtpTransaction,
    /// The statement that stored the mail together with others.
    Batch,
    /// A process that has subscribers learns of the message and notifies them.
    Hint,
    /// A client that waited gets the message.
    Answer,
    /// An attempt to deliver the event of the message to a webhook.
    WebhookDelivery,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::SmtpTransaction => "smtp.transaction",
            Self::Batch => "batch",
            Self::Hint => "hint",
            Self::Answer => "answer",
            Self::WebhookDelivery => "webhook.delivery",
        }
    }

    fn kind(self) -> SpanKind {
        match self {
            Self::SmtpTransaction => SpanKind::Server,
            Self::WebhookDelivery => SpanKind::Client,
            Self::Batch | Self::Hint | Self::Answer => SpanKind::Internal,
        }
    }
}

/// The value of an attribute. No variant has room for text that somebody wrote.
#[derive(Debug, Clone, Copy)]
pub enum AttributeValue {
    /// A count, a size or a code.
    Number(i64),
    /// A word of this program.
    Word(&'static str),
    /// An id.
    Id(Uuid),
}

impl AttributeValue {
    /// A number; one that is too large becomes the largest.
    pub fn number(number: impl TryInto<i64>) -> Self {
        Self::Number(number.try_into().unwrap_or(i64::MAX))
    }
}

impl From<AttributeValue> for Value {
    fn from(value: AttributeValue) -> Self {
        match value {
            AttributeValue::Number(number) => number.into(),
            AttributeValue::Word(word) => word.into(),
            AttributeValue::Id(id) => id.to_string().into(),
        }
    }
}

/// Whether a message is one of those that are traced, one in `one_in`.
pub(super) fn is_traced(message: Uuid, one_in: u32) -> bool {
    let range: u64 = 1 << RANDOM_BITS;
    let random = message.as_u64_pair().1 % range;
    random >= range - range / u64::from(one_in)
}

/// The span of a stage that ends now, in the trace of the message.
pub(super) fn span(
    scope: InstrumentationScope,
    stage: Stage,
    message: Uuid,
    duration: Duration,
    error: Option<&'static str>,
    attributes: &[(&'static str, AttributeValue)],
) -> SpanData {
    let root = SpanId::from(message.as_u64_pair().1);
    let (id, parent) = match stage {
        Stage::SmtpTransaction => (root, SpanId::INVALID),
        _ => (SpanId::from(chance::uuid().as_u64_pair().1), root),
    };
    let end_time = SystemTime::now();
    let about = [("tempmail.message.id", AttributeValue::Id(message))];
    let error_type = error.map(|error| ("error.type", AttributeValue::Word(error)));
    let attributes = about.iter().chain(attributes).copied().chain(error_type);
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(message.into_bytes()),
            id,
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        ),
        parent_span_id: parent,
        parent_span_is_remote: parent != SpanId::INVALID,
        span_kind: stage.kind(),
        name: stage.name().into(),
        start_time: end_time - duration,
        end_time,
        attributes: attributes.map(|(key, value)| KeyValue::new(key, value)).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: error.map_or(Status::Unset, Status::error),
        instrumentation_scope: scope,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span_of(stage: Stage, message: Uuid) -> SpanData {
        let scope = InstrumentationScope::builder("test").build();
        span(scope, stage, message, Duration::from_millis(5), None, &[])
    }

    #[test]
    fn the_trace_has_the_id_of_the_message_and_the_transaction_as_its_root() {
        let message = tempmail_model::id::new_id("2026-11-21T10:00:00Z".parse().unwrap());
        let root = span_of(Stage::SmtpTransaction, message);
        assert_eq!(root.span_context.trace_id().to_string(), message.simple().to_string());
        assert!(root.span_context.is_valid() && root.parent_span_id == SpanId::INVALID);
        for stage in [Stage::Batch, Stage::Hint, Stage::Answer, Stage::WebhookDelivery] {
            let child = span_of(stage, message);
            assert_eq!(child.span_context.trace_id(), root.span_context.trace_id());
            assert_eq!(child.parent_span_id, root.span_context.span_id());
            assert_ne!(child.span_context.span_id(), root.span_context.span_id());
        }
    }

    #[test]
    fn traces_one_message_in_as_many_as_configured() {
        let message =
            |random: u64| Uuid::from_u64_pair(0x0192_0000_0000_7000, 0x8000_0000_0000_0000 | random);
        let quarter: u64 = (1 << RANDOM_BITS) / 4;
        assert!(is_traced(message(0), 1));
        assert!(!is_traced(message(3 * quarter - 1), 4));
        assert!(is_traced(message(3 * quarter), 4) && is_traced(message(4 * quarter - 1), 4));
        assert!(!is_traced(message(3 * quarter), 1_000_000));
    }
}
