//! Output of administrative commands: lines and tables for people, JSON for programs.

use std::io::Write as _;

use serde_json::Value;

/// Prints one line.
pub(in crate::command) fn line(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

/// Prints an indented JSON document.
pub(super) fn json(value: &Value) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Prints a table with a header row; columns are as wide as their longest cell.
pub(in crate::command) fn table<const N: usize>(
    header: [&str; N],
    rows: &[[String; N]],
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for text in lines(header, rows) {
        writeln!(out, "{text}")?;
    }
    Ok(())
}

fn lines<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let header = header.map(str::to_owned);
    let all: Vec<&[String; N]> = std::iter::once(&header).chain(rows).collect();
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
}
