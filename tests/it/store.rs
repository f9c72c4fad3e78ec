//! What the schema keeps, and what it shares with the program: sums that are exact whatever happens, data that
//! is stored ahead, and rules that are said once in SQL and once in Rust.

mod columns;
mod grants;
mod large_mail;
mod rights;
mod rules;
mod sums;
mod tenant_share;
mod unknown_results;
mod usage;
mod verification_turns;

use jiff::Timestamp;
use tempmail_model::id::new_id;
use tempmail_store::{MailSummary, NewMail, NewMessage, RawData, Store};
use tempmail_tests::App;

/// The store of an installation, over a connection of the test's own.
fn store(app: &App) -> Store {
    Store::connect(&app.database().url(), 2, "tempmail tests").unwrap()
}

/// A mail with nothing in its summary.
fn mail(raw: RawData, recipient: NewMessage, now: Timestamp) -> NewMail {
    NewMail {
        id: new_id(now),
        raw,
        for_clause_offset: 0,
        sender: String::new(),
        summary: MailSummary::default(),
        recipients: vec![recipient],
    }
}
