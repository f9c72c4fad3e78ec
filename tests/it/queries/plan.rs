//! The plans of statements as `auto_explain` logs them.

use serde_json::Value;

/// One scan of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scan {
    /// The table; of a partition its parent.
    pub table: String,
    /// The index; of a partition without its suffix.
    pub index: Option<String>,
    /// Whether it has a condition; else it reads all of the index.
    pub bounded: bool,
}

/// Every scan in a plan, including those that were not executed.
pub fn scans(plan: &Value) -> Vec<Scan> {
    let mut found = Vec::new();
    visit(plan, &mut |node| {
        let kind = text(node, "Node Type");
        if !kind.ends_with("Scan") {
            return;
        }
        let (relation, index) = (node.get("Relation Name"), node.get("Index Name"));
        // The index is in the node below.
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

/// Rows that were read from tables, including those removed by filters.
pub fn rows_read(plan: &Value) -> u64 {
    let mut rows = 0;
    visit(plan, &mut |node| {
        if node.get("Relation Name").is_some() && text(node, "Node Type").ends_with("Scan") {
            let of = |key| node.get(key).and_then(Value::as_u64).unwrap_or(0);
            let removed = of("Rows Removed by Filter") + of("Rows Removed by Index Recheck");
            rows += (of("Actual Rows") + removed) * of("Actual Loops");
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
