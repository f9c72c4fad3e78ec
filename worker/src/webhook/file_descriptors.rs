//! Whether this process, or its system, is out of file descriptors.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// `ENFILE` and `EMFILE` of Linux: the limit of the system, and that of the process.
const EXHAUSTED: [i32; 2] = [23, 24];

/// No connection could be opened, for lack of a file descriptor. The receiver is not at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoFileDescriptor;

/// Whether an operation failed for lack of a file descriptor.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code))
}

/// Whether no file can be opened now.
pub(super) fn none_left() -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_err_and(|error| is_exhausted(&error))
}
