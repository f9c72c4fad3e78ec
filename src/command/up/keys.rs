//! `keys.json`: generated at the first start and kept from then on.

use std::path::Path;

use anyhow::Context as _;
use rand::TryRng as _;
use serde::Deserialize;
use serde_json::json;
use tempmail_runtime::config::KeyRing;

use super::settings::UpSettings;
use super::up_args::UpArgs;
use crate::command::data_directory::{self, DataDirectory};

/// The file, which also is a valid configuration file that sets these keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    jwt: KeyRing,
    secrets: KeyRing,
}

/// Puts the keys into the configuration, unless file or environment set them.
pub(super) fn load(
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
