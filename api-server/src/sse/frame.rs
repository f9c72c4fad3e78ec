//! What a stream sends, as text. A cursor is base64url and JSON has no line breaks, so that no value
//! can end its line.

use std::fmt::Write as _;

use serde::Serialize;

/// Milliseconds after which EventSource comes back.
const RETRY: u32 = 3000;

/// Frames on their way to the client.
#[derive(Debug, Default)]
pub(super) struct Frames(String);

impl Frames {
    /// The first one: when to come back, and where to go on.
    pub(super) fn greet(&mut self, cursor: &str) {
        self.push(format_args!("retry: {RETRY}\nid: {cursor}\n\n"));
    }

    /// A message, and where to go on after it.
    pub(super) fn new_email(&mut self, cursor: &str, summary: &impl Serialize) {
        // A summary is texts and numbers, which can always be written.
        let data = serde_json::to_string(summary).unwrap_or_default();
        self.push(format_args!("event: new_email\nid: {cursor}\ndata: {data}\n\n"));
    }

    /// A sign of life, and how far was looked.
    pub(super) fn ping(&mut self, cursor: &str) {
        self.push(format_args!(": ping\nid: {cursor}\n\n"));
    }

    /// Octets so far.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The text, which is empty where there are none.
    pub(super) fn into_text(self) -> String {
        self.0
    }

    fn push(&mut self, frame: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(frame);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_are_those_of_the_event_stream_format() {
        let mut frames = Frames::default();
        frames.greet("c0");
        frames.new_email("c1", &json!({"subject": "a\r\nid: x\u{2028}b"}));
        frames.ping("c2");
        let expected = "retry: 3000\nid: c0\n\n\
            event: new_email\nid: c1\ndata: {\"subject\":\"a\\r\\nid: x\u{2028}b\"}\n\n\
            : ping\nid: c2\n\n";
        assert_eq!(frames.into_text(), expected);
    }
}
