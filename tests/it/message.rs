//! Real-world mail: what arrives by SMTP is shown over HTTP as a conforming mail client would show it, and `/raw` returns
//! every byte.

mod attachment;
mod body;
mod bounds;
mod header;
mod reader;
mod readers;
