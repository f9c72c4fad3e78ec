//! What a setting is. Each group lists its own beside its type: the type has a field for each, and the list what the
//! configuration needs to know of it.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::validate::{any_text, is_network};
use super::{BOUNDS, SETTINGS};

/// One setting.
pub(super) struct Setting {
    /// Its name, with dots between groups.
    pub(super) path: &'static str,
    /// What its value is, with the default.
    pub(super) kind: Kind,
    /// What is valid, to complete "must be …".
    pub(super) expected: &'static str,
    /// What it does.
    pub(super) description: &'static str,
}

/// What a value is: its default, which values are valid beyond what the field's type refuses, and how the text of an
/// environment variable is parsed.
pub(super) enum Kind {
    /// Any text.
    Text { default: Option<&'static str>, is_valid: fn(&str) -> bool },
    /// Text that is never printed; `…_FILE` may name a file with it.
    Secret,
    /// A whole number.
    Number { default: u64, min: u64, max: u64 },
    /// `true` or `false`.
    Switch { default: bool },
    /// `a,b` or a JSON array, with a rule for each item.
    List { default: &'static [&'static str], is_valid: fn(&str) -> bool },
    /// A JSON or YAML list of `{kid, secret}`; `…_FILE` may name a file with it.
    KeyList,
}

/// A number that only `TEMPMAIL_TUNING` sets. Its field says what it bounds.
pub(super) struct Bound {
    /// Its name, with dots between groups.
    pub(super) path: &'static str,
    /// Its value, unless a test changes it.
    pub(super) default: u64,
}

/// What a setting of seconds must be.
pub(super) const SECONDS: &str = "a whole number of seconds from 1 to 86400 (a day)";
/// The most that a setting of seconds may be.
pub(super) const SECONDS_MAX: u64 = 86_400;
/// What a setting of a file must be.
pub(super) const PEM_FILE: &str = "the path of a PEM file";

pub(super) const fn setting(
    path: &'static str,
    kind: Kind,
    expected: &'static str,
    description: &'static str,
) -> Setting {
    Setting { path, kind, expected, description }
}

pub(super) const fn number(
    path: &'static str,
    default: u64,
    max: u64,
    expected: &'static str,
    description: &'static str,
) -> Setting {
    setting(path, Kind::Number { default, min: 1, max }, expected, description)
}

pub(super) const fn count(path: &'static str, default: u64, description: &'static str) -> Setting {
    number(path, default, 1_000_000_000, "a whole number from 1 to 1000000000", description)
}

/// Sums of bytes, and products with numbers of things, stay far below what an i64 holds.
pub(super) const fn bytes(path: &'static str, default: u64, description: &'static str) -> Setting {
    number(path, default, 1 << 50, "a whole number of bytes from 1 to 1125899906842624 (1 PiB)", description)
}

pub(super) const fn seconds(path: &'static str, default: u64, description: &'static str) -> Setting {
    number(path, default, SECONDS_MAX, SECONDS, description)
}

pub(super) const fn switch(path: &'static str, default: bool, description: &'static str) -> Setting {
    setting(path, Kind::Switch { default }, "true or false", description)
}

/// `[::]` in a default stands for every address of the machine, of both families.
pub(super) const fn address(
    path: &'static str,
    default: Option<&'static str>,
    description: &'static str,
) -> Setting {
    let expected = "an IP address with port, such as 127.0.0.1:8080 or [::]:8080";
    setting(path, Kind::Text { default, is_valid: any_text }, expected, description)
}

pub(super) const fn networks(path: &'static str, description: &'static str) -> Setting {
    let expected = "a list of networks, such as 10.0.0.0/8 or fd00::/8";
    setting(path, Kind::List { default: &[], is_valid: is_network }, expected, description)
}

pub(super) const fn bound(path: &'static str, default: u64) -> Bound {
    Bound { path, default }
}

impl Kind {
    fn default(&self) -> Value {
        match *self {
            Self::Text { default, .. } => default.into(),
            Self::Secret => Value::from(""),
            Self::Number { default, .. } => default.into(),
            Self::Switch { default } => default.into(),
            Self::List { default, .. } => default.into(),
            Self::KeyList => Value::Array(Vec::new()),
        }
    }

    /// Whether a value that the field's type took is valid.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::Text { is_valid, .. } => value.as_str().is_none_or(is_valid),
            Self::Number { min, max, .. } => {
                value.as_u64().is_some_and(|number| (min..=max).contains(&&number))
            }
            Self::List { is_valid, .. } => {
                value.as_array().into_iter().flatten().all(|item| item.as_str().is_some_and(is_valid))
            }
            Self::Secret | Self::Switch { .. } | Self::KeyList => true,
        }
    }
}

/// All settings, in the order of the reference.
pub(super) fn settings() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.into_iter().flatten()
}

/// All bounds.
pub(super) fn bounds() -> impl Iterator<Item = &'static Bound> {
    BOUNDS.into_iter().flatten()
}

/// The setting with this path.
pub(super) fn find(path: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.path == path)
}

/// Whether the path names a setting, and not a bound that only `TEMPMAIL_TUNING` sets.
pub fn is_setting(path: &str) -> bool {
    find(path).is_some()
}

/// The defaults of all settings and bounds, in the structure of the file.
pub(super) fn defaults() -> Value {
    let mut root = Value::Object(Map::new());
    for setting in settings() {
        insert(&mut root, setting.path, setting.kind.default());
    }
    for bound in bounds() {
        insert(&mut root, bound.path, bound.default.into());
    }
    root
}

/// Sets `value` at a dotted path; `false` if it had a value already.
pub(super) fn insert(root: &mut Value, path: &str, value: Value) -> bool {
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

/// The JSON pointer (RFC 6901) of a dotted path; that of the whole document for an empty one.
pub(super) fn pointer(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("/{}", path.replace('.', "/")) }
}

/// The reference of all settings with their defaults, in Markdown, as `tempmail config` prints it.
pub fn reference() -> String {
    let mut text = String::from(INTRODUCTION);
    let mut section = "";
    for setting in settings() {
        let (group, _) = setting.path.split_once('.').unwrap_or((setting.path, ""));
        if group != section {
            section = group;
            let _ = write!(text, "\n## `{group}`\n\n| Key | Default | Meaning |\n|---|---|---|\n");
        }
        let path = setting.path;
        let variable = format!("TEMPMAIL_{}", path.to_ascii_uppercase().replace('.', "__"));
        let default = match setting.kind {
            Kind::Secret | Kind::KeyList => String::from("none"),
            _ => display_default(&setting.kind.default()),
        };
        let _ = writeln!(text, "| `{path}`<br>`{variable}` | {default} | {} |", setting.description);
    }
    text
}

fn display_default(value: &Value) -> String {
    match value {
        Value::Null => String::from("none"),
        Value::Array(items) if items.is_empty() => String::from("none"),
        Value::Array(items) => items.iter().map(display_default).collect::<Vec<_>>().join(", "),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

const INTRODUCTION: &str = "# Configuration

Generated by `tempmail config`: do not edit.

Settings come from one YAML file (`--config FILE`) and from environment variables, which override
it. A variable is named `TEMPMAIL_` and the key in capitals, with `__` for each dot; an empty one
counts as not set. An unknown key or variable is an error, and nothing starts. One that a version removed is
ignored for a version, with a warning when a process starts. What Kubernetes
sets for a Service named `tempmail…` (such as `TEMPMAIL_API_PORT=tcp://10.96.0.7:8080`) is ignored, and
`TEMPMAIL_CLIENT_URL` and `TEMPMAIL_CLIENT_TOKEN`, which are for [the command line](command-line.md).
Lists are written `a,b` or as a JSON array. Secrets can be read from files, which `TEMPMAIL_POSTGRES__URL_FILE`,
`TEMPMAIL_REDIS__URL_FILE`, `TEMPMAIL_JWT__KEYS_FILE` and `TEMPMAIL_SECRETS__KEYS_FILE` name; keys are
a JSON or YAML list of `{kid, secret}`.

A process that listens on `[::]:8080` listens on every address of the machine, of IPv6 and IPv4, and on those of IPv4 alone
where the machine has no IPv6. A client of IPv4 has its IPv4 address in limits, networks and records, also where IPv6 writes
it as `::ffff:192.0.2.1`. So networks of IPv4 are written as such.

`tempmail up` has the same settings with other defaults: it listens on 127.0.0.1, exempts loopback
from the limits per client and peer, and creates its own keys and database.
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::Config;
    use super::*;

    fn leaves(prefix: &str, value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    leaves(&path, value, found);
                }
            }
            _ => {
                found.insert(prefix.to_owned());
            }
        }
    }

    #[test]
    fn settings_and_bounds_are_exactly_the_fields_of_the_configuration() {
        let mut actual = BTreeSet::new();
        leaves("", &serde_json::to_value(Config::default()).unwrap(), &mut actual);
        let listed = settings().map(|setting| setting.path).chain(bounds().map(|bound| bound.path));
        assert_eq!(actual, listed.map(str::to_owned).collect());
    }

    #[test]
    fn shows_defaults_and_variables() {
        let text = reference();
        assert!(text.contains("| `http.listen`<br>`TEMPMAIL_HTTP__LISTEN` | `[::]:8080` |"), "{text}");
        assert!(text.contains("`TEMPMAIL_SMTP__TLS__CERT` | none |"));
    }
}
