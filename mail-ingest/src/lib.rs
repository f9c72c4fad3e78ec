//! Inbound SMTP: sessions, recipients, and the batcher that commits mail before `250`.

mod capacity;
mod connection;
mod delivery;
mod ingest;
mod listener;
mod mail_rates;
mod memory;
mod metrics;
mod recipient;
mod smtp;
mod tls;

pub use ingest::Ingest;
