//! Reads `TEMPMAIL_…` variables into the structure of the file.

use serde_json::{Map, Value};

use super::client::is_of_client;
use super::error::ConfigError;
use super::removed::RemovedSetting;
use super::schema::{self, ConfigKey, ValueKind};
use super::service_link::is_service_link;

/// Prefix of every variable.
const PREFIX: &str = "TEMPMAIL_";
/// The variable without it that sets, for tests, what no setting does: JSON with the structure of the file.
const TUNING: &str = "TUNING";

/// What the variables set.
pub(super) struct Environment {
    /// Settings, in the structure of the file.
    pub(super) settings: Value,
    /// Bounds that are no settings, likewise.
    pub(super) tuning: Value,
}

/// The settings among `variables`. Those that were removed are added to `removed`, unless they are there.
///
/// # Errors
/// A `TEMPMAIL_` variable names no key and is not one of clients or one that Kubernetes sets, a file can't be read, or a
/// value has the wrong kind.
pub(super) fn read(
    variables: impl Iterator<Item = (String, String)>,
    removed: &mut Vec<RemovedSetting>,
) -> Result<Environment, ConfigError> {
    let (mut root, mut tuning) = (Value::Object(Map::new()), Value::Object(Map::new()));
    for (variable, text) in variables {
        let Some(name) = variable.strip_prefix(PREFIX) else { continue };
        if name == TUNING {
            let invalid = |_| ConfigError::InvalidValue { key: variable.clone(), expected: "JSON" };
            tuning = serde_json::from_str(&text).map_err(invalid)?;
            continue;
        }
        let Some((key, from_file)) = key_of(name) else {
            if let Some(setting) = RemovedSetting::find(&path_of(name)) {
                if !text.is_empty() && !removed.contains(&setting) {
                    removed.push(setting);
                }
                continue;
            }
            if is_service_link(name, &text) || is_of_client(&variable) {
                continue;
            }
            return Err(ConfigError::UnknownVariable(variable));
        };
        if text.is_empty() {
            continue;
        }
        let text = if from_file { read_secret(&variable, &text)? } else { text };
        let value = value_of(key, text)?;
        if !insert(&mut root, key.path, value) {
            return Err(ConfigError::SetTwice(key.path));
        }
    }
    Ok(Environment { settings: root, tuning })
}

/// The path that a variable without its prefix names.
fn path_of(name: &str) -> String {
    name.to_ascii_lowercase().replace("__", ".")
}

/// The key of a variable without its prefix, and whether the variable names a file.
fn key_of(name: &str) -> Option<(&'static ConfigKey, bool)> {
    let path = path_of(name);
    if let Some(key) = schema::find(&path) {
        return Some((key, false));
    }
    let key = schema::find(path.strip_suffix("_file")?)?;
    matches!(key.kind, ValueKind::Secret | ValueKind::KeyList).then_some((key, true))
}

fn read_secret(variable: &str, path: &str) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        what: variable.to_owned(),
        path: path.into(),
        source,
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn value_of(key: &'static ConfigKey, text: String) -> Result<Value, ConfigError> {
    let invalid = || ConfigError::InvalidValue { key: key.path.to_owned(), expected: key.expected };
    match key.kind {
        ValueKind::Text | ValueKind::Secret => Ok(Value::String(text)),
        ValueKind::Number => Ok(Value::from(text.trim().parse::<u64>().map_err(|_| invalid())?)),
        ValueKind::Switch => Ok(Value::from(text.trim().parse::<bool>().map_err(|_| invalid())?)),
        ValueKind::List if text.trim_start().starts_with('[') => {
            serde_json::from_str(&text).map_err(|_| invalid())
        }
        ValueKind::List => Ok(text.split(',').map(|item| Value::from(item.trim())).collect()),
        ValueKind::KeyList => serde_saphyr::from_str(&text).map_err(|_| invalid()),
    }
}

/// Sets `value` at a dotted path; `false` if it had a value already.
fn insert(root: &mut Value, path: &str, value: Value) -> bool {
    let mut slot = root;
    for name in path.split('.') {
        if slot.is_null() {
            *slot = Value::Object(Map::new());
        }
        slot = &mut slot[name];
    }
    let was_unset = slot.is_null();
    *slot = value;
    was_unset
}
