//! Ports that `up` chooses: no other program gets them before their listeners do.

use std::io::ErrorKind;
use std::net::SocketAddr;

use anyhow::Context as _;
use socket2::Socket;
use tempmail_runtime::listener::bound_socket;

/// A port of this process that nothing listens on yet, until this is dropped.
///
/// Its socket is bound and does not listen: the system neither gives the port to whoever asks for any nor uses it for
/// connections. A listener takes it by its number, because both sockets set `SO_REUSEADDR` (socket(7)).
pub(super) struct ReservedPort {
    /// The address with the port.
    pub(super) address: SocketAddr,
    _socket: Socket,
}

impl ReservedPort {
    /// Reserves a free port of the host of `any`, whose port is 0.
    ///
    /// # Errors
    /// The host is not this machine, or no port is free.
    pub(super) fn choose(any: SocketAddr) -> anyhow::Result<Self> {
        let reserve = || -> std::io::Result<Self> {
            let socket = bound_socket(any)?;
            let address = socket.local_addr()?.as_socket().ok_or(ErrorKind::AddrNotAvailable)?;
            Ok(Self { address, _socket: socket })
        };
        reserve().with_context(|| format!("can't listen on {any}"))
    }
}

#[cfg(test)]
mod tests {
    use tempmail_runtime::listener::Listener;
    use tokio::net::{TcpSocket, TcpStream};

    use super::*;

    #[tokio::test]
    async fn keeps_the_port_from_others_until_a_listener_names_it() {
        let reserved = ReservedPort::choose(([127, 0, 0, 1], 0).into()).unwrap();
        assert_ne!(reserved.address.port(), 0);

        let other = TcpSocket::new_v4().unwrap().bind(reserved.address);
        assert_eq!(other.unwrap_err().kind(), ErrorKind::AddrInUse);

        let listener = Listener::bind(reserved.address).unwrap();
        drop(reserved);
        TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    }
}
