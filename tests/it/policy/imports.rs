//! Crates whose documentation lists their modules in order: what is imported does not import back.

use std::collections::HashMap;
use std::path::Path;

use super::source_files;

/// What the documentation of such a crate says before the list.
const RULE: &str = "A module imports only from those that stand above it in this list.";

/// The places of modules in the list of a crate, from the top. Modules of one row don't import each other.
fn places(documentation: &str) -> HashMap<&str, usize> {
    let (_, list) = documentation.split_once(RULE).expect("the crate has a list");
    let rows = list.lines().filter_map(|line| line.strip_prefix("//! | `"));
    rows.enumerate()
        .flat_map(|(place, row)| {
            let cell = row.split(" |").next().unwrap_or_default();
            cell.split(['`', ',', ' ']).filter(|name| !name.is_empty()).map(move |name| (name, place))
        })
        .collect()
}

/// The modules that a file of the crate names by `crate::`.
fn imported(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut modules = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        // Not the end of the name of a foreign crate.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + path.len()..];
        match rest.strip_prefix('{').and_then(|group| group.split_once("};")) {
            Some((group, _)) => modules.extend(group.split(',').map(first_name)),
            None => modules.push(first_name(rest)),
        }
    }
    modules
}

fn first_name(path: &str) -> String {
    path.trim_start().chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect()
}

#[test]
fn modules_import_only_from_those_above_them() {
    for source in ["api-server/src", "libs/client/src", "libs/mcp/src"] {
        let files = source_files(source, &[".rs"]);
        let is_root = |file: &&std::path::PathBuf| file.ends_with(Path::new(source).join("lib.rs"));
        let root = files.iter().find(is_root).expect("a crate has a lib.rs");
        let documentation = std::fs::read_to_string(root).expect("source is UTF-8");
        let places = places(&documentation);
        for module in documentation.lines().filter_map(|line| line.strip_prefix("mod ")) {
            let module = module.trim_end_matches(';');
            assert!(places.contains_key(module), "the list of {source} lacks {module}");
        }
        for file in files.iter().filter(|file| *file != root) {
            let below =
                file.strip_prefix(root.parent().expect("it lies in a folder")).expect("it is of the crate");
            let module = below.iter().next().and_then(|name| name.to_str()).expect("names are ASCII");
            let module = module.trim_end_matches(".rs");
            let text = std::fs::read_to_string(file).expect("source is UTF-8");
            for import in imported(&text) {
                let is_above =
                    import == module || places.get(&*import).is_none_or(|place| *place < places[module]);
                assert!(is_above, "{} imports from {import}, which stands below {module}", file.display());
            }
        }
    }
}

#[test]
fn finds_what_a_file_imports() {
    let text = "use crate::{a, b::C};\n// crate::not\nuse crate::d::{E, F};\nfn f() { crate::g::h(); }\nuse other_crate::i;";
    assert_eq!(imported(text), ["a", "b", "d", "g"]);
}
