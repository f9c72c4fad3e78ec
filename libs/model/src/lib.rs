//! Pure types and rules: addresses, ids, tokens, passwords, cursors, webhooks, retention, limits, keys
//! and the clock. Nothing here does I/O, and only the clock reads the time.

pub mod address;
pub mod chance;
pub mod clock;
pub mod cursor;
pub mod document;
pub mod id;
pub mod key;
pub mod limits;
pub mod message;
pub mod network;
pub mod password;
pub mod retention;
pub mod retry_after;
pub mod role_prefix;
pub mod sealer;
pub mod surface;
pub mod timestamp;
pub mod token;
pub mod trace;
pub mod verification;
pub mod verify_token;
pub mod webhook;
