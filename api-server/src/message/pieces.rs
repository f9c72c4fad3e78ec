//! An answer in memory, in pieces: each is freed as soon as it is written, and the memory that the answer holds
//! shrinks with it.

use std::convert::Infallible;
use std::io;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;

use super::budget::RenderMemory;

/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// Collects an answer while it is made, within the memory that it holds.
pub(crate) struct PieceWriter {
    memory: RenderMemory,
    /// Bytes in use besides those of the answer.
    besides: usize,
    written: usize,
    pieces: Vec<Bytes>,
    last: Vec<u8>,
}

/// A whole answer.
pub(crate) struct Pieces {
    memory: RenderMemory,
    len: usize,
    pieces: Vec<Bytes>,
}

impl PieceWriter {
    /// While `besides` bytes of the memory are in use for something else.
    pub(super) fn new(memory: RenderMemory, besides: usize) -> Self {
        Self { memory, besides, written: 0, pieces: Vec::new(), last: Vec::new() }
    }

    /// Counts `bytes` more as in use for something else.
    ///
    /// # Errors
    /// There is not so much memory.
    pub(crate) fn set_aside(&mut self, bytes: usize) -> io::Result<()> {
        self.besides += bytes;
        self.require(0)
    }

    /// The answer. What was used besides it has to be freed by now.
    pub(super) fn finish(mut self) -> Pieces {
        // Without the rest of its capacity.
        let last = Bytes::from(self.last.into_boxed_slice());
        self.pieces.extend((!last.is_empty()).then_some(last));
        self.memory.shrink_to(self.written);
        Pieces { memory: self.memory, len: self.written, pieces: self.pieces }
    }

    fn require(&mut self, more: usize) -> io::Result<()> {
        if self.memory.try_grow_to(self.besides + self.written + more) {
            Ok(())
        } else {
            Err(io::ErrorKind::OutOfMemory.into())
        }
    }
}

impl io::Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.is_empty() {
            self.require(PIECE)?;
        }
        let taken = bytes.len().min(PIECE - self.last.len());
        self.last.extend_from_slice(&bytes[..taken]);
        self.written += taken;
        if self.last.len() == PIECE {
            self.pieces.push(std::mem::take(&mut self.last).into());
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pieces {
    /// The whole answer, with its length.
    pub(crate) fn into_response(self, content_type: &str) -> Response {
        let content_type = HeaderValue::try_from(content_type)
            .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
        let length = self.len;
        let mut response = Response::new(self.into_body());
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        response
    }

    /// A body that releases the memory of each piece when the next one is asked for; one that is a single piece
    /// releases it at once.
    pub(crate) fn into_body(mut self) -> Body {
        if self.pieces.len() <= 1 {
            return self.pieces.pop().map_or_else(Body::empty, Body::from);
        }
        let Self { memory, len, pieces } = self;
        let pieces =
            stream::unfold((pieces.into_iter(), len, memory), |(mut pieces, left, mut memory)| async move {
                memory.shrink_to(left);
                let piece = pieces.next()?;
                let left = left - piece.len();
                Some((Ok::<_, Infallible>(piece), (pieces, left, memory)))
            });
        Body::from_stream(pieces)
    }
}
