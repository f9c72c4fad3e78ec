//! Whether it is our own files that ran out.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// `ENFILE` and `EMFILE` of Linux: the system's files, and those of the process.
const EXHAUSTED: [i32; 2] = [23, 24];

/// Whether an operation failed since there was no file left for it.
pub(super) fn are_exhausted(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code))
}

/// Whether no file can be opened just now.
pub(super) fn is_none_left() -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_err_and(|error| are_exhausted(&error))
}
