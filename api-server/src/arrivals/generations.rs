//! The generations of the stream, as this process knows them.
//!
//! A position is kept with the generation in which it was read. Where another one began since, mail may have other
//! positions than before, and [`Generations`] says after which one it is met again: some of it twice, rather than
//! never.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use tempmail_model::cursor::Cursor;
use tempmail_store::Generation;
use uuid::Uuid;

/// A generation as the positions of this process name it: a number that grows by each one that began meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GenerationNumber(u32);

/// A position of the stream, as this process met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The generation that was current then.
    pub(crate) generation: GenerationNumber,
    /// Everything up to it was scanned.
    pub(crate) seq: i64,
}

/// The generations that this process knows.
#[derive(Debug)]
pub(crate) struct Generations(RwLock<KnownGenerations>);

#[derive(Debug)]
struct KnownGenerations {
    /// Those that were current while this process ran, by their number.
    seen: Vec<Uuid>,
    /// Those of the database, oldest first. Where it was restored, some that were seen are missing.
    stored: Vec<Generation>,
}

impl Generations {
    /// Those of the database, oldest first; the last is the current one.
    pub(crate) fn new(stored: Vec<Generation>) -> Self {
        let seen = vec![current_of(&stored)];
        Self(RwLock::new(KnownGenerations { seen, stored }))
    }

    /// Replaces them by what the database has now.
    pub(super) fn replace(&self, stored: Vec<Generation>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.seen.push(current_of(&stored));
        known.stored = stored;
    }

    /// The id of the current one.
    pub(super) fn current_id(&self) -> Uuid {
        let known = self.read();
        known.id(known.current())
    }

    /// The current one.
    pub(crate) fn current(&self) -> GenerationNumber {
        self.read().current()
    }

    /// The position before all mail.
    pub(crate) fn oldest(&self) -> Position {
        Position { generation: self.current(), seq: 0 }
    }

    /// Whether the generation `number` has this id.
    pub(crate) fn is(&self, number: GenerationNumber, id: Uuid) -> bool {
        self.id(number) == id
    }

    /// The id of one, for a cursor.
    pub(crate) fn id(&self, number: GenerationNumber) -> Uuid {
        self.read().id(number)
    }

    /// The position after which a client goes on that has a cursor.
    pub(crate) fn resume(&self, cursor: Cursor) -> Position {
        self.read().resume(cursor)
    }

    /// The position after which to go on in place of this one; `None` where its generation still is the current one.
    pub(crate) fn renew(&self, position: Position) -> Option<Position> {
        let known = self.read();
        let cursor = Cursor { generation: known.id(position.generation), seq: position.seq };
        (position.generation != known.current()).then(|| known.resume(cursor))
    }

    fn read(&self) -> RwLockReadGuard<'_, KnownGenerations> {
        // Both lists are valid after each change.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownGenerations {
    fn current(&self) -> GenerationNumber {
        GenerationNumber(u32::try_from(self.seen.len() - 1).unwrap_or(u32::MAX))
    }

    fn id(&self, number: GenerationNumber) -> Uuid {
        usize::try_from(number.0).ok().and_then(|at| self.seen.get(at)).copied().unwrap_or_default()
    }

    /// The position after which everything is new to a client with this cursor. That of a generation which the database
    /// does not know is before all mail.
    fn resume(&self, cursor: Cursor) -> Position {
        let at = self.stored.iter().position(|generation| generation.id == cursor.generation);
        let later = |at: usize| self.stored.iter().skip(at + 1).map(|later| later.base);
        let seq = at.map_or(0, |at| later(at).fold(cursor.seq, i64::min));
        Position { generation: self.current(), seq }
    }
}

fn current_of(stored: &[Generation]) -> Uuid {
    stored.last().map_or_else(Uuid::nil, |current| current.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(id: u128, base: i64) -> Generation {
        Generation { id: Uuid::from_u128(id), base }
    }

    fn cursor(id: u128, seq: i64) -> Cursor {
        Cursor { generation: Uuid::from_u128(id), seq }
    }

    #[test]
    fn resumes_at_the_lowest_base_of_later_generations() {
        let generations = Generations::new(vec![generation(1, 0), generation(2, 100), generation(3, 80)]);
        let resume = |cursor| generations.resume(cursor).seq;
        for (of, expected) in [
            (cursor(1, 50), 50),
            (cursor(1, 90), 80),
            (cursor(1, 500), 80),
            (cursor(2, 90), 80),
            (cursor(3, 500), 500),
            (cursor(9, 500), 0),
        ] {
            assert_eq!(resume(of), expected, "{of:?}");
        }
    }

    #[test]
    fn moves_positions_to_a_generation_that_began_meanwhile() {
        let generations = Generations::new(vec![generation(1, 0)]);
        let position = |generation, seq| Position { generation, seq };
        let first = generations.current();
        assert_eq!(generations.renew(position(first, 110)), None);
        generations.replace(vec![generation(1, 0), generation(2, 100)]);
        let second = generations.current();
        assert_eq!(generations.renew(position(first, 110)), Some(position(second, 100)));
        assert_eq!(generations.renew(position(first, 95)), Some(position(second, 95)));
        assert_eq!((generations.id(first), generations.id(second)), (Uuid::from_u128(1), Uuid::from_u128(2)));
        // Restored to a moment before the second one began.
        generations.replace(vec![generation(1, 0), generation(3, 60)]);
        let third = generations.current();
        assert_eq!(
            generations.renew(position(second, 105)),
            Some(position(third, 0)),
            "it is not known any more"
        );
        assert_eq!(generations.renew(position(first, 70)), Some(position(third, 60)));
    }
}
