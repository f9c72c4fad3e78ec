//! One mail, several owners: no copy tells of another, and each has its own life.

mod handed_on;
mod isolation;
mod mailbox_in_the_flow;
