//! Settings as environment variables of a process.

use serde_json::{Value, json};
use tempmail_runtime::config::{Config, KeyRing, is_setting};

use super::Role;

/// The variables that turn the default settings into these, and the keys that the role needs. URLs are
/// not among them: they are secrets, which settings don't serialize.
pub(crate) fn of(config: &Config, role: Role) -> Vec<(String, String)> {
    let mut changed = Vec::new();
    collect("", &tree(&Config::default()), &tree(config), &mut changed);
    let (settings, bounds): (Vec<_>, Vec<_>) = changed.into_iter().partition(|(path, _)| is_setting(path));
    let mut variables: Vec<_> =
        settings.into_iter().map(|(path, value)| (variable(&path), text(&value))).collect();
    if !bounds.is_empty() {
        variables.push(("TEMPMAIL_TUNING".to_owned(), tuning(bounds).to_string()));
    }
    if role == Role::Api {
        variables.push(("TEMPMAIL_JWT__KEYS".to_owned(), keys(&config.jwt)));
    }
    let takes_keys_from_secret = role == Role::Operator && !config.operator.keys_secret.is_empty();
    if role != Role::Ingest && !takes_keys_from_secret {
        variables.push(("TEMPMAIL_SECRETS__KEYS".to_owned(), keys(&config.secrets)));
    }
    variables
}

/// All settings except the keys.
fn tree(config: &Config) -> Value {
    let mut tree = serde_json::to_value(config).expect("settings can be written as JSON");
    let groups = tree.as_object_mut().expect("settings are in groups");
    groups.retain(|name, _| name != "jwt" && name != "secrets");
    tree
}

/// Adds the paths and values that differ from the default.
fn collect(path: &str, default: &Value, value: &Value, changed: &mut Vec<(String, Value)>) {
    match value {
        same if same == default => {}
        Value::Object(keys) => {
            for (key, value) in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(&path, &default[key], value, changed);
            }
        }
        other => changed.push((path.to_owned(), other.clone())),
    }
}

fn variable(path: &str) -> String {
    format!("TEMPMAIL_{}", path.replace('.', "__").to_ascii_uppercase())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Bounds that are no settings, in the structure of a file of settings: a group has names.
fn tuning(bounds: Vec<(String, Value)>) -> Value {
    let mut groups = json!({});
    for (path, value) in bounds {
        let (group, name) = path.split_once('.').expect("a bound is in a group");
        groups[group][name] = value;
    }
    groups
}

fn keys(ring: &KeyRing) -> String {
    let keys = ring.keys.iter().map(|key| json!({"kid": key.kid, "secret": key.secret.expose()}));
    Value::from_iter(keys).to_string()
}
