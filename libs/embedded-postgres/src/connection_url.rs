//! Connection URLs, of a server that this process started or of one that runs already.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::Error;
use crate::pid_file::PidFile;
use crate::process::is_postgres_in;

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
