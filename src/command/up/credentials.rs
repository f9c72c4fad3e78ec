//! `credentials.json`: what the user of this machine signs in with.

use serde::{Deserialize, Serialize};

/// Name of the file with the credentials, in the data directory.
pub(in crate::command) const CREDENTIALS_FILE: &str = "credentials.json";

/// `credentials.json`
#[derive(Serialize, Deserialize)]
pub(in crate::command) struct Credentials {
    /// Where HTTP is served.
    pub(in crate::command) base_url: String,
    /// Host and port of the SMTP server.
    pub(super) smtp: String,
    /// The token for `/pro/api`.
    pub(super) pro_token: String,
    /// The token for `/v1`.
    pub(in crate::command) live_token: String,
}
