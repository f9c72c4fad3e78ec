//! Nothing is promised that no test has seen.

use std::collections::BTreeSet;

use tempmail_tests::contract::{operations, recorded};

#[test]
#[ignore = "looks at what a whole run of these tests recorded: `tests/run it` starts it then"]
fn every_documented_answer_was_seen() {
    let seen = recorded().expect("CONTRACT_SEEN names the directory of the records");
    let promised: BTreeSet<_> = operations()
        .iter()
        .flat_map(|operation| operation.answers().map(|(status, code)| (operation.id.clone(), status, code)))
        .collect();
    let missing: Vec<String> =
        promised.difference(&seen).map(|(id, status, code)| format!("{id} {status} {code}")).collect();
    assert!(missing.is_empty(), "{} of {}:\n{}", missing.len(), promised.len(), missing.join("\n"));
}
