//! Inbound SMTP.

mod chunking;
mod commands;
mod data;
mod limits;
mod mail_rates;
mod many_clients;
mod memory_shares;
mod peer_fixture;
mod postgres_outage;
mod proxy_protocol;
mod quota;
mod recipients;
mod sessions;
mod size_classes;
mod starttls;
mod unknown_recipients;
