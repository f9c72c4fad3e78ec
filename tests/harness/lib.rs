//! The test harness: a real Postgres, the roles in this process or the real binary, and SMTP and HTTP
//! clients. Tests assert on what a client sees, or on rows of the database, never on internals.

pub mod app;
pub mod binary;
pub mod command;
pub mod contract;
pub mod corpus;
pub mod dns;
pub mod fleet;
pub mod follower;
pub mod http;
pub mod kubernetes;
pub mod load;
pub mod log;
pub mod mailbox;
pub mod network;
pub mod port;
pub mod postgres;
mod process;
pub mod raw;
pub mod receiver;
pub mod redis;
pub mod redis_proxy;
pub mod rows;
pub mod smtp;
pub mod sse;
pub mod time;
pub mod tls;
pub mod wait;
pub mod websocket;

pub use app::{App, Tenant};
pub use binary::Binary;
pub use command::CommandOutput;
pub use dns::TestDns;
pub use fleet::Fleet;
pub use follower::{Feed, Follower};
pub use http::Response;
pub use kubernetes::{ApiProxy, Cluster, Installation};
pub use load::{LoadGenerator, OutgoingMail};
pub use network::FaultyNetwork;
pub use receiver::Receiver;
pub use redis::RedisServer;
pub use redis_proxy::RedisProxy;
pub use smtp::{Reply, SmtpClient, send_mail};
pub use sse::EventStream;
pub use websocket::WebSocket;
