//! The link by which the user of `up` signs in to the dashboard: another one at each start, and it works once.

use anyhow::Context as _;
use tempmail_api_server::SignInLink;
use tempmail_runtime::config::Config;

use super::credentials::Credentials;
use crate::command::data_directory::{self, DataDirectory};
use crate::roles::Roles;

/// The file with the link, for those who see no terminal. Only this user can read it.
pub(super) const FILE: &str = "sign-in-link";

/// Adds a link to the roles, and writes its file. Returns its URL; `None` where there is no page.
///
/// # Errors
/// The operating system provides no randomness; the file can't be written.
pub(super) fn with_link(
    roles: Roles,
    config: &Config,
    directory: &DataDirectory,
    credentials: &Credentials,
) -> anyhow::Result<(Roles, Option<String>)> {
    if !config.http.page {
        return Ok((roles, None));
    }
    let link = SignInLink::generate(&credentials.pro_token)
        .context("the operating system provides no randomness")?;
    let url = format!("{}/dashboard#/sign-in/{}", config.http.base_url, link.code());
    data_directory::write_private(&directory.path().join(FILE), &format!("{url}\n"))?;
    Ok((roles.with_sign_in_link(link), Some(url)))
}
