//! The server that `tempmail mail` and `tempmail mcp` use, and their token for it. A token is never an argument: other
//! users of the machine see those.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tempmail_client::{Client, Error, HttpTransport, LiveToken};
use tempmail_runtime::config::ClientEnvironment;

use super::data_directory;
use super::mail::instead::{self, Instead};
use super::up::{CREDENTIALS_FILE, Credentials};

/// Which server a command uses, where neither environment nor configuration file name one.
#[derive(Debug, clap::Args)]
pub(super) struct ClientArgs {
    /// Data directory of the running `tempmail up` to use [default: ~/.local/share/tempmail, as root /var/lib/tempmail]
    #[arg(long, global = true, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
}

/// A server, the token for it, and where both are from.
struct Server {
    url: String,
    token: String,
    source: String,
}

/// `client.json`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientFile {
    url: String,
    token: String,
}

impl ClientArgs {
    /// A client of the server that the environment names, else of the one that the configuration file names, else of
    /// the `tempmail up` on this machine.
    ///
    /// # Errors
    /// None of them names one; others may read the file; its contents are invalid.
    pub(super) fn client(&self) -> Result<Client, ClientFailure> {
        let Server { url, token, source } = self.server()?;
        let invalid = |error: &dyn std::error::Error| ClientFailure::Usage(format!("{source}: {error}"));
        let token = LiveToken::parse(token.trim()).map_err(|error| invalid(&error))?;
        let transport = HttpTransport::new(&url).map_err(|error| invalid(&error))?;
        Ok(Client::new(Arc::new(transport), token))
    }

    fn server(&self) -> Result<Server, ClientFailure> {
        let environment =
            ClientEnvironment::read().map_err(|error| ClientFailure::Usage(error.to_string()))?;
        if let Some(server) = of_environment(&environment)? {
            return Ok(server);
        }
        if let Some(file) = &environment.file
            && let Some(server) = of_file(file)?
        {
            return Ok(server);
        }
        if let Some(server) = self.of_up()? {
            return Ok(server);
        }
        let file = environment.file.map_or_else(String::new, |file| format!(", write {}", file.display()));
        Err(ClientFailure::Usage(format!(
            "no server is known: set TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN{file}, or start `tempmail up`"
        )))
    }

    /// The `up` of this machine. Its token goes to loopback only.
    fn of_up(&self) -> Result<Option<Server>, ClientFailure> {
        let Some(directory) = self.data_dir.clone().or_else(data_directory::default_path) else {
            return Ok(None);
        };
        let path = directory.join(CREDENTIALS_FILE);
        let Some(text) = read_private(&path)? else { return Ok(None) };
        let Credentials { base_url: url, live_token: token, .. } = parse(&path, &text)?;
        if !HttpTransport::is_loopback(&url) {
            return Err(ClientFailure::Usage(format!(
                "{} is for {url}, which is not this machine: set TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN",
                path.display()
            )));
        }
        Ok(Some(Server { url, token, source: path.display().to_string() }))
    }
}

/// Both variables or none: a token goes to the server that it was set for.
fn of_environment(environment: &ClientEnvironment) -> Result<Option<Server>, ClientFailure> {
    let alone = |set: &str, missing: &str| {
        ClientFailure::Usage(format!("{set} is set, and {missing} is not: set both, or neither"))
    };
    match (&environment.url, &environment.token) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(alone("TEMPMAIL_CLIENT_URL", "TEMPMAIL_CLIENT_TOKEN")),
        (None, Some(_)) => Err(alone("TEMPMAIL_CLIENT_TOKEN", "TEMPMAIL_CLIENT_URL")),
        (Some(url), Some(token)) => {
            let source = String::from("TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN");
            Ok(Some(Server { url: url.clone(), token: token.expose().to_owned(), source }))
        }
    }
}

fn of_file(path: &Path) -> Result<Option<Server>, ClientFailure> {
    let Some(text) = read_private(path)? else { return Ok(None) };
    let ClientFile { url, token } = parse(path, &text)?;
    Ok(Some(Server { url, token, source: path.display().to_string() }))
}

/// The contents of a file, which an error never quotes.
fn parse<'a, T: Deserialize<'a>>(path: &Path, text: &'a str) -> Result<T, ClientFailure> {
    serde_json::from_str(text).map_err(|_other| {
        let expected = r#"{"url": "https://…", "token": "tm_live_…"}"#;
        ClientFailure::Usage(format!("{} is not JSON of the form {expected}", path.display()))
    })
}

const NOTHING_IN_TIME: &str = "no such mail came in time";

/// What a command reports instead of a result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientFailure {
    /// The arguments or the configuration are wrong.
    #[error("{0}")]
    Usage(String),
    /// Nothing came in time.
    #[error("{NOTHING_IN_TIME}{}", instead::lines(.instead.as_deref()))]
    NothingInTime {
        /// Where to continue; empty where no call was answered.
        next_since: String,
        /// What came instead; `None` where the server does not tell.
        instead: Option<Vec<Instead>>,
    },
    /// The links of the mail lead to other hosts.
    #[error("the mail's link leads to another host: {}", .hosts.join(", "))]
    OtherHost {
        /// Where they lead.
        hosts: Vec<String>,
        /// The cursor behind the mail.
        next_since: String,
    },
    /// The server refused.
    #[error("{0}")]
    Refused(Error),
    /// There is no server, or none that serves.
    #[error("{0}")]
    Unreachable(Error),
}

impl ClientFailure {
    /// The exit code of the command.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NothingInTime { .. } => 3,
            Self::Refused(_) | Self::OtherHost { .. } => 4,
            Self::Unreachable(_) => 5,
        }
    }

    /// What `--json` prints: `{error, message}`, and `next_since`, `instead` and `hosts` where there are any.
    pub(super) fn json(&self) -> Value {
        let message = match self {
            Self::NothingInTime { .. } => NOTHING_IN_TIME.to_owned(),
            other => other.to_string(),
        };
        let mut json = json!({"error": self.name(), "message": message});
        if let Self::NothingInTime { instead, .. } = self {
            json["instead"] = json!(instead);
        }
        if let Self::NothingInTime { next_since, .. } | Self::OtherHost { next_since, .. } = self {
            json["next_since"] = next_since.as_str().into();
        }
        if let Self::OtherHost { hosts, .. } = self {
            json["hosts"] = json!(hosts);
        }
        json
    }

    fn name(&self) -> &str {
        match self {
            Self::Usage(_) => "usage",
            Self::NothingInTime { .. } => "nothing_in_time",
            Self::OtherHost { .. } => "other_host",
            Self::Refused(error) if !error.code().is_empty() => error.code(),
            Self::Refused(_) => "refused",
            Self::Unreachable(_) => "unreachable",
        }
    }
}

impl From<Error> for ClientFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(sentence) => Self::Usage(sentence),
            // Whatever is there, it is no tempmail.
            Error::Unexpected(_) => Self::Unreachable(error),
            error if error.is_unavailable() => Self::Unreachable(error),
            error => Self::Refused(error),
        }
    }
}

/// Bytes of a file that are read.
const FILE_MAX: u64 = 64 << 10;
/// Permissions of the group and of others.
const OTHERS: u32 = 0o077;

/// The text of a file of this user (or of root) that nobody else may read or write; `None` where there is none.
///
/// # Errors
/// Others may read it; it can't be read.
fn read_private(path: &Path) -> Result<Option<String>, ClientFailure> {
    let unreadable =
        |error: std::io::Error| ClientFailure::Usage(format!("can't read {}: {error}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    // Of the file that is open: another one may have its name by now.
    let metadata = file.metadata().map_err(unreadable)?;
    let user = nix::unistd::geteuid().as_raw();
    if ![user, 0].contains(&metadata.uid()) {
        return Err(ClientFailure::Usage(format!("{} belongs to another user", path.display())));
    }
    if metadata.mode() & OTHERS != 0 {
        let path = path.display();
        return Err(ClientFailure::Usage(format!(
            "{path} has a token and others may read it: `chmod 600 {path}`"
        )));
    }
    let mut text = String::new();
    file.take(FILE_MAX).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn reads_a_file_that_only_its_owner_may_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client.json");
        assert!(read_private(&path).unwrap().is_none());
        write(&path, "text").unwrap();
        for (mode, is_private) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)]
        {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_private(&path).is_ok(), is_private, "{mode:o}");
        }
    }
}
