//! The server of a directory, found by a process that did not start it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::Error;
use crate::leftover::{PidFile, is_postgres_in};
use crate::server::socket_url;

/// URL of a database of the server that runs in `directory`, with the superuser's password in
/// it. Only who may read the directory, and enter the socket's, can use it: the user that
/// started it, and root.
///
/// # Errors
/// [`Error::NotRunning`]; [`Error::File`] where the directory is somebody else's.
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
