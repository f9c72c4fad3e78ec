//! What administrative commands print: lines and tables for people, JSON for machines.

use std::io::Write as _;

use serde_json::Value;

/// Prints one line.
pub fn line(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

/// Prints a JSON document over several lines.
pub fn json(value: &Value) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Prints rows under their heads, columns padded to their longest text.
pub fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for text in lines(heads, rows) {
        writeln!(out, "{text}")?;
    }
    Ok(())
}

fn lines<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let heads = heads.map(str::to_owned);
    let all: Vec<&[String; N]> = std::iter::once(&heads).chain(rows).collect();
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
    fn columns_are_as_wide_as_their_longest_text() {
        let rows = [["a".to_owned(), "1".to_owned()], ["bücher".to_owned(), String::new()]];
        assert_eq!(lines(["NAME", "N"], &rows), ["NAME    N", "a       1", "bücher"]);
    }

    #[test]
    fn times_are_as_in_the_interface() {}
}
