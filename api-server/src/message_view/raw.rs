//! Raw data as a recipient gets it: `Return-Path:` in front, the `for` clause put into our
//! `Received:` where the mail had no other recipient; decompressed piece by piece.

use std::sync::Arc;

use tempmail_model::trace;
use tempmail_store::{MessageRow, RawHead, Store, StoreError};
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

/// Compressed octets that are read with the message: most mails, whole.
pub(crate) const START: i32 = 32 << 10;
/// Compressed octets that are fetched at once of the rest.
const FETCH: i32 = 128 << 10;
/// Octets of a piece.
const PIECE: usize = 64 << 10;

/// Why a stream of raw data broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum RawError {
    #[error("the store failed")]
    Store(#[from] StoreError),
    #[error("the message was deleted meanwhile")]
    Gone,
    #[error("the stored data can't be decompressed")]
    Damaged,
}

/// Reads the raw data of one message from its start to its end. Memory: one fetch, one piece
/// and the window of the decompressor.
pub(super) struct RawReader {
    store: Store,
    row: Arc<MessageRow>,
    stored_len: i64,
    fetched_to: i64,
    input: Vec<u8>,
    input_at: usize,
    decoder: Decoder<'static>,
    inserts: Inserts,
}

impl RawReader {
    /// Goes on from what was read with the message.
    pub(super) fn new(store: Store, row: Arc<MessageRow>, start: RawHead) -> Result<Self, StoreError> {
        let decoder = Decoder::new().map_err(|_| StoreError::Inconsistent {
            table: "raw",
            column: "data",
            id: row.mail,
        })?;
        let inserts = Inserts::new(&row, start.for_clause_offset);
        let fetched_to = i64::try_from(start.bytes.len()).unwrap_or(i64::MAX);
        let (stored_len, input) = (start.stored_len, start.bytes);
        Ok(Self { store, row, stored_len, fetched_to, input, input_at: 0, decoder, inserts })
    }

    /// The next piece, never empty; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, RawError> {
        loop {
            let piece = self.decompress()?;
            if let Some(piece) = self.inserts.pass(piece) {
                return Ok(Some(piece));
            }
            if self.input_at < self.input.len() {
                continue;
            }
            if self.fetched_to >= self.stored_len {
                return Ok(None);
            }
            self.fetch().await?;
        }
    }

    async fn fetch(&mut self) -> Result<(), RawError> {
        let fetched = self.store.raw_chunk(&self.row, self.fetched_to, FETCH).await?;
        let fetched = fetched.filter(|octets| !octets.is_empty()).ok_or(RawError::Gone)?;
        self.fetched_to += i64::try_from(fetched.len()).unwrap_or(i64::MAX);
        self.input = fetched;
        self.input_at = 0;
        Ok(())
    }

    /// What the decompressor gives for the input at hand, at most one piece.
    fn decompress(&mut self) -> Result<Vec<u8>, RawError> {
        let mut piece = Vec::with_capacity(PIECE);
        let mut input = InBuffer::around(&self.input[self.input_at..]);
        let mut output = OutBuffer::around(&mut piece);
        let run = self.decoder.run(&mut input, &mut output);
        self.input_at += input.pos();
        if run.is_err() {
            tracing::error!(mail.id = %self.row.mail, "raw data can't be decompressed");
            return Err(RawError::Damaged);
        }
        Ok(piece)
    }
}

/// What is put in front of and into the stored data.
struct Inserts {
    front: Option<String>,
    clause: Option<(usize, String)>,
    passed: usize,
}

impl Inserts {
    fn new(row: &MessageRow, for_clause_offset: i32) -> Self {
        let offset = usize::try_from(for_clause_offset).unwrap_or(0);
        Self {
            front: Some(trace::return_path(&row.sender)),
            clause: row.single_recipient.then(|| (offset, trace::for_clause(&row.address))),
            passed: 0,
        }
    }

    /// The stored piece with what belongs in front of or into it; `None` where that is nothing.
    fn pass(&mut self, piece: Vec<u8>) -> Option<Vec<u8>> {
        if piece.is_empty() {
            return None;
        }
        let from = self.passed;
        self.passed += piece.len();
        let clause_here = self.clause.as_ref().is_some_and(|(at, _)| *at < self.passed);
        if self.front.is_none() && !clause_here {
            return Some(piece);
        }
        let mut out = self.front.take().map(String::into_bytes).unwrap_or_default();
        if clause_here && let Some((at, clause)) = self.clause.take() {
            let (before, after) = piece.split_at(at - from);
            out.extend_from_slice(before);
            out.extend_from_slice(clause.as_bytes());
            out.extend_from_slice(after);
        } else {
            out.extend_from_slice(&piece);
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clause_is_inserted_wherever_pieces_end() {
        let stored = b"Received: by mx; date\r\nSubject: x\r\n\r\n";
        for sole in [false, true] {
            for step in 1..=stored.len() {
                let mut inserts = Inserts {
                    front: Some("Return-Path: <>\r\n".into()),
                    clause: sole.then(|| (15, " for <a@b.example>".into())),
                    passed: 0,
                };
                let pieces = stored.chunks(step).filter_map(|piece| inserts.pass(piece.to_vec()));
                let whole = String::from_utf8(pieces.flatten().collect()).unwrap();
                let clause = if sole { " for <a@b.example>" } else { "" };
                assert_eq!(
                    whole,
                    format!("Return-Path: <>\r\nReceived: by mx{clause}; date\r\nSubject: x\r\n\r\n"),
                    "{step}"
                );
            }
        }
    }
}
