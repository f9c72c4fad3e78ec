//! `TEMPMAIL_…` variables: settings, in the structure of the file, those of clients, and what Kubernetes sets.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::removed::RemovedSetting;
use super::setting::{Kind, Setting, find, insert};
use super::{ConfigError, Secret};

/// Prefix of every variable.
const PREFIX: &str = "TEMPMAIL_";
/// The variable without it that sets, for tests, what no setting does: JSON with the structure of the file.
const TUNING: &str = "TUNING";

/// Prefix of the variables of clients.
const CLIENT_PREFIX: &str = "TEMPMAIL_CLIENT_";
/// Base URL of the server.
const CLIENT_URL: &str = "TEMPMAIL_CLIENT_URL";
/// Live token.
const CLIENT_TOKEN: &str = "TEMPMAIL_CLIENT_TOKEN";
/// Where users keep configuration, if it is not the default directory.
const CONFIG_HOME: &str = "XDG_CONFIG_HOME";

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
        let Some((setting, from_file)) = setting_of(name) else {
            if let Some(gone) = RemovedSetting::find(&path_of(name)) {
                if !text.is_empty() && !removed.contains(&gone) {
                    removed.push(gone);
                }
                continue;
            }
            if is_service_link(name, &text) || [CLIENT_URL, CLIENT_TOKEN].contains(&variable.as_str()) {
                continue;
            }
            return Err(ConfigError::UnknownVariable(variable));
        };
        if text.is_empty() {
            continue;
        }
        let text = if from_file { read_secret(&variable, &text)? } else { text };
        let value = value_of(setting, text)?;
        if !insert(&mut root, setting.path, value) {
            return Err(ConfigError::SetTwice(setting.path));
        }
    }
    Ok(Environment { settings: root, tuning })
}

/// The path that a variable without its prefix names.
fn path_of(name: &str) -> String {
    name.to_ascii_lowercase().replace("__", ".")
}

/// The setting of a variable without its prefix, and whether the variable names a file.
fn setting_of(name: &str) -> Option<(&'static Setting, bool)> {
    let path = path_of(name);
    if let Some(setting) = find(&path) {
        return Some((setting, false));
    }
    let setting = find(path.strip_suffix("_file")?)?;
    matches!(setting.kind, Kind::Secret | Kind::KeyList).then_some((setting, true))
}

fn read_secret(variable: &str, path: &str) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        what: variable.to_owned(),
        path: path.into(),
        source,
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn value_of(setting: &Setting, text: String) -> Result<Value, ConfigError> {
    let invalid = || ConfigError::InvalidValue { key: setting.path.to_owned(), expected: setting.expected };
    match setting.kind {
        Kind::Text { .. } | Kind::Secret => Ok(Value::String(text)),
        Kind::Number { .. } => Ok(Value::from(text.trim().parse::<u64>().map_err(|_| invalid())?)),
        Kind::Switch { .. } => Ok(Value::from(text.trim().parse::<bool>().map_err(|_| invalid())?)),
        Kind::List { .. } if text.trim_start().starts_with('[') => {
            serde_json::from_str(&text).map_err(|_| invalid())
        }
        Kind::List { .. } => Ok(text.split(',').map(|item| Value::from(item.trim())).collect()),
        Kind::KeyList => serde_saphyr::from_str(&text).map_err(|_| invalid()),
    }
}

/// Whether Kubernetes sets the variable `TEMPMAIL_<name>` to `value`: it sets some in each pod for the Services of its
/// namespace, unless the pod has `enableServiceLinks: false`. Those of a Service whose name begins with `tempmail` look like
/// settings.
fn is_service_link(name: &str, value: &str) -> bool {
    let parts: Vec<&str> = name.split('_').collect();
    match parts[..] {
        [.., "SERVICE", "HOST"] => value.parse::<IpAddr>().is_ok(),
        [.., "PORT", number, protocol, field] if is_port(number) && is_protocol(protocol) => match field {
            "PROTO" => value.eq_ignore_ascii_case(protocol),
            "PORT" => value == number,
            "ADDR" => value.parse::<IpAddr>().is_ok(),
            _ => false,
        },
        [.., "PORT", number, protocol] if is_port(number) && is_protocol(protocol) => is_url(value),
        [.., "PORT"] if is_url(value) => true,
        // The name of the port may follow.
        _ => parts.windows(2).any(|pair| pair == ["SERVICE", "PORT"]) && is_port(value),
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

fn is_protocol(text: &str) -> bool {
    ["TCP", "UDP", "SCTP"].iter().any(|protocol| text.eq_ignore_ascii_case(protocol))
}

/// Whether a text is an address as in `tcp://10.0.0.1:25`.
fn is_url(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(protocol, address)| is_protocol(protocol) && address.parse::<SocketAddr>().is_ok())
}

/// What the environment says about the server that a client uses: `tempmail mail` or `tempmail mcp`. Programs of the
/// service know these variables, and leave them alone. Empty variables count as not set.
#[derive(Debug, Clone, Default)]
pub struct ClientEnvironment {
    /// `TEMPMAIL_CLIENT_URL`
    pub url: Option<String>,
    /// `TEMPMAIL_CLIENT_TOKEN`
    pub token: Option<Secret>,
    /// The configuration file: `tempmail/client.json` in `$XDG_CONFIG_HOME`, or in `~/.config`. `None` where there is
    /// no home directory.
    pub file: Option<PathBuf>,
}

impl ClientEnvironment {
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// [`ConfigError::UnknownClientVariable`] for another variable that begins with `TEMPMAIL_CLIENT_`.
    pub fn read() -> Result<Self, ConfigError> {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::from_variables(variables, std::env::home_dir())
    }

    fn from_variables(
        variables: impl Iterator<Item = (String, String)>,
        home: Option<PathBuf>,
    ) -> Result<Self, ConfigError> {
        let mut read = Self::default();
        let mut directory = None;
        for (name, value) in variables.filter(|(_, value)| !value.is_empty()) {
            match name.as_str() {
                CLIENT_URL => read.url = Some(value),
                CLIENT_TOKEN => read.token = Some(value.into()),
                CONFIG_HOME => directory = Some(PathBuf::from(value)),
                other if other.starts_with(CLIENT_PREFIX) => {
                    return Err(ConfigError::UnknownClientVariable(name));
                }
                _ => {}
            }
        }
        // The XDG specification: a relative path is ignored.
        let directory = directory.filter(|path| path.is_absolute()).or_else(|| Some(home?.join(".config")));
        read.file = directory.map(|directory| directory.join("tempmail/client.json"));
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_what_kubernetes_sets_for_a_service() {
        for (name, value) in [
            ("SERVICE_HOST", "10.96.0.7"),
            ("SERVICE_PORT", "8080"),
            ("SERVICE_PORT_HTTP", "8080"),
            ("PORT", "tcp://10.96.0.7:8080"),
            ("PORT_8080_TCP", "tcp://10.96.0.7:8080"),
            ("PORT_8080_TCP_PROTO", "tcp"),
            ("PORT_8080_TCP_PORT", "8080"),
            ("PORT_8080_TCP_ADDR", "10.96.0.7"),
            ("API_SERVICE_HOST", "fd00::7"),
            ("API_PORT", "tcp://[fd00::7]:8080"),
            ("SMTP_IN_SERVICE_PORT_SMTP", "25"),
            ("DNS_PORT_53_UDP", "udp://10.96.0.10:53"),
        ] {
            assert!(is_service_link(name, value), "{name}={value}");
        }
    }

    #[test]
    fn leaves_misspelt_settings_and_other_values_alone() {
        for (name, value) in [
            ("HTTP_PORT", "8080"),
            ("PORT", "8080"),
            ("SMTP__LISTEN_PORT", "25"),
            ("API_SERVICE_HOST", "mail.example.com"),
            ("SERVICE_PORT", "http"),
            ("PORT_8080_TCP", "8080"),
            ("PORT_8080_TCP_MODE", "8080"),
            ("PORT_8080_TCP_PORT", "8081"),
            ("PORT", "http://10.96.0.7:8080"),
            ("SMTP__HOTS", "tcp://10.96.0.7:25"),
        ] {
            assert!(!is_service_link(name, value), "{name}={value}");
        }
    }

    fn client(variables: &[(&str, &str)]) -> Result<ClientEnvironment, ConfigError> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ClientEnvironment::from_variables(variables, Some("/home/ada".into()))
    }

    #[test]
    fn reads_url_token_and_the_directory_of_configuration() {
        let set = client(&[
            (CLIENT_URL, "http://localhost"),
            (CLIENT_TOKEN, "hush"),
            (CONFIG_HOME, "/etc/ada"),
            ("HOME", "/"),
        ])
        .unwrap();
        assert_eq!(set.url.as_deref(), Some("http://localhost"));
        assert_eq!(set.token.as_ref().map(Secret::expose), Some("hush"));
        assert_eq!(set.file, Some("/etc/ada/tempmail/client.json".into()));
        assert!(!format!("{set:?}").contains("hush"));
    }

    #[test]
    fn takes_empty_variables_for_missing_and_refuses_unknown_ones() {
        let empty = client(&[(CLIENT_URL, ""), (CLIENT_TOKEN, ""), (CONFIG_HOME, "relative")]).unwrap();
        assert!(empty.url.is_none() && empty.token.is_none());
        assert_eq!(empty.file, Some("/home/ada/.config/tempmail/client.json".into()));
        let error = client(&[("TEMPMAIL_CLIENT_TOKN", "hush")]).unwrap_err().to_string();
        assert!(error.contains("TEMPMAIL_CLIENT_TOKN") && !error.contains("hush"), "{error}");
    }
}
