//! Inbound SMTP.

mod bounds;
mod chunking;
mod commands;
mod data;
mod postgres_away;
mod quota;
mod recipients;
mod starttls;
mod thousands;
