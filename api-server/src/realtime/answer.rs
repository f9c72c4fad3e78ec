//! Measures the answers that bring new mail to clients that wait for it.

use jiff::{SignedDuration, Timestamp};
use tempmail_model::id::id_time;
use tempmail_runtime::traces::{AttributeValue, StageTimer};
use uuid::Uuid;

use crate::state::AppState;

/// How much the clocks of two processes may differ: the time of a message is that of the process that received it.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

/// How a client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitMode {
    LongPoll,
    MailWait,
    EventStream,
    WebSocket,
}

impl WaitMode {
    /// The word for it in metrics and spans.
    fn as_str(self) -> &'static str {
        match self {
            Self::LongPoll => "long_poll",
            Self::MailWait => "mail_wait",
            Self::EventStream => "event_stream",
            Self::WebSocket => "websocket",
        }
    }
}

/// Measures the answers to one client. Mail from before it began to wait does not count: the client was not
/// there to get it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerMetrics {
    mode: WaitMode,
    waiting_since: Timestamp,
}

impl AnswerMetrics {
    /// A client begins to wait.
    pub(crate) fn start(mode: WaitMode, state: &AppState) -> Self {
        Self { mode, waiting_since: state.clock.now() }
    }

    /// Messages are handed to the client's connection; `timer` began when the client was notified.
    pub(crate) fn record(
        &self,
        state: &AppState,
        timer: StageTimer,
        messages: impl IntoIterator<Item = Uuid>,
    ) {
        let (surface, now) = (self.mode.as_str(), state.clock.now());
        let received = messages.into_iter().filter_map(|message| Some((message, id_time(message)?)));
        let since = self.waiting_since - CLOCK_TOLERANCE;
        let new: Vec<(Uuid, Timestamp)> = received.filter(|(_, at)| *at >= since).collect();
        for (_, received_at) in &new {
            let seconds = now.duration_since(*received_at).as_secs_f64();
            metrics::histogram!("tempmail_answer_seconds", "surface" => surface).record(seconds.max(0.0));
        }
        let messages = new.iter().map(|(message, _)| *message);
        timer.end(messages, None, &[("tempmail.answer.surface", AttributeValue::Word(surface))]);
    }
}
