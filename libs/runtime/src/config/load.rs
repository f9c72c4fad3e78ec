//! Merges defaults, file, environment and flags.

use std::path::Path;

use figment::Figment;
use figment::error::Kind as Cause;
use figment::providers::Serialized;
use serde_json::Value;

use super::removed::{self, RemovedSetting};
use super::setting::{self, pointer};
use super::{Config, ConfigError, environment};

/// What file and environment set, not merged with defaults and flags yet.
#[derive(Debug)]
pub struct Sources {
    file: Value,
    environment: Value,
    /// Bounds that are no settings; for tests.
    tuning: Value,
    removed: Vec<RemovedSetting>,
}

impl Sources {
    /// Reads `file`, if given, and the environment of the process.
    ///
    /// # Errors
    /// [`ConfigError`] if the file is unreadable or not YAML, or a variable is unknown.
    pub fn read(file: Option<&Path>) -> Result<Self, ConfigError> {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::from_parts(file, variables)
    }

    /// The same with a given environment.
    ///
    /// # Errors
    /// As [`Sources::read`].
    pub fn from_parts(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut file =
            file.map(read_file).transpose()?.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let mut removed = removed::take_from(&mut file);
        if let Some(bound) = setting::bounds().find(|bound| file.pointer(&pointer(bound.path)).is_some()) {
            return Err(ConfigError::UnknownKey(bound.path.to_owned()));
        }
        let environment = environment::read(variables, &mut removed)?;
        Ok(Self { file, environment: environment.settings, tuning: environment.tuning, removed })
    }

    /// Whether file or environment set the key.
    pub fn sets(&self, key: &str) -> bool {
        [&self.file, &self.environment].iter().any(|source| source.pointer(&pointer(key)).is_some())
    }

    /// The configuration: file and environment override `defaults`, and `flags` override them. Both
    /// have the structure of the file.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn config(&self, defaults: &Value, flags: &Value) -> Result<Config, ConfigError> {
        let mut config: Config = Figment::from(Serialized::defaults(setting::defaults()))
            .merge(Serialized::defaults(defaults))
            .merge(Serialized::defaults(&self.file))
            .merge(Serialized::defaults(&self.environment))
            .merge(Serialized::defaults(flags))
            .merge(Serialized::defaults(&self.tuning))
            .extract()
            .map_err(|error| explain(&error))?;
        config.validate()?;
        config.removed.clone_from(&self.removed);
        Ok(config)
    }
}

impl Config {
    /// The configuration of file and environment.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let empty = Value::Object(serde_json::Map::new());
        Sources::read(file)?.config(&empty, &empty)
    }
}

fn read_file(path: &Path) -> Result<Value, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        what: String::from("--config"),
        path: path.to_owned(),
        source,
    })?;
    // A file without settings is not a mapping in YAML.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let not_yaml = |place: String| ConfigError::NotYaml { path: path.to_owned(), place };
    let value: Value = serde_saphyr::from_str(&text).map_err(|error| {
        // The parser's message may quote the file, which may have secrets.
        not_yaml(error.location().map_or_else(String::new, |at| format!(" (line {})", at.line())))
    })?;
    if value.is_object() { Ok(value) } else { Err(not_yaml(String::new())) }
}

/// The error without the value that figment quotes.
fn explain(error: &figment::Error) -> ConfigError {
    let path: Vec<&str> = error.path.iter().map(String::as_str).filter(|part| *part != "default").collect();
    if let Cause::UnknownField(name, _) = &error.kind {
        // figment's path may or may not end in the field itself.
        let parents = if path.last() == Some(&name.as_str()) { &path[..path.len() - 1] } else { &path[..] };
        let mut full: Vec<&str> = parents.to_vec();
        full.push(name);
        return ConfigError::UnknownKey(full.join("."));
    }
    let full = path.join(".");
    let known = (1..=path.len()).rev().find_map(|n| setting::find(&path[..n].join(".")));
    match known {
        Some(setting) => ConfigError::InvalidValue { key: full, expected: setting.expected },
        None => ConfigError::InvalidValue { key: full, expected: "a group of keys" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(yaml: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tempmail.yaml");
        std::fs::write(&file, yaml).unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let empty = serde_json::json!({});
        Sources::from_parts(Some(&file), variables)
            .and_then(|sources| sources.config(&empty, &empty))
            .map_err(|error| error.to_string().replace(file.to_str().unwrap(), "FILE"))
    }

    #[test]
    fn environment_overrides_the_file() {
        let config = load(
            "postgres: {pool: 3, url: postgres://a@b/c}\nsmtp:\n  hostname: mx.example.com\n",
            &[
                ("TEMPMAIL_POSTGRES__POOL", "4"),
                ("TEMPMAIL_HTTP__TRUSTED_PROXIES", "10.0.0.0/8, fd00::/8"),
                ("TEMPMAIL_HTTP__CORS_ORIGINS", "[\"https://a.example\"]"),
                ("TEMPMAIL_RETENTION__FREE_HOURS", "6"),
                ("TEMPMAIL_TELEMETRY__FORMAT", "json"),
                ("TEMPMAIL_JWT__KEYS", "[{\"kid\": \"a\", \"secret\": \"s\"}]"),
                ("TEMPMAIL_SMTP__TLS__CERT", ""),
                ("TEMPMAIL_API_PORT", "tcp://10.96.0.7:8080"),
                ("TEMPMAIL_CLIENT_URL", "https://mail.example"),
                ("TEMPMAIL_CLIENT_TOKEN", "hush"),
                ("PATH", "/bin"),
            ],
        )
        .unwrap();
        assert_eq!((config.postgres.pool, config.postgres.url.expose()), (4, "postgres://a@b/c"));
        assert_eq!(config.http.trusted_proxies.len(), 2);
        assert_eq!(config.http.cors_origins, ["https://a.example"]);
        assert_eq!(config.retention.free_hours.hours(), 6);
        assert_eq!(config.jwt.keys[0].secret.expose(), "s");
        assert_eq!((config.smtp.hostname.as_str(), config.smtp.tls.cert), ("mx.example.com", None));
        assert!(load("", &[]).is_ok());
        assert!(load("# nothing\n", &[]).is_ok());
    }

    #[test]
    fn ignores_settings_that_were_removed_and_names_each_once() {
        let removed = |yaml: &str, variables: &[(&str, &str)]| {
            let config = load(yaml, variables).unwrap();
            config.removed.iter().map(|setting| setting.path).collect::<Vec<_>>()
        };
        let variable = [("TEMPMAIL_COMPAT__MAILTM__LISTEN", "127.0.0.1:8026")];
        for (yaml, variables) in [
            ("compat: {mailtm: {listen: 127.0.0.1:8026}, mailpit: {listen: 127.0.0.1:8025}}", &[][..]),
            ("compat: {mailtm: {}}", &[]),
            ("compat: {mailtm: nonsense}", &[]),
            ("", &variable),
            ("compat: {mailtm: {listen: 127.0.0.1:8026}}", &variable),
        ] {
            assert_eq!(removed(yaml, variables), ["compat.mailtm"], "{yaml} {variables:?}");
        }
        let constants = removed("smtp: {command_seconds: 30}", &[("TEMPMAIL_ADMIN__CONNECTIONS", "many")]);
        assert_eq!(constants, ["smtp.command_seconds", "admin.connections"]);
        assert_eq!(load("smtp: {command_seconds: 30}", &[]).unwrap().smtp.command_seconds, 60);
        let tuned = load("", &[("TEMPMAIL_TUNING", r#"{"smtp": {"command_seconds": 30}}"#)]).unwrap();
        assert_eq!((tuned.smtp.command_seconds, tuned.smtp.data_seconds, tuned.removed.len()), (30, 180, 0));
        assert!(removed("", &[("TEMPMAIL_COMPAT__MAILTM__LISTEN", "")]).is_empty());
        assert!(removed("compat: {mailpit: {listen: 127.0.0.1:8025}}", &[]).is_empty());
    }

    #[test]
    fn reads_secrets_from_files() {
        let directory = tempfile::tempdir().unwrap();
        let (url, keys) = (directory.path().join("url"), directory.path().join("keys"));
        std::fs::write(&url, "postgres://u:p@h/d\n").unwrap();
        std::fs::write(&keys, "- kid: one\n  secret: abc\n").unwrap();
        let config = load(
            "",
            &[
                ("TEMPMAIL_POSTGRES__URL_FILE", url.to_str().unwrap()),
                ("TEMPMAIL_SECRETS__KEYS_FILE", keys.to_str().unwrap()),
            ],
        )
        .unwrap();
        assert_eq!(config.postgres.url.expose(), "postgres://u:p@h/d");
        assert_eq!(config.secrets.keys[0].kid, "one");
        let twice = [
            ("TEMPMAIL_POSTGRES__URL", "postgres://"),
            ("TEMPMAIL_POSTGRES__URL_FILE", url.to_str().unwrap()),
        ];
        assert!(load("", &twice).unwrap_err().contains("`postgres.url` is set twice"));
        let unreadable = load("", &[("TEMPMAIL_POSTGRES__URL_FILE", "/nowhere")]).unwrap_err();
        assert!(unreadable.starts_with("TEMPMAIL_POSTGRES__URL_FILE names /nowhere"), "{unreadable}");
    }

    #[test]
    fn names_the_key_and_never_the_value_in_errors() {
        for (yaml, variables, sentence) in [
            ("smtp: {hots: a}", &[][..], "`smtp.hots` is not a key"),
            ("nope: 1", &[], "`nope` is not a key"),
            ("limits: {tenant_changes: 1}", &[], "`limits.tenant_changes` is not a key"),
            ("", &[("TEMPMAIL_LIMITS__TENANT_CHANGES", "1")], "TEMPMAIL_LIMITS__TENANT_CHANGES sets no key"),
            ("compat: {mailtmx: {listen: hush}}", &[], "`compat.mailtmx` is not a key"),
            ("mailtm: {listen: hush}", &[], "`mailtm` is not a key"),
            ("smtp: {tls: {cart: a}}", &[], "`smtp.tls.cart` is not a key"),
            ("jwt: {keys: [{kid: a, secret: hush, more: b}]}", &[], "more` is not a key"),
            ("", &[("TEMPMAIL_SMTP__HOTS", "a")], "variable TEMPMAIL_SMTP__HOTS sets no key"),
            ("", &[("TEMPMAIL_API_PORT", "a")], "variable TEMPMAIL_API_PORT sets no key"),
            ("", &[("TEMPMAIL_CLIENT_TOKN", "hush")], "variable TEMPMAIL_CLIENT_TOKN sets no key"),
            (
                "",
                &[("TEMPMAIL_SMTP__HOSTNAME_FILE", "a")],
                "variable TEMPMAIL_SMTP__HOSTNAME_FILE sets no key",
            ),
            ("http: {listen: hush}", &[], "`http.listen` must be an IP address with port"),
            ("http: 7", &[], "`http` must be a group of keys"),
            ("postgres: {pool: hush}", &[], "`postgres.pool` must be a whole number from 1 to 1000000000"),
            ("postgres: {pool: -1}", &[], "`postgres.pool` must be a whole number from 1 to 1000000000"),
            ("postgres: {pool: 0}", &[], "`postgres.pool` must be a whole number from 1 to 1000000000"),
            (
                "",
                &[("TEMPMAIL_POSTGRES__POOL", "hush")],
                "`postgres.pool` must be a whole number from 1 to 1000000000",
            ),
            (
                "postgres: {role_prefix: Hush}",
                &[],
                "`postgres.role_prefix` must be 1 to 54 of a-z, 0-9 and _",
            ),
            ("retention: {pro_hours: 2}", &[], "`retention.pro_hours` must be 1, 6, 24, 72, 168 or 720"),
            ("http: {unlimited_networks: [hush]}", &[], "must be a list of networks"),
            (
                "smtp: {proxy_networks: [0.0.0.0/0]}",
                &[],
                "must be a list of networks of load balancers, not of all",
            ),
            (
                "smtp: {proxy_networks: ['::/0']}",
                &[],
                "must be a list of networks of load balancers, not of all",
            ),
            ("jwt: {keys: hush}", &[], "`jwt.keys` must be a list of {kid, secret}"),
            ("", &[("TEMPMAIL_JWT__KEYS", "{hush")], "`jwt.keys` must be a list of {kid, secret}"),
            ("telemetry: {format: hush}", &[], "`telemetry.format` must be text or json"),
            ("postgres: {url: hush", &[], "FILE is not a YAML file of settings"),
            ("- hush", &[], "FILE is not a YAML file of settings"),
        ] {
            let error = load(yaml, variables).unwrap_err();
            assert!(error.contains(sentence), "{yaml} {variables:?}: {error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
