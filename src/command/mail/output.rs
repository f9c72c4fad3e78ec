//! What `tempmail mail` prints.

use std::io::IsTerminal as _;

use serde::Serialize;
use tempmail_client::shown_text;

pub(super) use crate::command::administration::output::{line, table};

/// Prints an indented JSON document. In it control characters are escaped; those that hide text or change its order are
/// made visible on a terminal.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&shown(&serde_json::to_string_pretty(value)?))
}

/// Text of several lines from a mail: on a terminal with its control characters made visible, elsewhere as it is.
pub(super) fn shown(text: &str) -> String {
    if std::io::stdout().is_terminal() { shown_text::escaped_text(text) } else { text.to_owned() }
}

/// Prints names and values from a mail, a line each, with the values below each other.
pub(super) fn fields(fields: &[(&str, String)]) -> anyhow::Result<()> {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in fields {
        line(&format!("{name:width$}  {}", shown_text::escaped_line(value)))?;
    }
    Ok(())
}
