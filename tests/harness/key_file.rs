//! A file of keys, as a Secret of Kubernetes mounts it: processes read it each time that they start.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tempmail_runtime::config::Key;

/// The file of a ring of keys. It is removed on drop.
#[derive(Debug)]
pub struct KeyFile {
    directory: TempDir,
}

impl KeyFile {
    /// A file with these keys.
    ///
    /// # Panics
    /// It can't be written.
    pub fn new(keys: &[&Key]) -> Self {
        let file = Self { directory: TempDir::new().expect("a directory can be made") };
        file.write(keys);
        file
    }

    /// Replaces the keys, for processes that start from now on.
    ///
    /// # Panics
    /// It can't be written.
    pub fn write(&self, keys: &[&Key]) {
        let keys = keys.iter().map(|key| json!({ "kid": key.kid, "secret": key.secret.expose() }));
        fs::write(self.path(), Value::from_iter(keys).to_string()).expect("a file can be written");
    }

    /// Its path.
    ///
    /// # Panics
    /// The path is not UTF-8.
    pub fn path(&self) -> String {
        let path = self.directory.path().join("keys");
        path.to_str().expect("the path of a temporary directory is UTF-8").to_owned()
    }
}
