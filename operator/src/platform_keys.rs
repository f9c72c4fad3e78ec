//! The keys of the installation: a Secret in the operator's namespace, which is created once and never changed.
//! The pods of the other roles mount it and wait for it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};
use rand::TryRng as _;
use serde_json::json;
use tempmail_model::key::MasterKey;
use tempmail_runtime::config::{Config, KeyRing};
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;

/// Entry that holds `jwt.keys`, as `TEMPMAIL_JWT__KEYS_FILE` reads it.
const JWT: &str = "jwt.yaml";
/// Entry that holds `secrets.keys`, as `TEMPMAIL_SECRETS__KEYS_FILE` reads it.
const SECRETS: &str = "secrets.yaml";
/// Field manager of the Secret.
const FIELD_MANAGER: &str = "tempmail-operator/keys";
/// Component of `/readyz`.
const COMPONENT: &str = "keys";
/// Interval between attempts while the API server does not answer, or refuses.
const RETRY: Duration = Duration::from_secs(2);

/// The keys of `secrets.keys` from the Secret `name` in the namespace of `client`, which is created if it does
/// not exist. Of several operators that create it at once, the first one wins. While the API server fails, this
/// waits and reports so in `readiness`.
///
/// # Errors
/// The Secret holds no valid keys, or the operating system provides no randomness.
pub async fn platform_keys(
    client: &Client,
    name: &str,
    readiness: &Readiness,
) -> anyhow::Result<Vec<MasterKey>> {
    let secret = loop {
        match find_or_create(client, name).await? {
            Ok(secret) => break secret,
            Err(error) => {
                tracing::warn!(%error, secret = name, "the keys can't be read");
                readiness.set_not_ready(COMPONENT, format!("the Secret {name} can't be read"));
                tokio::time::sleep(RETRY).await;
            }
        }
    };
    readiness.set_ready(COMPONENT);
    let config = Config { jwt: ring(&secret, JWT)?, secrets: ring(&secret, SECRETS)?, ..Config::default() };
    let keys = Keys::from_config(&config).with_context(|| format!("the Secret {name}"))?;
    Ok(keys.secrets)
}

/// The inner error is one of the API server, which is retried.
async fn find_or_create(client: &Client, name: &str) -> anyhow::Result<Result<Secret, kube::Error>> {
    let api: Api<Secret> = Api::default_namespaced(client.clone());
    match api.get_opt(name).await {
        Ok(Some(secret)) => return Ok(Ok(secret)),
        Ok(None) => {}
        Err(error) => return Ok(Err(error)),
    }
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match api.create(&parameters, &new_secret(name)?).await {
        // Another operator created it first.
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(api.get(name).await),
        created => {
            if created.is_ok() {
                tracing::info!(secret = name, "the keys of the installation were created");
            }
            Ok(created)
        }
    }
}

fn new_secret(name: &str) -> anyhow::Result<Secret> {
    let entries = [(JWT, "jwt-1"), (SECRETS, "secrets-1")].map(|(entry, kid)| {
        let keys = json!([{ "kid": kid, "secret": random_secret()? }]);
        anyhow::Ok((entry.to_owned(), format!("{keys}\n")))
    });
    let labels = [("app.kubernetes.io/managed-by".to_owned(), "tempmail-operator".to_owned())];
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        string_data: Some(entries.into_iter().collect::<anyhow::Result<BTreeMap<_, _>>>()?),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    })
}

/// 32 random bytes as hexadecimal digits.
fn random_secret() -> anyhow::Result<String> {
    let mut random = [0_u8; 32];
    rand::rngs::SysRng.try_fill_bytes(&mut random).context("the operating system provides no randomness")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn ring(secret: &Secret, entry: &str) -> anyhow::Result<KeyRing> {
    let text = secret.data.as_ref().and_then(|data| std::str::from_utf8(&data.get(entry)?.0).ok());
    // The parse error is not shown, since it could quote a key.
    text.and_then(KeyRing::parse)
        .with_context(|| format!("the entry {entry} of the Secret of the keys is no list of keys"))
}
