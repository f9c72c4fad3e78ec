//! The real program: everything on one machine with one command.

mod durability;
mod lifecycle;
mod privacy;
