//! Access ends at every process: subscribers are disconnected within 5 s, whatever revoked their access, with or
//! without Redis; and mail of a new owner never reaches a former one.

mod background_mail;
mod cause;
mod fixture;
mod forged_hint;
mod held_mail;
pub mod matrix;
mod ownership_change;
mod subscriber;
