//! The environment of the commands that are clients of a server: `tempmail mail` and `tempmail mcp`. Programs of the
//! service know these variables, and leave them alone.

use std::path::PathBuf;

use super::error::ConfigError;
use super::secret::Secret;

/// Prefix of the variables of clients.
const PREFIX: &str = "TEMPMAIL_CLIENT_";
/// Base URL of the server.
const URL: &str = "TEMPMAIL_CLIENT_URL";
/// Live token.
const TOKEN: &str = "TEMPMAIL_CLIENT_TOKEN";
/// Where users keep configuration, if it is not the default directory.
const CONFIG_HOME: &str = "XDG_CONFIG_HOME";

/// Whether a variable is one of clients.
pub(super) fn is_of_client(variable: &str) -> bool {
    [URL, TOKEN].contains(&variable)
}

/// What the environment says about the server that a client uses. Empty variables count as not set.
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
                URL => read.url = Some(value),
                TOKEN => read.token = Some(value.into()),
                CONFIG_HOME => directory = Some(PathBuf::from(value)),
                other if other.starts_with(PREFIX) => return Err(ConfigError::UnknownClientVariable(name)),
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

    fn read(variables: &[(&str, &str)]) -> Result<ClientEnvironment, ConfigError> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ClientEnvironment::from_variables(variables, Some("/home/ada".into()))
    }

    #[test]
    fn reads_url_token_and_the_directory_of_configuration() {
        let set =
            read(&[(URL, "http://localhost"), (TOKEN, "hush"), (CONFIG_HOME, "/etc/ada"), ("HOME", "/")])
                .unwrap();
        assert_eq!(set.url.as_deref(), Some("http://localhost"));
        assert_eq!(set.token.as_ref().map(Secret::expose), Some("hush"));
        assert_eq!(set.file, Some("/etc/ada/tempmail/client.json".into()));
        assert!(!format!("{set:?}").contains("hush"));
    }

    #[test]
    fn takes_empty_variables_for_missing_and_refuses_unknown_ones() {
        let empty = read(&[(URL, ""), (TOKEN, ""), (CONFIG_HOME, "relative")]).unwrap();
        assert!(empty.url.is_none() && empty.token.is_none());
        assert_eq!(empty.file, Some("/home/ada/.config/tempmail/client.json".into()));
        let error = read(&[("TEMPMAIL_CLIENT_TOKN", "hush")]).unwrap_err().to_string();
        assert!(error.contains("TEMPMAIL_CLIENT_TOKN") && !error.contains("hush"), "{error}");
    }
}
