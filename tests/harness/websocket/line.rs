//! The TCP stream under a client, which can be kept from sending.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A stream that passes on what is written while it is not mute.
#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    is_mute: bool,
}

impl Line {
    /// Not mute.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, is_mute: false }
    }

    /// From now on what is written goes nowhere.
    pub(super) fn mute(&mut self) {
        self.is_mute = true;
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_mute {
            return Poll::Ready(Ok(octets.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
