//! Ports for processes that are restarted at the same address.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::sync::{Mutex, PoisonError};

/// Below the ephemeral ports of Linux, which start at 32768: a port stays free while its process is
/// stopped.
const FIRST: u16 = 10_000;
/// Ports of a block, and blocks.
const BLOCK: u16 = 100;
const BLOCKS: u16 = 220;

/// The block of this test process, of which the first ports are given out.
static CURRENT: Mutex<Option<Block>> = Mutex::new(None);

/// An address of loopback with a port that is given out once, and to no other test process while this one runs.
///
/// # Panics
/// No port is left.
pub fn free_port() -> SocketAddr {
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let port = match &mut *current {
            Some(block) => block.ports.next(),
            None => None,
        };
        let Some(port) = port else {
            *current = Some(Block::claim_next());
            continue;
        };
        // Programs that are no tests use ports, too.
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener.local_addr().expect("a listener has an address");
        }
    }
}

/// Ports that no other test process gives out.
#[derive(Debug)]
struct Block {
    ports: std::ops::Range<u16>,
}

impl Block {
    /// One that no test process has.
    fn claim_next() -> Self {
        (0..BLOCKS).find_map(Self::claim).expect("a block of ports is left")
    }

    /// Claims a block until this process ends, by a name that lives as long, in the network namespace of the ports;
    /// `None` if it is claimed.
    fn claim(number: u16) -> Option<Self> {
        let name = format!("tempmail-test-ports-{number}");
        let name = UnixAddress::from_abstract_name(name).expect("the name is short");
        let claim = UnixListener::bind_addr(&name).ok()?;
        // Ports of a block that is used up may be in use as long as this process is.
        std::mem::forget(claim);
        let first = FIRST + number * BLOCK;
        Some(Self { ports: first..first + BLOCK })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_block_is_claimed_once() {
        let block = Block::claim_next();
        let number = (block.ports.start - FIRST) / BLOCK;
        assert!(Block::claim(number).is_none());
    }

    #[test]
    fn gives_out_no_port_twice() {
        let ports: Vec<SocketAddr> = (0..2 * BLOCK).map(|_| free_port()).collect();
        let different: HashSet<&SocketAddr> = ports.iter().collect();
        assert_eq!(different.len(), ports.len());
        assert!(ports.iter().all(|port| (FIRST..FIRST + BLOCKS * BLOCK).contains(&port.port())));
    }
}
