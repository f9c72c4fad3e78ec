//! Ports for processes that are started, and started again.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports that nothing is given by chance: Linux takes those of outgoing connections, and of
/// listeners that do not care, from 32768 on. So one stays free while its process is away.
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// An address of loopback with a port that nobody else of this test process is given.
///
/// # Panics
/// There is none left.
pub fn free_port() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes side by side begin at different places.
    let start = std::process::id().wrapping_mul(7919);
    for _ in 0..COUNT {
        let place = start.wrapping_add(u32::from(NEXT.fetch_add(1, Ordering::Relaxed)));
        let offset = u16::try_from(place % u32::from(COUNT)).expect("it is below the count");
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, FIRST + offset)) {
            return listener.local_addr().expect("a listener has an address");
        }
    }
    panic!("loopback has no free port");
}
