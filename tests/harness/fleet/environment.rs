//! Settings as environment variables of a process.

use serde_json::{Value, json};
use tempmail_runtime::config::{Config, KeyRing};

use super::Role;

/// The variables that turn the default settings into these, and the keys that the role needs. URLs are
/// not among them: they are secrets, which settings don't serialize.
pub(crate) fn of(config: &Config, role: Role) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    collect("TEMPMAIL", &tree(&Config::default()), &tree(config), &mut variables);
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

fn collect(name: &str, default: &Value, value: &Value, variables: &mut Vec<(String, String)>) {
    match value {
        same if same == default => {}
        Value::Object(keys) => {
            let separator = if name == "TEMPMAIL" { "_" } else { "__" };
            for (key, value) in keys {
                let name = format!("{name}{separator}{}", key.to_ascii_uppercase());
                collect(&name, &default[key], value, variables);
            }
        }
        Value::String(text) => variables.push((name.to_owned(), text.clone())),
        Value::Null => variables.push((name.to_owned(), String::new())),
        other => variables.push((name.to_owned(), other.to_string())),
    }
}

fn keys(ring: &KeyRing) -> String {
    let keys = ring.keys.iter().map(|key| json!({"kid": key.kid, "secret": key.secret.expose()}));
    Value::from_iter(keys).to_string()
}
