//! What we depend on, and in which direction our crates do. `deny.toml` says the first for those who have
//! cargo-deny.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::Value;

use super::{cargo, source_files};

/// A second crypto or TLS library, and crates nobody maintains any more.
const BANNED: &[&str] =
    &["ring", "openssl", "openssl-sys", "native-tls", "schannel", "serde_yaml", "rustls-pemfile"];

/// Crates that may only come along with some others.
const ONLY_WITH: &[(&str, &[&str])] = &[
    // Times are jiff's. The SDK of the Model Context Protocol has chrono's, and a feature of schemars for them.
    ("chrono", &["rmcp", "schemars"]),
];

/// Stacks that there must be one version of.
const ONCE: &[&str] = &[
    "aws-lc-rs",
    "axum",
    "h2",
    "http",
    "hyper",
    "jiff",
    "mail-parser",
    "reqwest",
    "rustls",
    "serde",
    "sqlx",
    "sqlx-core",
    "tokio",
    "tokio-rustls",
    "tower",
    "tracing",
    "uuid",
    "zstd",
];

/// Which of our crates each may use, beside the tests, which may use all of them.
const DIRECTION: &[(&str, &[&str])] = &[
    ("tempmail-model", &[]),
    ("tempmail-admission", &[]),
    ("tempmail-client", &["model"]),
    ("tempmail-mcp", &["client", "extract"]),
    ("tempmail-mime", &[]),
    ("tempmail-extract", &[]),
    ("tempmail-store", &["model"]),
    ("tempmail-bus", &["model", "admission"]),
    ("tempmail-runtime", &["model", "admission"]),
    ("tempmail-verification", &["model", "store", "bus", "runtime"]),
    ("tempmail-embedded-postgres", &[]),
    ("tempmail-mail-ingest", &["model", "admission", "mime", "store", "bus", "runtime"]),
    (
        "tempmail-api-server",
        &[
            "model",
            "admission",
            "mime",
            "extract",
            "store",
            "bus",
            "runtime",
            "verification",
            "client",
            "mcp",
        ],
    ),
    ("tempmail-worker", &["model", "store", "bus", "runtime", "verification"]),
    ("tempmail-crds", &[]),
    ("tempmail-operator", &["crds", "model", "store", "bus", "runtime", "verification"]),
    (
        "tempmail",
        &[
            "model",
            "client",
            "mcp",
            "store",
            "bus",
            "runtime",
            "embedded-postgres",
            "mail-ingest",
            "api-server",
            "worker",
            "crds",
            "operator",
        ],
    ),
];

/// Everything that is built here, tests too.
const ALL: &[&str] = &["--workspace", "--edges", "normal,build,dev"];

/// What the program is made of.
const PROGRAM: &[&str] = &["--package", "tempmail", "--edges", "normal,build"];

/// Name, version and licence of what `of` selects.
fn dependencies(of: &[&str]) -> BTreeSet<(String, String, String)> {
    let mut arguments = vec!["tree", "--prefix", "none", "--locked", "--format", "{p}|{l}"];
    arguments.extend(of);
    let mut found = BTreeSet::new();
    for line in cargo(&arguments).lines() {
        // What cargo has printed before is marked.
        let line = line.trim_end_matches(" (*)");
        let (package, licence) = line.split_once('|').unwrap_or((line, ""));
        let mut words = package.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        found.insert((name.to_owned(), version.to_owned(), licence.to_owned()));
    }
    assert!(found.len() > 100, "cargo tree shows what we depend on");
    found
}

#[test]
fn dependencies_are_under_licences_that_we_may_use() {
    let refused: Vec<_> =
        dependencies(ALL).into_iter().filter(|(_, _, licence)| !is_allowed(licence)).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn there_is_one_crypto_library_and_one_of_each_stack() {
    let all: BTreeSet<_> = dependencies(ALL).into_iter().map(|(name, ..)| name).collect();
    for name in BANNED {
        assert!(!all.contains(*name), "{name} is banned: `cargo tree --invert {name}` says who wants it");
    }
    for (name, dependents) in ONLY_WITH {
        let tree =
            cargo(&["tree", "--locked", "--workspace", "--invert", name, "--depth", "1", "--prefix", "none"]);
        let direct = tree.lines().skip(1).filter_map(|line| line.split(' ').next());
        let others: Vec<_> = direct.filter(|dependent| !dependents.contains(dependent)).collect();
        assert!(others.is_empty(), "{name} comes with {others:?}");
    }
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in dependencies(PROGRAM) {
        versions.entry(name).or_default().insert(version);
    }
    for name in ONCE {
        let count = versions.get(*name).map_or(0, BTreeSet::len);
        assert!(count <= 1, "{count} versions of {name}");
    }
}

#[test]
fn our_crates_depend_downwards_only() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]))
            .expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        if ["tempmail-tests", "tempmail-next"].contains(&name) {
            continue;
        }
        let (_, allowed) = DIRECTION
            .iter()
            .find(|(of, _)| *of == name)
            .unwrap_or_else(|| panic!("{name} is new: say in DIRECTION what it may use"));
        for dependency in package["dependencies"].as_array().expect("a package has dependencies") {
            let used = dependency["name"].as_str().expect("a dependency has a name");
            if let Some(ours) = used.strip_prefix("tempmail-") {
                assert!(allowed.contains(&ours), "{name} must not use {used}");
            }
            assert_ne!(used, "tempmail", "{name} must not use the binary");
        }
    }
}

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

/// Licences that a dependency may be under; one of an `OR` is enough.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "PostgreSQL",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an SPDX expression can be met with [`LICENCES`] alone.
pub(super) fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let allowed = any_of(&words, &mut at);
    allowed && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize) -> bool {
    let mut allowed = all_of(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= all_of(words, at);
    }
    allowed
}

fn all_of(words: &[&str], at: &mut usize) -> bool {
    let mut allowed = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one(words, at);
    }
    allowed
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let allowed = any_of(words, at);
        *at += 1;
        return allowed;
    }
    if words.get(*at) == Some(&"WITH") {
        // An exception only ever allows more.
        *at += 2;
    }
    LICENCES.contains(&word)
}

#[test]
fn licence_expressions_are_read() {
    for allowed in ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(is_allowed(allowed), "{allowed}");
    }
    assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-2.0"));
    for refused in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND AGPL-3.0", "MIT MIT"] {
        assert!(!is_allowed(refused), "{refused}");
    }
}
