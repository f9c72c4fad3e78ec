//! Raw data as its recipient receives it: `Return-Path:` is prepended, and the `for` clause is inserted
//! into our `Received:` where the mail had no other recipient. Decompressed piece by piece.

use std::sync::Arc;

use tempmail_model::trace;
use tempmail_store::{MessageRow, RawHead, Store, StoreError};
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

/// Compressed bytes that are read with the row: most mails fit.
pub(crate) const INITIAL_CHUNK: i32 = 32 << 10;
/// Compressed bytes of each further chunk.
const CHUNK: i32 = 128 << 10;
/// Decompressed bytes of a piece.
const PIECE: usize = 64 << 10;

/// Why raw data can't be read to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum RawError {
    #[error("the store failed")]
    Store(#[from] StoreError),
    #[error("the message was deleted")]
    Deleted,
    #[error("the stored data can't be decompressed")]
    Corrupt,
}

/// Reads the raw data of one message. Holds one chunk, one piece and the window of the decompressor.
pub(super) struct RawReader {
    store: Store,
    row: Arc<MessageRow>,
    stored_len: i64,
    fetched_to: i64,
    input: Vec<u8>,
    input_at: usize,
    decoder: Decoder<'static>,
    trace: TraceFields,
}

impl RawReader {
    /// Continues after the chunk that was read with the row.
    pub(super) fn new(store: Store, row: Arc<MessageRow>, start: RawHead) -> Result<Self, StoreError> {
        let decoder = Decoder::new().map_err(|_| StoreError::Inconsistent {
            table: "raw",
            column: "data",
            id: row.mail,
        })?;
        let trace = TraceFields::new(&row, start.for_clause_offset);
        let fetched_to = i64::try_from(start.bytes.len()).unwrap_or(i64::MAX);
        let (stored_len, input) = (start.stored_len, start.bytes);
        Ok(Self { store, row, stored_len, fetched_to, input, input_at: 0, decoder, trace })
    }

    /// The next piece, never empty; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, RawError> {
        loop {
            let piece = self.decompress()?;
            if let Some(piece) = self.trace.insert(piece) {
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
        let fetched = self.store.raw_chunk(&self.row, self.fetched_to, CHUNK).await?;
        let fetched = fetched.filter(|chunk| !chunk.is_empty()).ok_or(RawError::Deleted)?;
        self.fetched_to += i64::try_from(fetched.len()).unwrap_or(i64::MAX);
        self.input = fetched;
        self.input_at = 0;
        Ok(())
    }

    /// Decompresses the current input, up to one piece.
    fn decompress(&mut self) -> Result<Vec<u8>, RawError> {
        let mut piece = Vec::with_capacity(PIECE);
        let mut input = InBuffer::around(&self.input[self.input_at..]);
        let mut output = OutBuffer::around(&mut piece);
        let run = self.decoder.run(&mut input, &mut output);
        self.input_at += input.pos();
        if run.is_err() {
            tracing::error!(mail.id = %self.row.mail, "raw data can't be decompressed");
            return Err(RawError::Corrupt);
        }
        Ok(piece)
    }
}

/// The trace fields that are added to the stored data.
struct TraceFields {
    return_path: Option<String>,
    /// Offset and text.
    for_clause: Option<(usize, String)>,
    /// Bytes of stored data so far.
    position: usize,
}

impl TraceFields {
    fn new(row: &MessageRow, for_clause_offset: i32) -> Self {
        let offset = usize::try_from(for_clause_offset).unwrap_or(0);
        Self {
            return_path: Some(trace::return_path(&row.sender)),
            for_clause: row.single_recipient.then(|| (offset, trace::for_clause(&row.address))),
            position: 0,
        }
    }

    /// Adds to a stored piece what belongs in front of or into it; `None` where the piece is empty.
    fn insert(&mut self, piece: Vec<u8>) -> Option<Vec<u8>> {
        if piece.is_empty() {
            return None;
        }
        let start = self.position;
        self.position += piece.len();
        let has_clause = self.for_clause.as_ref().is_some_and(|(offset, _)| *offset < self.position);
        if self.return_path.is_none() && !has_clause {
            return Some(piece);
        }
        let mut extended = self.return_path.take().map(String::into_bytes).unwrap_or_default();
        if has_clause && let Some((offset, clause)) = self.for_clause.take() {
            let (before, after) = piece.split_at(offset - start);
            extended.extend_from_slice(before);
            extended.extend_from_slice(clause.as_bytes());
            extended.extend_from_slice(after);
        } else {
            extended.extend_from_slice(&piece);
        }
        Some(extended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_trace_fields_wherever_pieces_end() {
        let stored = b"Received: by mx; date\r\nSubject: x\r\n\r\n";
        for single_recipient in [false, true] {
            for step in 1..=stored.len() {
                let mut trace = TraceFields {
                    return_path: Some("Return-Path: <>\r\n".into()),
                    for_clause: single_recipient.then(|| (15, " for <a@b.example>".into())),
                    position: 0,
                };
                let pieces = stored.chunks(step).filter_map(|piece| trace.insert(piece.to_vec()));
                let whole = String::from_utf8(pieces.flatten().collect()).unwrap();
                let clause = if single_recipient { " for <a@b.example>" } else { "" };
                assert_eq!(
                    whole,
                    format!("Return-Path: <>\r\nReceived: by mx{clause}; date\r\nSubject: x\r\n\r\n"),
                    "{step}"
                );
            }
        }
    }
}
