//! The messages that a long-poll has collected so far, and its answer.

use tempmail_store::MessageRow;
use uuid::Uuid;

/// Matching messages. Without a cursor, the newest `limit` of the messages that existed at first are kept. From then on, as
/// with a cursor, the oldest come first, so that a client that continues from the answer's cursor skips nothing.
#[derive(Debug)]
pub(super) struct Collected {
    count: usize,
    limit: usize,
    /// Oldest first; newest first while those that existed at first are collected.
    messages: Vec<MessageRow>,
    is_backward: bool,
    /// Matches that count but are not in the answer, older than `messages`.
    older: usize,
    /// Position of the last message that was considered.
    considered: i64,
}

/// The mail of an answer.
#[derive(Debug)]
pub(crate) struct CollectedMail {
    /// Newest first; at least one.
    pub(crate) messages: Vec<MessageRow>,
    /// Where to continue.
    pub(crate) position: i64,
}

impl Collected {
    /// Nothing yet: waits for `count` messages, and keeps `limit`.
    pub(super) fn new(count: usize, limit: usize) -> Self {
        Self { count, limit, messages: Vec::new(), is_backward: false, older: 0, considered: 0 }
    }

    /// Drops everything.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::new(self.count, self.limit);
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

    /// Adds matches that are older than all before them, the newest first, from among messages up to position `highest`.
    pub(super) fn push_older<'a>(
        &mut self,
        matches: impl Iterator<Item = &'a MessageRow>,
        highest: Option<i64>,
    ) {
        self.is_backward = true;
        self.considered = self.considered.max(highest.unwrap_or(0));
        let missing = self.missing();
        self.messages.extend(matches.take(missing).cloned());
    }

    /// Adds matches in the order of the stream, from among messages up to position `highest`. Returns the position of the
    /// last one that it took, where it takes no more.
    pub(super) fn push_next<'a>(
        &mut self,
        matches: impl Iterator<Item = &'a MessageRow>,
        highest: Option<i64>,
    ) -> Option<i64> {
        self.end_backward();
        for message in matches {
            if self.missing() == 0 {
                return Some(self.considered);
            }
            self.considered = message.seq;
            self.messages.push(message.clone());
        }
        if self.missing() == 0 {
            return Some(self.considered);
        }
        self.considered = self.considered.max(highest.unwrap_or(0));
        None
    }

    /// Keeps only the messages with these ids.
    pub(super) fn retain(&mut self, remaining: &[Uuid]) {
        self.messages.retain(|message| remaining.contains(&message.id));
    }

    /// The answer; `None` without mail.
    pub(super) fn into_mail(mut self) -> Option<CollectedMail> {
        self.end_backward();
        let mut position = self.considered;
        if self.messages.len() > self.limit {
            self.messages.truncate(self.limit);
            position = self.messages.last().map_or(position, |last| last.seq);
        }
        self.messages.reverse();
        (!self.messages.is_empty()).then_some(CollectedMail { messages: self.messages, position })
    }

    fn end_backward(&mut self) {
        if std::mem::take(&mut self.is_backward) {
            self.older = self.messages.len().saturating_sub(self.limit);
            self.messages.truncate(self.limit);
            self.messages.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::filter::tests::message;

    fn messages(seqs: &[i64]) -> Vec<MessageRow> {
        seqs.iter().copied().map(message).collect()
    }

    fn next(collected: &mut Collected, seqs: &[i64], highest: i64) -> Option<i64> {
        collected.push_next(messages(seqs).iter(), Some(highest))
    }

    fn older(collected: &mut Collected, seqs: &[i64], highest: Option<i64>) {
        collected.push_older(messages(seqs).iter(), highest);
    }

    fn answer(collected: Collected) -> Option<(Vec<i64>, i64)> {
        let CollectedMail { messages, position } = collected.into_mail()?;
        Some((messages.iter().map(|message| message.seq).collect(), position))
    }

    #[test]
    fn answers_the_oldest_messages_after_a_cursor_and_continues_after_the_last() {
        let mut collected = Collected::new(5, 2);
        for seq in 11..=15 {
            assert!(!collected.is_enough());
            next(&mut collected, &[seq], seq);
        }
        assert!(collected.is_enough());
        assert_eq!(answer(collected), Some((vec![12, 11], 12)));
    }

    #[test]
    fn continues_after_the_last_message_that_was_considered() {
        let mut collected = Collected::new(1, 20);
        assert_eq!(next(&mut collected, &[11], 12), None);
        assert_eq!(collected.missing(), 19);
        assert_eq!(answer(collected), Some((vec![11], 12)));
    }

    #[test]
    fn continues_after_the_last_message_that_fits() {
        let mut collected = Collected::new(1, 2);
        assert_eq!(next(&mut collected, &[11, 13, 15], 16), Some(13));
        assert_eq!(answer(collected), Some((vec![13, 11], 13)));
    }

    #[test]
    fn has_no_answer_where_nothing_matches() {
        let mut collected = Collected::new(1, 20);
        next(&mut collected, &[], 12);
        assert_eq!(answer(collected), None);
    }

    #[test]
    fn answers_the_newest_messages_without_a_cursor() {
        let mut collected = Collected::new(1, 2);
        older(&mut collected, &[9, 8, 7], Some(10));
        assert_eq!((collected.missing(), collected.is_enough()), (0, true));
        assert_eq!(answer(collected), Some((vec![9, 8], 10)));
    }

    #[test]
    fn skips_no_message_that_arrives_while_waiting_without_a_cursor() {
        let mut collected = Collected::new(1, 1);
        older(&mut collected, &[], None);
        assert!(!collected.is_enough());
        next(&mut collected, &[31, 35], 35);
        assert_eq!(answer(collected), Some((vec![31], 31)));
    }

    #[test]
    fn counts_older_messages_and_answers_the_newest_of_them() {
        let mut collected = Collected::new(5, 2);
        older(&mut collected, &[4, 3, 2, 1], Some(4));
        assert_eq!((collected.is_enough(), collected.missing()), (false, 1));
        next(&mut collected, &[31], 31);
        assert!(collected.is_enough());
        assert_eq!(answer(collected), Some((vec![4, 3], 4)));
    }

    #[test]
    fn does_not_answer_messages_deleted_meanwhile() {
        let mut collected = Collected::new(3, 20);
        next(&mut collected, &[1, 2], 2);
        collected.retain(&[message(2).id]);
        assert_eq!(collected.missing(), 19);
        next(&mut collected, &[3], 3);
        assert_eq!(answer(collected), Some((vec![3, 2], 3)));
    }
}
