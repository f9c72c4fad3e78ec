//! Inbound SMTP: sessions, recipients, and the batcher that commits mail before `250`.

mod capacity;
mod connection;
mod delivery;
mod fair_permits;
mod ingest;
mod listener;
mod mail_rates;
mod memory;
mod metrics;
mod peer;
mod recipient;
mod shares;
mod smtp;
mod tls;

pub use ingest::Ingest;
