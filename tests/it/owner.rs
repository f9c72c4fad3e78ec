//! One mail to recipients with different owners: no copy reveals another, and each has its own retention.

mod created_mailbox;
mod isolation;
mod next_owner;
