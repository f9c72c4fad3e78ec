//! The tools of the Model Context Protocol: make an address, wait for mail, get its code or link, list, read, delete.
//! One implementation over a [`Client`](tempmail_client::Client), for stdio and for `/mcp` of the API server.
//!
//! Whoever knows an address can send to it, and what reads the answers of these tools may obey what it reads. So:
//!
//! - a code is 4 to 12 of `A-Z a-z 0-9 -`, a link an absolute http(s) URL, and both are answered without the mail;
//! - everything else of a mail, its subject, names and file names included, is fenced (`reading`), without what nobody sees;
//! - nothing in a mail changes what a tool does, and what deletes is there only where it was allowed.
//!
//! A module imports only from those that stand above it in this list.
//!
//! | module | what it holds |
//! |---|---|
//! | `reading` | mail as a tool shows it, text of strangers between markers |
//! | `arguments` | what the tools take, with the schemas, and why a tool has no result |
//! | `catalogue` | the tools, with what they are to a client |
//! | `tools` | what the tools do |
//! | `service` | the server of the protocol, and its answers to requests over HTTP |

mod arguments;
mod catalogue;
mod reading;
mod service;
mod tools;

pub use service::{McpService, REQUEST_MAX, StatelessResponse, answer, serve_stdio, transport_error};
pub use tools::Deletion;
