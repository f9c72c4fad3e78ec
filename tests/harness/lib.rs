//! What the tests drive tempmail with: a real Postgres, the roles in process or the real
//! binary, and clients that speak SMTP and HTTP. No test reads the product's inside: what it
//! asserts is what a client sees, or what is left in the database.

pub mod app;
pub mod binary;
pub mod command;
pub mod contract;
pub mod corpus;
pub mod dns;
pub mod http;
pub mod log;
pub mod postgres;
pub mod proxy;
pub mod redis;
pub mod redis_proxy;
pub mod smtp;
pub mod tls;
pub mod wait;

pub use app::{App, Tenant};
pub use binary::Binary;
pub use command::Ended;
pub use dns::DnsWorld;
pub use http::Answer;
pub use redis::RedisServer;
pub use redis_proxy::RedisProxy;
pub use smtp::{Reply, SmtpClient, send_mail};
