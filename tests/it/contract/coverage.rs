//! Every documented response was seen by some test.

use std::collections::BTreeSet;

use tempmail_tests::contract::{operations, recorded};

#[test]
#[ignore = "reads what a whole run recorded: `tests/run it` runs it afterwards"]
fn every_documented_answer_was_seen() {
    let seen = recorded().expect("CONTRACT_SEEN names the directory of the records");
    let promised: BTreeSet<_> = operations()
        .iter()
        .flat_map(|operation| {
            operation.responses().map(|(status, code)| (operation.id.clone(), status, code))
        })
        .collect();
    let missing: Vec<String> =
        promised.difference(&seen).map(|(id, status, code)| format!("{id} {status} {code}")).collect();
    assert!(missing.is_empty(), "{} of {}:\n{}", missing.len(), promised.len(), missing.join("\n"));
}
