//! How Postgres carried out a statement, as `auto_explain` tells it.

use serde_json::Value;

/// One scan of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scan {
    /// The table; partitions by the name of what they are part of.
    pub table: String,
    /// The index; partitions' by the name it has there, without their suffix.
    pub index: Option<String>,
    /// Whether it looks for something: else it reads all of the index.
    pub bounded: bool,
}

/// Every scan in a plan, those that never ran included.
pub fn scans(plan: &Value) -> Vec<Scan> {
    let mut found = Vec::new();
    visit(plan, &mut |node| {
        let kind = text(node, "Node Type");
        if !kind.ends_with("Scan") {
            return;
        }
        let (relation, index) = (node.get("Relation Name"), node.get("Index Name"));
        // A bitmap's table says by what it was found in the node below it.
        if kind == "Bitmap Heap Scan" {
            return;
        }
        let index = index.and_then(Value::as_str).map(without_partition);
        let table = match (relation.and_then(Value::as_str), &index) {
            (Some(relation), _) => without_partition(relation),
            (None, Some(index)) => index.split('_').next().unwrap_or_default().to_owned(),
            // Functions, values, and other plans.
            (None, None) => return,
        };
        found.push(Scan { table, index, bounded: node.get("Index Cond").is_some() });
    });
    found
}

/// Rows that were read from tables: those that were of use and those that were not.
pub fn rows_read(plan: &Value) -> u64 {
    let mut rows = 0;
    visit(plan, &mut |node| {
        if node.get("Relation Name").is_some() && text(node, "Node Type").ends_with("Scan") {
            let of = |key| node.get(key).and_then(Value::as_u64).unwrap_or(0);
            let passed_over = of("Rows Removed by Filter") + of("Rows Removed by Index Recheck");
            rows += (of("Actual Rows") + passed_over) * of("Actual Loops");
        }
    });
    rows
}

fn visit(plan: &Value, to: &mut impl FnMut(&Value)) {
    to(plan);
    for below in plan["Plans"].as_array().into_iter().flatten() {
        visit(below, to);
    }
}

fn text<'a>(node: &'a Value, key: &str) -> &'a str {
    node[key].as_str().unwrap_or_default()
}

/// `message_72_1795248000_pkey` is `message_pkey`.
fn without_partition(name: &str) -> String {
    let parts = name.split('_').filter(|part| !part.bytes().all(|octet| octet.is_ascii_digit()));
    parts.collect::<Vec<_>>().join("_")
}
