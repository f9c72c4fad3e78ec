//! Precision and recall on the corpus, by language and by trap.
//!
//! `UPDATE=1` rewrites the table of `docs/extraction.md`; `VERBOSE=1` prints the evidence of mistakes.

mod case;
mod measure;
mod report;

use std::path::Path;

use case::{Half, cases};
use measure::Measure;

/// The least precision and recall of a half.
struct Floor {
    codes: (f64, f64),
    links: (f64, f64),
}

/// What the half that extraction is made with reaches.
const MADE: Floor = Floor { codes: (0.995, 0.99), links: (0.995, 0.99) };

/// The targets, on the half that it is judged by.
const JUDGED: Floor = Floor { codes: (0.99, 0.97), links: (0.99, 0.97) };

fn measure(half: Half) -> Measure {
    let mut measure = Measure::default();
    for case in cases(half) {
        measure.add_case(&case);
    }
    measure
}

#[expect(clippy::print_stdout, reason = "the mistakes and the figures are for who reads them")]
fn reaches_its_floor(half: Half) {
    let measure = measure(half);
    // Whoever makes the rules looks at the mistakes of the half they are made with, and of the other at figures only.
    for mistake in measure.mistakes.iter().filter(|_| half == Half::Made) {
        println!("{mistake}");
    }
    println!("{half:?}: {}", measure.summary());
    assert!(measure.mails > 0, "the half has no mail");
    let floor = match half {
        Half::Made => MADE,
        Half::Judged => JUDGED,
    };
    for (what, tally, (precision, recall)) in
        [("codes", &measure.all.codes, floor.codes), ("links", &measure.all.links, floor.links)]
    {
        assert!(tally.precision() >= precision, "precision of {what}: {:.4}", tally.precision());
        assert!(tally.recall() >= recall, "recall of {what}: {:.4}", tally.recall());
    }
}

#[test]
fn finds_codes_and_links_of_the_half_that_it_was_made_with() {
    reaches_its_floor(Half::Made);
}

#[test]
fn finds_codes_and_links_of_the_half_that_it_is_judged_by() {
    reaches_its_floor(Half::Judged);
}

#[test]
fn the_made_half_is_large_and_half_of_it_has_no_code() {
    let measure = measure(Half::Made);
    assert!(measure.mails >= 1_200, "{} mails", measure.mails);
    let without = measure.mails - measure.mails_with_code;
    assert!(without * 2 >= measure.mails, "{without} of {} mails have no code", measure.mails);
    assert!(measure.by_language.len() >= 25, "{} languages", measure.by_language.len());
}

#[test]
fn the_documented_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/extraction.md");
    let document = std::fs::read_to_string(&path).expect("the document is there");
    let table = report::table(&measure(Half::Made), &measure(Half::Judged));
    let updated = report::with_table(&document, &table);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, updated).expect("the document can be written");
    } else {
        assert!(document == updated, "run the tests with UPDATE=1 to update the table of docs/extraction.md");
    }
}
