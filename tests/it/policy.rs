//! Rules about the source itself: what we depend on, in which direction, and where SQL may
//! take the time from. `deny.toml` says the first for those who have cargo-deny.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

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
    "PostgreSQL",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// A second crypto or TLS library, and crates nobody maintains any more.
const BANNED: &[&str] =
    &["ring", "openssl", "openssl-sys", "native-tls", "schannel", "chrono", "serde_yaml", "rustls-pemfile"];

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
    ("tempmail-mime", &[]),
    ("tempmail-store", &["model"]),
    ("tempmail-bus", &["model"]),
    ("tempmail-runtime", &["model"]),
    ("tempmail-verification", &["model", "store", "bus", "runtime"]),
    ("tempmail-embedded-postgres", &[]),
    ("tempmail-mail-ingest", &["model", "mime", "store", "bus", "runtime"]),
    ("tempmail-api-server", &["model", "mime", "store", "bus", "runtime", "verification"]),
    ("tempmail-worker", &["model", "store", "bus", "runtime", "verification"]),
    ("tempmail-crds", &[]),
    ("tempmail-operator", &["crds", "model", "store", "bus", "runtime", "verification"]),
    (
        "tempmail",
        &[
            "model",
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

/// Lines with these may: the first measures how far the server's clock is ahead, the others are
/// about what a live process has in hand.
const MAY_ASK: [&str; 2] = ["/* clock_offset */", "/* lease */"];

/// SQL that asks the server for the time.
const SERVER_TIME: &[&str] = &[
    "now()",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
    "timeofday",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the workspace").to_owned()
}

fn cargo(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

/// Name, version and licence of everything that is built here.
fn dependencies() -> BTreeSet<(String, String, String)> {
    let tree = ["tree", "--workspace", "--edges", "normal,build,dev", "--prefix", "none", "--locked"];
    let mut arguments = tree.to_vec();
    arguments.extend(["--no-dedupe", "--format", "{p}|{l}"]);
    let mut found = BTreeSet::new();
    for line in cargo(&arguments).lines() {
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
    let refused: Vec<_> = dependencies().into_iter().filter(|(_, _, licence)| !is_allowed(licence)).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn there_is_one_crypto_library_and_one_of_each_stack() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in dependencies() {
        versions.entry(name).or_default().insert(version);
    }
    for name in BANNED {
        assert!(
            !versions.contains_key(*name),
            "{name} is banned: `cargo tree --invert {name}` says who wants it"
        );
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
        if name == "tempmail-tests" {
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

/// Business time is an argument, in SQL too: a test that moves the clock moves all of it.
#[test]
fn sql_does_not_ask_the_server_for_the_time() {
    let mut files = Vec::new();
    // No other crate has SQL: none of them depends on sqlx.
    list_files(&root().join("libs/store"), &mut files);
    assert!(files.iter().any(|file| file.ends_with("0001_baseline.sql")), "the migrations are looked at");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("source is UTF-8").to_ascii_lowercase();
        let code = text
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.starts_with("--") && !line.starts_with("//"));
        for (number, line) in code.enumerate() {
            for time in SERVER_TIME {
                // `clock.now()` is what should be asked.
                let asks = line.match_indices(time).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c == '.' || c == '_' || c == ':' || c.is_alphanumeric())
                });
                assert!(
                    !asks || MAY_ASK.iter().any(|mark| line.contains(mark)),
                    "{} uses {time} near its line {number}: {line}",
                    file.display()
                );
            }
        }
    }
}

/// A lock never waits for a process: each call of the store is one statement, which commits by itself. Only
/// `migrate` opens a transaction.
#[test]
fn the_store_opens_no_transaction() {
    let mut files = Vec::new();
    list_files(&root().join("libs/store/src"), &mut files);
    for file in files.iter().filter(|file| !file.ends_with("schema/object.rs")) {
        let text = std::fs::read_to_string(file).expect("source is UTF-8");
        for words in [".begin()", "\"BEGIN", "*/ BEGIN"] {
            assert!(!text.contains(words), "{} opens a transaction: make it one statement", file.display());
        }
    }
}

fn list_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            list_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "sql") {
            files.push(path);
        }
    }
}

/// Whether an SPDX expression can be met with [`LICENCES`] alone.
fn is_allowed(expression: &str) -> bool {
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

#[test]
fn the_tests_that_the_documents_name_are_there() {
    let all = Command::new(std::env::current_exe().unwrap())
        .args(["--list", "--format", "terse"])
        .output()
        .unwrap();
    let all = String::from_utf8(all.stdout).unwrap();
    let all: BTreeSet<&str> = all.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let text = std::fs::read_to_string(root().join("docs/interface.md")).unwrap();
    let named: BTreeSet<&str> =
        text.split('`').skip(1).step_by(2).filter(|name| is_path_of_a_test(name)).collect();
    assert!(named.len() > 100, "the table is there");
    let missing: Vec<_> = named.difference(&all).collect();
    assert!(missing.is_empty(), "docs/interface.md names tests that do not exist: {missing:#?}");
}

/// `folder::file::a_rule`; an address such as `[::1]` is none.
fn is_path_of_a_test(text: &str) -> bool {
    text.contains("::")
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c))
}
