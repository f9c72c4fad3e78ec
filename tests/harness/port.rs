//! Ports for processes that are restarted at the same address.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::sync::{Mutex, PoisonError};

/// Below the ephemeral ports of Linux, which start at 32768: a port stays free while its process is
/// stopped.
const FIRST: u16 = 10_000;
/// Ports of a block, and blocks.
const BLOCK: u16 = 100;
const BLOCKS: u16 = 220;

/// Ports of this test process that are not given out yet.
static LEFT: Mutex<Range<u16>> = Mutex::new(0..0);

/// An address of loopback with a port that is given out once, and to no other test process while this one runs.
///
/// # Panics
/// No port is left.
pub fn free_port() -> SocketAddr {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Some(port) = left.next() else {
            *left = (0..BLOCKS).find_map(claim).expect("a block of ports is left");
            continue;
        };
        // Programs that are no tests use ports, too.
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener.local_addr().expect("a listener has an address");
        }
    }
}

/// The ports of a block, which are this process's until it ends: they are claimed by a name that lives as long, in the
/// network namespace of the ports. `None` if a test process has claimed them.
fn claim(block: u16) -> Option<Range<u16>> {
    let name = format!("tempmail-test-ports-{block}");
    let name = UnixAddress::from_abstract_name(name).expect("the name is short");
    let claim = UnixListener::bind_addr(&name).ok()?;
    // Ports of a block that is used up may be in use as long as this process is.
    std::mem::forget(claim);
    let first = FIRST + block * BLOCK;
    Some(first..first + BLOCK)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_block_is_claimed_once() {
        let block = (0..BLOCKS).find(|&block| claim(block).is_some()).expect("a block is left");
        assert!(claim(block).is_none());
    }

    #[test]
    fn gives_out_no_port_twice() {
        let ports: Vec<SocketAddr> = (0..2 * BLOCK).map(|_| free_port()).collect();
        let different: HashSet<&SocketAddr> = ports.iter().collect();
        assert_eq!(different.len(), ports.len());
        assert!(ports.iter().all(|port| (FIRST..FIRST + BLOCKS * BLOCK).contains(&port.port())));
    }
}
