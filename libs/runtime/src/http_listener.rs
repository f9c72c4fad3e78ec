//! The sockets that HTTP is listened on: a client that says nothing costs the process neither a task nor an open file.

use std::io;
use std::net::SocketAddr;

use nix::libc;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SetStruct;

use crate::listener::{Listener, bound_socket};

/// Seconds after which a connection is accepted although its client has sent nothing. The operating system makes it a
/// number of segments that it sends again, which are three after 7 s, and four after 15 s.
const SILENCE: libc::c_int = 7;

/// Listens on an address. A connection is accepted once its client has sent something; the operating system keeps a
/// silent one for 7 s, and accepts at once what it can't keep.
///
/// # Errors
/// The address can't be listened on.
pub fn listen(address: SocketAddr) -> io::Result<Listener> {
    let socket = bound_socket(address)?;
    // A system without the option accepts silent connections at once.
    let _ = setsockopt(&socket, DeferAccept, &SILENCE);
    Listener::from_socket(socket)
}

/// `TCP_DEFER_ACCEPT` of tcp(7).
#[derive(Debug, Clone, Copy)]
struct DeferAccept;

nix::setsockopt_impl!(
    DeferAccept,
    libc::IPPROTO_TCP,
    libc::TCP_DEFER_ACCEPT,
    libc::c_int,
    SetStruct<'_, libc::c_int>
);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn accepts_who_says_something_before_who_came_earlier_and_is_silent() {
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let _silent = TcpStream::connect(address).await.unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"G").await.unwrap();

        let (mut accepted, peer) = listener.accept().await.unwrap();

        assert_eq!(peer, client.local_addr().unwrap());
        assert_eq!(accepted.read_u8().await.unwrap(), b'G');
    }
}
