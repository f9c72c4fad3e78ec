//! The table of `docs/extraction.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::measure::{Measure, Pair};

const BEGIN: &str = "<!-- measured: begin -->\n";
const END: &str = "<!-- measured: end -->";

/// The document with another table.
pub fn with_table(document: &str, table: &str) -> String {
    let (before, rest) = document.split_once(BEGIN).expect("the document has the mark before the table");
    let (_, after) = rest.split_once(END).expect("the document has the mark after the table");
    format!("{before}{BEGIN}{table}{END}{after}")
}

/// The table: all, by language, by trap; precision and recall in percent.
pub fn table(made: &Measure, judged: &Measure) -> String {
    let mut text = String::new();
    heading(&mut text, "Half");
    for (name, measure) in [("made", made), ("judged", judged)] {
        row(&mut text, name, &measure.all);
    }
    for (name, measure) in [("judged", judged), ("made", made)] {
        section(&mut text, &format!("Language ({name})"), &measure.by_language);
        section(&mut text, &format!("Trap ({name})"), &measure.by_trap);
    }
    text
}

fn section(text: &mut String, name: &str, rows: &BTreeMap<String, Pair>) {
    let names: BTreeSet<&String> = rows.keys().collect();
    text.push('\n');
    heading(text, name);
    for name in names {
        row(text, name, &rows[name]);
    }
}

fn heading(text: &mut String, name: &str) {
    let _ = writeln!(
        text,
        "| {name} | Mails | Codes | Precision | Recall | Links | Precision | Recall |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    );
}

fn row(text: &mut String, name: &str, pair: &Pair) {
    let (codes, links) = (&pair.codes, &pair.links);
    let percent = |ratio: f64| format!("{:.1}", ratio * 100.0);
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {} | {} | {} | {} | {} |",
        pair.mails,
        codes.found + codes.missed,
        percent(codes.precision()),
        percent(codes.recall()),
        links.found + links.missed,
        percent(links.precision()),
        percent(links.recall())
    );
}
