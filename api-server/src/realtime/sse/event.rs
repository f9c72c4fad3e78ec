//! The event stream format. A cursor is base64url and JSON is written without line breaks, so that no
//! value can end its line.

use std::fmt::Write as _;

use serde::Serialize;
use uuid::Uuid;

/// Milliseconds after which EventSource reconnects.
const RETRY: u32 = 3000;

/// Events that are to be sent.
#[derive(Debug, Default)]
pub(super) struct EventBuffer {
    text: String,
    messages: Vec<Uuid>,
}

impl EventBuffer {
    /// Adds the first block: when to reconnect, and from which cursor.
    pub(super) fn start(&mut self, cursor: &str) {
        self.push(format_args!("retry: {RETRY}\nid: {cursor}\n\n"));
    }

    /// Adds a message, with the cursor after it.
    pub(super) fn new_email(&mut self, cursor: &str, message: Uuid, summary: &impl Serialize) {
        // A summary consists of texts and numbers, which always serialize.
        let data = serde_json::to_string(summary).unwrap_or_default();
        self.push(format_args!("event: new_email\nid: {cursor}\ndata: {data}\n\n"));
        self.messages.push(message);
    }

    /// Adds a keep-alive comment, with the cursor reached.
    pub(super) fn ping(&mut self, cursor: &str) {
        self.push(format_args!(": ping\nid: {cursor}\n\n"));
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The messages that were added.
    pub(super) fn messages(&self) -> &[Uuid] {
        &self.messages
    }

    /// The text; empty where there are no events.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_the_event_stream_format() {
        let mut events = EventBuffer::default();
        events.start("c0");
        events.new_email("c1", Uuid::nil(), &json!({"subject": "a\r\nid: x\u{2028}b"}));
        events.ping("c2");
        let expected = "retry: 3000\nid: c0\n\n\
            event: new_email\nid: c1\ndata: {\"subject\":\"a\\r\\nid: x\u{2028}b\"}\n\n\
            : ping\nid: c2\n\n";
        assert_eq!(events.into_text(), expected);
    }
}
