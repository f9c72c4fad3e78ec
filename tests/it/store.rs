//! What the schema keeps, and what it shares with the program: sums that are exact whatever happens, data that
//! is stored ahead, and rules that are said once in SQL and once in Rust.

mod large_mail;
mod rights;
mod rules;
mod usage;
mod words;

use tempmail_store::Store;
use tempmail_tests::App;

/// The store of an installation, over a connection of the test's own.
fn store(app: &App) -> Store {
    Store::connect(&app.database().url(), 2, "tempmail tests").unwrap()
}
