//! Mail of the real world: what arrives by SMTP is shown over HTTP as an RFC-conform mail
//! client would show it, and `/raw` gives every octet back.

mod attachment;
mod body;
mod bounds;
mod header;
mod shown;
mod structure;
