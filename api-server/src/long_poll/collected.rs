//! What a long-poll has met so far, and what of it it answers with.

use tempmail_store::MessageRow;
use uuid::Uuid;

use super::Outcome;

/// Matching messages and positions. Without a cursor the newest `limit` that were there at
/// first are kept; from then on, as with a cursor, the oldest come first, so that a client
/// that follows skips nothing.
#[derive(Debug)]
pub(super) struct Collected {
    count: usize,
    limit: usize,
    /// Oldest first (newest first until [`turn`](Self::turn)).
    messages: Vec<MessageRow>,
    /// Matches that count and are not answered with, older than `messages`.
    older: usize,
    /// The last message scanned, or where the stream stood when there was none.
    scanned: i64,
    /// Everything up to here is scanned.
    reached: i64,
}

impl Collected {
    /// Nothing met yet; `since` is where a scan begins.
    pub(super) fn new(count: usize, limit: usize, since: i64) -> Self {
        Self { count, limit, messages: Vec::new(), older: 0, scanned: since, reached: since }
    }

    /// Whether as many as are waited for have arrived.
    pub(super) fn is_enough(&self) -> bool {
        self.older + self.messages.len() >= self.count
    }

    /// How many more matches are of use; never more than 50.
    pub(super) fn missing(&self) -> usize {
        self.count.max(self.limit).saturating_sub(self.older + self.messages.len())
    }

    /// Whether messages are kept.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// What is kept.
    pub(super) fn messages(&self) -> &[MessageRow] {
        &self.messages
    }

    /// Everything up to here is scanned.
    pub(super) fn reached(&self) -> i64 {
        self.reached
    }

    /// The first of the scans that go back: everything up to `position` is seen or older.
    pub(super) fn begin_newest(&mut self, newest: Option<&MessageRow>, position: i64) {
        self.scanned = newest.map_or(position, |message| message.seq);
        self.reached = position.max(self.scanned);
    }

    /// A match that is older than all before it.
    pub(super) fn push_older(&mut self, message: MessageRow) {
        self.messages.push(message);
    }

    /// The end of the scans that go back: from here on messages come oldest first.
    pub(super) fn turn(&mut self) {
        self.older = self.messages.len().saturating_sub(self.limit);
        self.messages.truncate(self.limit);
        self.messages.reverse();
    }

    /// The next message in the order of the stream; kept if it matches.
    pub(super) fn push_next(&mut self, message: MessageRow, matches: bool) {
        self.scanned = message.seq;
        self.reached = message.seq;
        if matches {
            self.messages.push(message);
        }
    }

    /// A scan saw everything up to `position`.
    pub(super) fn reach(&mut self, position: i64) {
        self.reached = self.reached.max(position);
    }

    /// The inbox has another owner now: what was met is not the caller's any more.
    pub(super) fn forget(&mut self) {
        self.messages.clear();
        self.older = 0;
    }

    /// Keeps only what is still there.
    pub(super) fn keep(&mut self, remaining: &[Uuid]) {
        self.messages.retain(|message| remaining.contains(&message.id));
    }

    /// The answer.
    pub(super) fn into_outcome(mut self) -> Outcome {
        let mut position = self.scanned;
        if self.messages.len() > self.limit {
            self.messages.truncate(self.limit);
            position = self.messages.last().map_or(position, |last| last.seq);
        }
        if self.messages.is_empty() {
            return Outcome::Nothing { position: self.reached };
        }
        self.messages.reverse();
        Outcome::Mail { messages: self.messages, position }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tempmail_model::message::OwnerKind;
    use tempmail_model::retention::RetentionClass;

    use super::*;

    pub(crate) fn message(seq: i64) -> MessageRow {
        MessageRow {
            id: Uuid::from_u128(seq.unsigned_abs().into()),
            seq,
            class: RetentionClass::FREE,
            mail: Uuid::nil(),
            owner_kind: OwnerKind::Shared,
            owner: Uuid::nil(),
            inbox: Uuid::nil(),
            tenant: None,
            address: String::new(),
            sender: String::new(),
            from_text: String::new(),
            from_email: String::new(),
            subject: String::new(),
            preview: String::new(),
            size: 1,
            single_recipient: true,
            is_read: false,
        }
    }

    fn answer(collected: Collected) -> (Vec<i64>, i64) {
        match collected.into_outcome() {
            Outcome::Mail { messages, position } => (messages.iter().map(|m| m.seq).collect(), position),
            Outcome::Nothing { position } => (vec![], position),
        }
    }

    #[test]
    fn after_a_cursor_the_oldest_come_and_the_cursor_stands_at_the_last_of_them() {
        let mut collected = Collected::new(5, 2, 10);
        for seq in 11..=15 {
            assert!(!collected.is_enough());
            collected.push_next(message(seq), true);
        }
        assert!(collected.is_enough());
        assert_eq!(answer(collected), (vec![12, 11], 12));
    }

    #[test]
    fn the_cursor_stands_at_the_last_message_scanned() {
        let mut collected = Collected::new(1, 20, 10);
        collected.push_next(message(11), true);
        collected.push_next(message(12), false);
        collected.reach(40);
        assert_eq!(collected.missing(), 19);
        assert_eq!(answer(collected), (vec![11], 12));
    }

    #[test]
    fn nothing_found_stands_where_the_stream_stood() {
        let mut collected = Collected::new(1, 20, 10);
        collected.push_next(message(12), false);
        collected.reach(40);
        assert_eq!(answer(collected), (vec![], 40));
    }

    #[test]
    fn without_a_cursor_the_newest_come() {
        let mut collected = Collected::new(1, 2, 0);
        collected.begin_newest(Some(&message(9)), 30);
        for seq in [9, 8] {
            collected.push_older(message(seq));
        }
        collected.turn();
        assert_eq!((collected.missing(), collected.is_enough()), (0, true));
        assert_eq!(answer(collected), (vec![9, 8], 9));
    }

    #[test]
    fn what_comes_while_waiting_without_a_cursor_is_not_skipped() {
        let mut collected = Collected::new(1, 1, 0);
        collected.begin_newest(None, 30);
        collected.turn();
        assert_eq!((collected.is_enough(), collected.reached()), (false, 30));
        for seq in [31, 35] {
            collected.push_next(message(seq), true);
        }
        assert_eq!(answer(collected), (vec![31], 31));
    }

    #[test]
    fn more_than_a_page_that_was_there_counts_and_is_cut_to_the_newest() {
        let mut collected = Collected::new(5, 2, 0);
        collected.begin_newest(Some(&message(4)), 30);
        for seq in [4, 3, 2, 1] {
            collected.push_older(message(seq));
        }
        collected.turn();
        assert_eq!((collected.is_enough(), collected.missing()), (false, 1));
        collected.push_next(message(31), true);
        assert!(collected.is_enough());
        assert_eq!(answer(collected), (vec![4, 3], 4));
    }

    #[test]
    fn what_is_gone_meanwhile_is_not_answered() {
        let mut collected = Collected::new(3, 20, 0);
        collected.push_next(message(1), true);
        collected.push_next(message(2), true);
        collected.keep(&[message(2).id]);
        assert_eq!(collected.missing(), 19);
        collected.push_next(message(3), true);
        collected.forget();
        assert_eq!(answer(collected), (vec![], 3));
    }
}
