//! The directory of the server's socket.

use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::error::Error;
use crate::random::random_hex;

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
pub(crate) fn create_directory(account: &Account, preferred: &Path) -> Result<PathBuf, Error> {
    let length = preferred.as_os_str().len() + "/.s.PGSQL.5432".len();
    let plain = preferred.to_str().is_some_and(|text| !text.contains([',', '"', '\'', '\\', '\n']));
    if length <= PATH_MAX && plain {
        // The lock file of a killed server names a process that may be a zombie or another one by
        // now; Postgres would mistake either for the server.
        if preferred.exists() {
            std::fs::remove_dir_all(preferred).map_err(Error::file("can't remove", preferred))?;
        }
        account.create_private_directory(preferred)?;
        return Ok(preferred.to_owned());
    }
    let directory = short_root().join(format!("{SHORT_PREFIX}{}", random_hex::<8>()?));
    account.create_private_directory(&directory)?;
    Ok(directory)
}
