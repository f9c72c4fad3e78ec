//! The messages that a long-poll has read so far, and its answer.

use tempmail_store::MessageRow;
use uuid::Uuid;

use super::outcome::WaitOutcome;

/// Matching messages and positions. Without a cursor, the newest `limit` of the messages that existed at
/// first are kept. From then on, as with a cursor, the oldest come first, so that a client that continues
/// from the answer's cursor skips nothing.
#[derive(Debug)]
pub(super) struct Collected {
    count: usize,
    limit: usize,
    /// Oldest first (newest first until [`end_backward_scan`](Self::end_backward_scan)).
    messages: Vec<MessageRow>,
    /// Matches that count but are not in the answer, older than `messages`.
    older: usize,
    /// Position of the last scanned message, or the end of the stream where there was none.
    scanned: i64,
    /// Everything up to here is scanned.
    reached: i64,
}

impl Collected {
    /// Nothing yet; a scan starts after `since`.
    pub(super) fn new(count: usize, limit: usize, since: i64) -> Self {
        Self { count, limit, messages: Vec::new(), older: 0, scanned: since, reached: since }
    }

    /// Drops everything: a scan starts after `since`.
    pub(super) fn begin_anew(&mut self, since: i64) {
        *self = Self::new(self.count, self.limit, since);
    }

    /// Whether `count` messages have arrived.
    pub(super) fn is_enough(&self) -> bool {
        self.older + self.messages.len() >= self.count
    }

    /// How many more matches are needed; at most 50.
    pub(super) fn missing(&self) -> usize {
        self.count.max(self.limit).saturating_sub(self.older + self.messages.len())
    }

    /// Whether no message is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The messages that are kept.
    pub(super) fn messages(&self) -> &[MessageRow] {
        &self.messages
    }

    /// Everything up to here is scanned.
    pub(super) fn reached(&self) -> i64 {
        self.reached
    }

    /// Starts a scan from the newest message backwards; `position` is the end of the stream.
    pub(super) fn begin_backward_scan(&mut self, newest: Option<&MessageRow>, position: i64) {
        self.scanned = newest.map_or(position, |message| message.seq);
        self.reached = position.max(self.scanned);
    }

    /// Adds a match that is older than all before it.
    pub(super) fn push_older(&mut self, message: MessageRow) {
        self.messages.push(message);
    }

    /// Ends the scan backwards: further messages come oldest first.
    pub(super) fn end_backward_scan(&mut self) {
        self.older = self.messages.len().saturating_sub(self.limit);
        self.messages.truncate(self.limit);
        self.messages.reverse();
    }

    /// Adds the next message in the order of the stream, if it matches.
    pub(super) fn push_next(&mut self, message: MessageRow, matches: bool) {
        self.scanned = message.seq;
        self.reached = message.seq;
        if matches {
            self.messages.push(message);
        }
    }

    /// Records that everything up to `position` is scanned.
    pub(super) fn advance_to(&mut self, position: i64) {
        self.reached = self.reached.max(position);
    }

    /// Drops every message: the inbox has another owner now.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.older = 0;
    }

    /// Keeps only the messages with these ids.
    pub(super) fn retain(&mut self, remaining: &[Uuid]) {
        self.messages.retain(|message| remaining.contains(&message.id));
    }

    /// The answer.
    pub(super) fn into_outcome(mut self) -> WaitOutcome {
        let mut position = self.scanned;
        if self.messages.len() > self.limit {
            self.messages.truncate(self.limit);
            position = self.messages.last().map_or(position, |last| last.seq);
        }
        if self.messages.is_empty() {
            return WaitOutcome::Empty { position: self.reached };
        }
        self.messages.reverse();
        WaitOutcome::Mail { messages: self.messages, position }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::filter::tests::message;

    fn answer(collected: Collected) -> (Vec<i64>, i64) {
        match collected.into_outcome() {
            WaitOutcome::Mail { messages, position } => (messages.iter().map(|m| m.seq).collect(), position),
            WaitOutcome::Empty { position } => (vec![], position),
        }
    }

    #[test]
    fn answers_the_oldest_messages_after_a_cursor_and_continues_after_the_last() {
        let mut collected = Collected::new(5, 2, 10);
        for seq in 11..=15 {
            assert!(!collected.is_enough());
            collected.push_next(message(seq), true);
        }
        assert!(collected.is_enough());
        assert_eq!(answer(collected), (vec![12, 11], 12));
    }

    #[test]
    fn continues_after_the_last_scanned_message() {
        let mut collected = Collected::new(1, 20, 10);
        collected.push_next(message(11), true);
        collected.push_next(message(12), false);
        collected.advance_to(40);
        assert_eq!(collected.missing(), 19);
        assert_eq!(answer(collected), (vec![11], 12));
    }

    #[test]
    fn continues_after_the_end_of_the_stream_where_nothing_matches() {
        let mut collected = Collected::new(1, 20, 10);
        collected.push_next(message(12), false);
        collected.advance_to(40);
        assert_eq!(answer(collected), (vec![], 40));
    }

    #[test]
    fn answers_the_newest_messages_without_a_cursor() {
        let mut collected = Collected::new(1, 2, 0);
        collected.begin_backward_scan(Some(&message(9)), 30);
        for seq in [9, 8] {
            collected.push_older(message(seq));
        }
        collected.end_backward_scan();
        assert_eq!((collected.missing(), collected.is_enough()), (0, true));
        assert_eq!(answer(collected), (vec![9, 8], 9));
    }

    #[test]
    fn skips_no_message_that_arrives_while_waiting_without_a_cursor() {
        let mut collected = Collected::new(1, 1, 0);
        collected.begin_backward_scan(None, 30);
        collected.end_backward_scan();
        assert_eq!((collected.is_enough(), collected.reached()), (false, 30));
        for seq in [31, 35] {
            collected.push_next(message(seq), true);
        }
        assert_eq!(answer(collected), (vec![31], 31));
    }

    #[test]
    fn counts_older_messages_and_answers_the_newest_of_them() {
        let mut collected = Collected::new(5, 2, 0);
        collected.begin_backward_scan(Some(&message(4)), 30);
        for seq in [4, 3, 2, 1] {
            collected.push_older(message(seq));
        }
        collected.end_backward_scan();
        assert_eq!((collected.is_enough(), collected.missing()), (false, 1));
        collected.push_next(message(31), true);
        assert!(collected.is_enough());
        assert_eq!(answer(collected), (vec![4, 3], 4));
    }

    #[test]
    fn does_not_answer_messages_deleted_meanwhile() {
        let mut collected = Collected::new(3, 20, 0);
        collected.push_next(message(1), true);
        collected.push_next(message(2), true);
        collected.retain(&[message(2).id]);
        assert_eq!(collected.missing(), 19);
        collected.push_next(message(3), true);
        collected.clear();
        assert_eq!(answer(collected), (vec![], 3));
    }
}
