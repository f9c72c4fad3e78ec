//! The sockets that clients connect to, of every protocol: dual-stack, and with peers whose addresses are canonical.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};

use nix::libc;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

/// Connections that wait to be accepted: when a process restarts, all of its clients reconnect at once.
/// The system may allow fewer (`net.core.somaxconn`).
const BACKLOG: i32 = 4_096;

/// A socket that listens.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Listens on an address.
    ///
    /// # Errors
    /// The address can't be listened on.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::from_socket(bound_socket(address)?)
    }

    /// Listens on a socket of [`bound_socket`].
    ///
    /// # Errors
    /// Another socket listens on its address.
    pub fn from_socket(socket: Socket) -> io::Result<Self> {
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into()).map(Self)
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The operating system does not return it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The next connection, and its peer. A peer of IPv4 has an address of IPv4, which a dual-stack socket maps to one
    /// of IPv6 (`::ffff:192.0.2.1`), so that limits, lists of networks and logs know it by one address.
    ///
    /// # Errors
    /// The process has no file left for it, or the client has gone.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.0.accept().await?;
        Ok((stream, SocketAddr::new(peer.ip().to_canonical(), peer.port())))
    }
}

/// A socket that is bound to an address and does not listen yet. An address of IPv6 is dual-stack: `[::]` is every
/// address of the machine, of IPv4 as well, and is `0.0.0.0` where the machine has no IPv6.
///
/// # Errors
/// The address is in use, or not one of this machine.
pub fn bound_socket(address: SocketAddr) -> io::Result<Socket> {
    match bind(address) {
        Err(error) if has_no_ipv6(&error) && address.is_ipv6() && address.ip().is_unspecified() => {
            bind((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        bound => bound,
    }
}

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Whether a machine without IPv6 says so: it knows no such sockets, or no such address.
fn has_no_ipv6(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAFNOSUPPORT) || error.kind() == ErrorKind::AddrNotAvailable
}

#[cfg(test)]
mod tests {
    use std::env::consts::ARCH;
    use std::net::{IpAddr, Ipv6Addr};
    use std::thread;

    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    use super::*;

    const EVERY_ADDRESS: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

    /// What the peer of a connection to `host` is called, at a listener on every address.
    async fn peer_of_client_at(host: IpAddr) -> (SocketAddr, SocketAddr) {
        let listener = Listener::bind((EVERY_ADDRESS, 0).into()).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect((host, port)).await.unwrap();
        (listener.accept().await.unwrap().1, client.local_addr().unwrap())
    }

    #[tokio::test]
    async fn accepts_both_families_at_one_address_and_names_each_peer_as_itself() {
        let (peer, client) = peer_of_client_at(Ipv4Addr::LOCALHOST.into()).await;
        assert_eq!(peer, client);
        assert!(peer.is_ipv4(), "{peer}");
        let (peer, client) = peer_of_client_at(Ipv6Addr::LOCALHOST.into()).await;
        assert_eq!(peer, client);
    }

    /// What is bound for an address in a thread that gets no socket of IPv6, as on a machine without it.
    fn bound_without_ipv6(address: SocketAddr) -> io::Result<SocketAddr> {
        let bind = move || {
            let (family, refused) = (libc::AF_INET6.cast_unsigned(), libc::EAFNOSUPPORT.cast_unsigned());
            let is_ipv6 =
                SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family.into()).unwrap();
            let rules = [(libc::SYS_socket, vec![SeccompRule::new(vec![is_ipv6]).unwrap()])];
            let (allow, refuse) = (SeccompAction::Allow, SeccompAction::Errno(refused));
            let filter = SeccompFilter::new(rules.into(), allow, refuse, ARCH.try_into().unwrap()).unwrap();
            seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
            Ok(bound_socket(address)?.local_addr()?.as_socket().unwrap())
        };
        thread::spawn(bind).join().unwrap()
    }

    #[test]
    fn listens_on_ipv4_where_the_machine_has_no_ipv6() {
        let bound = bound_without_ipv6((EVERY_ADDRESS, 0).into()).unwrap();
        assert_eq!(bound.ip(), Ipv4Addr::UNSPECIFIED);
        assert_ne!(bound.port(), 0);
        // An address that was named has no other in its place.
        bound_without_ipv6((Ipv6Addr::LOCALHOST, 0).into()).unwrap_err();
    }
}
