//! What we depend on, and in which direction our crates do. `deny.toml` says the first for those who have
//! cargo-deny.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::cargo;
use super::licence::is_allowed;

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
