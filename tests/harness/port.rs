//! Ports for processes that are restarted at the same address.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ephemeral ports of Linux, which start at 32768: a port stays free while its process is
/// stopped.
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// An address of loopback with a port that is given out once in this test process.
///
/// # Panics
/// No port is left.
pub fn free_port() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Concurrent test processes start at different offsets.
    let start = std::process::id().wrapping_mul(7919);
    for _ in 0..COUNT {
        let number = start.wrapping_add(u32::from(NEXT.fetch_add(1, Ordering::Relaxed)));
        let offset = u16::try_from(number % u32::from(COUNT)).expect("it is below the count");
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, FIRST + offset)) {
            return listener.local_addr().expect("a listener has an address");
        }
    }
    panic!("loopback has no free port");
}
