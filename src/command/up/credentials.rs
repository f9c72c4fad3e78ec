//! Files of secrets in the data directory: `keys.json`, generated at the first start and kept from then on; `credentials.json`,
//! what the user of this machine signs in with; and the link that signs in to the dashboard, another one at each start.

use std::path::Path;

use anyhow::Context as _;
use rand::TryRng as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tempmail_api_server::SignInLink;
use tempmail_runtime::config::{Config, KeyRing};

use super::settings::{UpArgs, UpSettings};
use crate::command::data_directory::{self, DataDirectory};
use crate::roles::Roles;

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

/// The file, which also is a valid configuration file that sets these keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    jwt: KeyRing,
    secrets: KeyRing,
}

/// Puts the keys into the configuration, unless file or environment set them.
pub(super) fn load_keys(
    settings: &mut UpSettings,
    args: &UpArgs,
    directory: &DataDirectory,
) -> anyhow::Result<()> {
    if settings.has_keys && args.keys.is_none() {
        return Ok(());
    }
    let own = directory.path().join("keys.json");
    let keys = read_or_generate(args.keys.as_deref().unwrap_or(&own))?;
    settings.config.jwt = keys.jwt;
    settings.config.secrets = keys.secrets;
    Ok(())
}

fn read_or_generate(path: &Path) -> anyhow::Result<KeyFile> {
    if data_directory::read(path)?.is_none() {
        let text = new_keys()?;
        data_directory::write_private_new(path, &text)?;
    }
    let text = data_directory::read(path)?.with_context(|| format!("{} was removed", path.display()))?;
    // The parser's message might quote a key.
    serde_json::from_str(&text).ok().with_context(|| format!("{} is not a key file", path.display()))
}

fn new_keys() -> anyhow::Result<String> {
    let ring = |kid: &str| anyhow::Ok(json!({"keys": [{"kid": kid, "secret": secret()?}]}));
    let keys = json!({"jwt": ring("jwt-1")?, "secrets": ring("secrets-1")?});
    Ok(format!("{}\n", serde_json::to_string_pretty(&keys)?))
}

/// 32 random bytes of the operating system as hex digits.
fn secret() -> anyhow::Result<String> {
    let mut random = [0_u8; 32];
    rand::rngs::SysRng.try_fill_bytes(&mut random).context("the operating system provides no randomness")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The file with the link, for those who see no terminal. Only this user can read it.
pub(super) const SIGN_IN_LINK_FILE: &str = "sign-in-link";

/// Adds a link to the roles, and writes its file. Returns its URL; `None` where there is no page.
///
/// # Errors
/// The operating system provides no randomness; the file can't be written.
pub(super) fn with_sign_in_link(
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
    data_directory::write_private(&directory.path().join(SIGN_IN_LINK_FILE), &format!("{url}\n"))?;
    Ok((roles.with_sign_in_link(link), Some(url)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn generates_keys_once_and_only_for_this_user() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys.json");
        let generated = read_or_generate(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let kept = read_or_generate(&path).unwrap();
        assert_eq!(generated.jwt.keys[0].secret.expose(), kept.jwt.keys[0].secret.expose());
        assert_ne!(generated.jwt.keys[0].secret.expose(), generated.secrets.keys[0].secret.expose());
        assert_eq!(directory.path().read_dir().unwrap().count(), 1);
        std::fs::write(&path, "{\"hush\": 1").unwrap();
        let error = read_or_generate(&path).err().unwrap().to_string();
        assert!(error.ends_with("is not a key file"), "{error}");
    }
}
