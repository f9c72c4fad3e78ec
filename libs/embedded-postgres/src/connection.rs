//! The socket of a server, and URLs of its databases.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::directory::random_hex;
use crate::error::Error;
use crate::process::{PidFile, is_postgres_in};

/// Where a socket directory goes whose preferred path is too long.
pub(crate) fn short_root() -> PathBuf {
    PathBuf::from("/tmp")
}

/// Prefix of their names.
pub(crate) const SHORT_PREFIX: &str = "tempmail-postgres-";

/// Bytes of a socket's path at most (`sun_path` without its terminator).
const PATH_MAX: usize = 107;

/// Creates an empty directory for the socket: `preferred`, or one with a short path if `preferred`
/// is too long or has characters that the setting `unix_socket_directories` can't hold.
pub(crate) fn create_socket_directory(account: &Account, preferred: &Path) -> Result<PathBuf, Error> {
    let length = preferred.as_os_str().len() + "/.s.PGSQL.5432".len();
    let plain = preferred.to_str().is_some_and(|text| !text.contains([',', '"', '\'', '\\', '\n']));
    if length <= PATH_MAX && plain {
        // The lock file of a killed server names a process that may be a zombie or another one by
        // now; Postgres would mistake either for the server.
        if preferred.exists() {
            fs::remove_dir_all(preferred).map_err(Error::file("can't remove", preferred))?;
        }
        account.create_private_directory(preferred)?;
        return Ok(preferred.to_owned());
    }
    let directory = short_root().join(format!("{SHORT_PREFIX}{}", random_hex::<8>()?));
    account.create_private_directory(&directory)?;
    Ok(directory)
}

/// The database superuser.
pub(crate) const SUPERUSER: &str = "tempmail";

/// URL of a database of the server that runs in `directory`, with the superuser's password in
/// it. Only the user that started the server, and root, can read the directory and use the socket.
///
/// # Errors
/// [`Error::NotRunning`]; [`Error::File`] if the directory belongs to another user.
pub fn running_url(directory: &Path, database: &str) -> Result<String, Error> {
    let not_running = || Error::NotRunning(directory.to_owned());
    let path = directory.join("password");
    let password = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(not_running()),
        Err(error) => return Err(Error::file("can't read", &path)(error)),
    };
    let data = directory.join("data").canonicalize().map_err(|_| not_running())?;
    let file = PidFile::read(&data).filter(|file| is_postgres_in(file.pid, &data)).ok_or_else(not_running)?;
    let socket = file.socket.ok_or_else(not_running)?;
    Ok(socket_url(&socket, password.trim(), database))
}

/// URL of a database of the server with this socket directory.
pub(crate) fn socket_url(socket: &Path, password: &str, database: &str) -> String {
    let host = percent_encoded(&socket.to_string_lossy());
    // The parameter overrides `localhost`: a URL with a user must have a host.
    format!("postgres://{SUPERUSER}:{password}@localhost/{database}?host={host}")
}

/// All but unreserved characters (RFC 3986) as `%XX`.
fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, octet| {
        if octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(octet));
        } else {
            encoded.push_str(&format!("%{octet:02X}"));
        }
        encoded
    })
}
