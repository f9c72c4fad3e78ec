//! Every metric is described: by a `# HELP` line, and in `docs/operations.md`.

use std::collections::BTreeSet;

use tempmail_runtime::telemetry::description::{COUNTERS, GAUGES, HISTOGRAMS};

use super::{root, source_files};

/// Folders of the crates that have metrics.
const FOLDERS: [&str; 6] = ["api-server/src", "libs", "mail-ingest/src", "operator/src", "src", "worker/src"];
/// The macros that name metrics, and the metrics that are described as theirs.
const MACROS: [(&str, &[(&str, &str)]); 3] =
    [("counter!(", COUNTERS), ("gauge!(", GAUGES), ("histogram!(", HISTOGRAMS)];
/// Prefixes of the names; others are of libraries that every operator of Kubernetes has.
const PREFIXES: [&str; 3] = ["tempmail_", "workqueue_", "rest_client_"];

fn described() -> BTreeSet<&'static str> {
    let names = MACROS.into_iter().flat_map(|(_, metrics)| metrics).map(|&(name, _)| name);
    names.collect()
}

/// The metrics that the first column of the table in `docs/operations.md` names, without their labels.
fn documented(document: &str) -> BTreeSet<&str> {
    let (_, after) = document.split_once("\n## Metrics\n").expect("the heading is there");
    let rows = after.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| {
        let column = row.split('|').nth(1).expect("a row has columns");
        column.split('`').skip(1).step_by(2)
    });
    names.map(|name| name.split('{').next().expect("a name comes first")).collect()
}

#[test]
fn every_metric_has_a_help_line_and_a_row_in_the_documentation() {
    let document = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let (documented, described) = (documented(&document), described());
    assert!(described.len() > 60, "the tables are there");
    let missing: Vec<_> = described.symmetric_difference(&documented).collect();
    assert!(missing.is_empty(), "not in docs/operations.md, or without a `# HELP` line: {missing:#?}");
    for (_, metrics) in MACROS {
        for (name, text) in metrics {
            assert!(PREFIXES.iter().any(|prefix| name.starts_with(prefix)), "{name}");
            assert!(text.ends_with('.') && !text.contains('\n'), "{name}: a sentence");
        }
    }
}

#[test]
fn every_metric_of_the_source_is_described_as_what_it_is() {
    let mut named = 0;
    for path in FOLDERS.into_iter().flat_map(|folder| source_files(folder, &[".rs"])) {
        let text = std::fs::read_to_string(&path).expect("source is UTF-8");
        for (call, metrics) in MACROS {
            for (at, _) in text.match_indices(&format!("{call}\"")) {
                let name = text[at + call.len() + 1..].split('"').next().expect("a literal ends");
                if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                    named += 1;
                    let is_described = metrics.iter().any(|&(described, _)| described == name);
                    assert!(is_described, "{}: {call}{name}) has no description", path.display());
                }
            }
        }
    }
    assert!(named > 60, "the metrics are found");
}
