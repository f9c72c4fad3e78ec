//! Rules about the source itself.

mod dependencies;
mod documents;
mod licence;
mod sql;
mod words;

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

/// Files below a folder that git tracks and whose names end in one of these.
fn tracked_files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("our paths are ASCII");
    let files: Vec<PathBuf> = names
        .split_terminator('\0')
        .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
        .map(|name| root().join(name))
        .filter(|path| path.exists())
        .collect();
    assert!(!files.is_empty(), "there are files below {folder}");
    files
}
