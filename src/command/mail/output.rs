//! What `tempmail mail` prints.

pub(super) use crate::command::administration::output::{json, line, table, text};

/// Prints names and values from a mail, a line each, with the values below each other.
pub(super) fn fields(fields: &[(&str, String)]) -> anyhow::Result<()> {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in fields {
        line(&format!("{name:width$}  {value}"))?;
    }
    Ok(())
}
