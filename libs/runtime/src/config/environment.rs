//! Reads `TEMPMAIL_…` variables into the shape of the file.

use serde_json::{Map, Value};

use super::load::ConfigError;
use super::reference::{self, KeyDoc, Kind};

/// Prefix of every variable.
const PREFIX: &str = "TEMPMAIL_";

/// The settings among `variables`.
///
/// # Errors
/// A `TEMPMAIL_` variable that names no key, a file that can't be read, or a text that is not
/// of the key's kind.
pub(super) fn read(variables: impl Iterator<Item = (String, String)>) -> Result<Value, ConfigError> {
    let mut root = Value::Object(Map::new());
    for (variable, text) in variables {
        let Some(name) = variable.strip_prefix(PREFIX) else { continue };
        let (key, from_file) = key_of(name).ok_or_else(|| ConfigError::UnknownVariable(variable.clone()))?;
        if text.is_empty() {
            continue;
        }
        let text = if from_file { read_secret(&variable, &text)? } else { text };
        let value = value_of(key, text)?;
        if !insert(&mut root, key.path, value) {
            return Err(ConfigError::SetTwice(key.path));
        }
    }
    Ok(root)
}

/// The key that a variable without its prefix sets, and whether the variable names a file.
fn key_of(name: &str) -> Option<(&'static KeyDoc, bool)> {
    let path = name.to_ascii_lowercase().replace("__", ".");
    if let Some(key) = reference::find(&path) {
        return Some((key, false));
    }
    let key = reference::find(path.strip_suffix("_file")?)?;
    matches!(key.kind, Kind::Secret | Kind::KeyList).then_some((key, true))
}

fn read_secret(variable: &str, path: &str) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        what: variable.to_owned(),
        path: path.into(),
        source,
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn value_of(key: &'static KeyDoc, text: String) -> Result<Value, ConfigError> {
    let wrong = || ConfigError::InvalidValue { key: key.path.to_owned(), expected: key.expected };
    match key.kind {
        Kind::Text | Kind::Secret => Ok(Value::String(text)),
        Kind::Number => Ok(Value::from(text.trim().parse::<u64>().map_err(|_| wrong())?)),
        Kind::Switch => Ok(Value::from(text.trim().parse::<bool>().map_err(|_| wrong())?)),
        Kind::List if text.trim_start().starts_with('[') => serde_json::from_str(&text).map_err(|_| wrong()),
        Kind::List => Ok(text.split(',').map(|item| Value::from(item.trim())).collect()),
        Kind::KeyList => serde_saphyr::from_str(&text).map_err(|_| wrong()),
    }
}

/// Puts `value` at a dotted path; false where something is there already.
fn insert(root: &mut Value, path: &str, value: Value) -> bool {
    let mut place = root;
    for name in path.split('.') {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    let free = place.is_null();
    *place = value;
    free
}
