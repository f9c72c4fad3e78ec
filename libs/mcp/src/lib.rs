//! The tools of the Model Context Protocol: make an address, wait for mail, get its code or link, list, read, delete. One
//! implementation over a [`Client`](tempmail_client::Client), for stdio and for `/mcp` of the API server.
//!
//! Whoever knows an address can send to it, and what reads the answers of these tools may obey what it reads. So:
//!
//! - a code is 4 to 12 of `A-Z a-z 0-9 -`, a link an absolute http(s) URL, and both are answered without the mail;
//! - everything else of a mail, its subject, names and file names included, is fenced (`fence`), without what nobody sees;
//! - nothing in a mail changes what a tool does, and what deletes is there only where it was allowed.
//!
//! A module imports only from those that stand above it in this list.
//!
//! | module | what it holds |
//! |---|---|
//! | `fence` | text of strangers between markers |
//! | `tool_error` | why a tool has no result |
//! | `arguments` | what the tools take, with the schemas |
//! | `catalogue` | the tools, with what they are to a client |
//! | `reading` | mail as a tool shows it |
//! | `tools` | what the tools do |
//! | `service` | the server of the protocol |
//! | `stateless` | its answers to requests over HTTP |

mod arguments;
mod catalogue;
mod fence;
mod reading;
mod service;
mod stateless;
mod tool_error;
mod tools;

pub use service::{McpService, serve_stdio};
pub use stateless::{REQUEST_MAX, StatelessResponse, answer, transport_error};
pub use tools::Deletion;
