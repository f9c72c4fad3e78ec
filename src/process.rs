//! What a process needs besides its roles.

pub(crate) mod bus;
pub(crate) mod clock_sync;
pub(crate) mod open_files;
