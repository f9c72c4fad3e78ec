//! Rules about the source itself.

mod dependencies;
mod documents;
mod metrics;
mod sql;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the workspace").to_owned()
}

/// What a command of cargo prints.
fn cargo(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

/// Files below a folder whose names end in one of these, without what is built or hidden.
fn source_files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    list_files(&root().join(folder), endings, &mut files);
    assert!(!files.is_empty(), "there are files below {folder}");
    files
}

fn list_files(folder: &Path, endings: &[&str], files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        let name = path.to_str().expect("our paths are ASCII");
        let is_source = path.file_name().is_some_and(|last| {
            !["target", "node_modules"].iter().any(|built| last == *built)
                && !last.as_encoded_bytes().starts_with(b".")
        });
        if path.is_dir() && is_source {
            list_files(&path, endings, files);
        } else if path.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
}

/// Whether these words stand in the text, and not as part of longer ones.
fn has_words(text: &str, words: &str) -> bool {
    let is_of_name = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(words).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)
    })
}
