//! The server that `tempmail mail` and `tempmail mcp` use, and their token for it. A token is never an argument: other
//! users of the machine see those.

mod failure;
mod private_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tempmail_client::{Client, HttpTransport, LiveToken};
use tempmail_runtime::config::ClientEnvironment;

use super::data_directory;
use super::up::{CREDENTIALS_FILE, Credentials};
pub(super) use failure::ClientFailure;

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
        let Some(text) = private_file::read(&path)? else { return Ok(None) };
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
    let Some(text) = private_file::read(path)? else { return Ok(None) };
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
