//! Inbound SMTP.

mod chunking;
mod commands;
mod data;
mod limits;
mod many_clients;
mod postgres_outage;
mod proxy_protocol;
mod quota;
mod recipients;
mod starttls;
