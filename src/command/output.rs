//! Output of commands: lines and tables for people, JSON for programs. Names of tenants, of their tokens, and much in mail
//! are text of strangers, so every command prints through here.

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;
use tempmail_client::shown_text::{escaped_json, escaped_line, escaped_text};

/// Prints one line. Characters that a terminal obeys, that hide text or that change its order are escaped.
pub(super) fn line(text: &str) -> anyhow::Result<()> {
    print(&escaped_line(text))
}

/// Prints text of several lines: on a terminal with the same characters escaped, elsewhere as it is.
pub(super) fn text(text: &str) -> anyhow::Result<()> {
    if std::io::stdout().is_terminal() { print(&escaped_text(text)) } else { print(text) }
}

/// Prints an indented JSON document. The same characters are escaped as in JSON, so that its values stay as they are.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&escaped_json(&serde_json::to_string_pretty(value)?))
}

/// Prints a table with a header row, a line for each row, escaped as [`line`] does; columns are as wide as their longest
/// cell.
pub(super) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for text in lines(header, rows) {
        writeln!(out, "{text}")?;
    }
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

fn lines<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let cells = |row: &[String; N]| row.each_ref().map(|cell| escaped_line(cell));
    let all: Vec<[String; N]> =
        std::iter::once(header.map(escaped_line)).chain(rows.iter().map(cells)).collect();
    let widths: [usize; N] =
        std::array::from_fn(|column| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    all.iter()
        .map(|row| {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_columns_to_their_longest_cell() {
        let rows = [["a".to_owned(), "1".to_owned()], ["bücher".to_owned(), String::new()]];
        assert_eq!(lines(["NAME", "N"], &rows), ["NAME    N", "a       1", "bücher"]);
    }

    #[test]
    fn keeps_a_row_in_its_line() {
        let rows = [["a\nb".to_owned(), "1".to_owned()]];
        assert_eq!(lines(["\u{202e}", "N"], &rows), ["\\u{202e}  N", "a\\nb      1"]);
    }
}
