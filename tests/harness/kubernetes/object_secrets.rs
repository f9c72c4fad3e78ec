//! Secrets: their values, rotation, and Secrets that no object of tempmail owns.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::objects::Objects;
use super::status::secret_value;
use crate::wait::eventually;

impl Objects {
    /// Requests the rotation of an object's secret by an annotation of this value; does not wait.
    ///
    /// # Panics
    /// As [`Self::patch`].
    pub async fn request_rotation(&self, object: &str, value: &str) {
        self.annotate(object, "tempmail.dev/rotate-requested-at", value).await;
    }

    /// Requests the rotation of an object's secret, and returns when it is done.
    ///
    /// # Panics
    /// It never is.
    pub async fn rotate(&self, object: &str, value: &str) -> Value {
        self.request_rotation(object, value).await;
        self.wait_for_status(object, "lastHandledRotateAt", value).await
    }

    /// The value of a key in a Secret.
    ///
    /// # Panics
    /// There is none.
    pub async fn secret_value(&self, name: &str, key: &str) -> String {
        let secret = self.get(&format!("secret/{name}")).await;
        secret_value(&secret, key).unwrap_or_else(|| panic!("no {key} in {secret}"))
    }

    /// Waits until a key of a Secret has a value other than `former`, and returns the value.
    ///
    /// # Panics
    /// It never has.
    pub async fn wait_for_another_value(&self, name: &str, key: &str, former: &str) -> String {
        eventually(&format!("{name} has another {key}"), || async {
            let secret = self.get_opt(&format!("secret/{name}")).await?;
            secret_value(&secret, key).filter(|value| value != former)
        })
        .await
    }

    /// Writes a value into a Secret, as its owner may.
    ///
    /// # Panics
    /// There is no such Secret.
    pub async fn set_secret_value(&self, name: &str, key: &str, value: &str) {
        let patch = json!({"data": {key: BASE64_STANDARD.encode(value)}});
        self.patch(&format!("secret/{name}"), &patch).await;
    }

    /// A new Secret that no object of tempmail owns.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn create_unowned_secret(&self, name: &str) -> Value {
        self.try_create_secret(name, false).await.unwrap_or_else(|why| panic!("the Secret {name}: {why}"))
    }

    /// Whether the API server would take a new Secret.
    ///
    /// # Errors
    /// The message of the API server that refuses it.
    pub async fn may_create_secret(&self) -> Result<(), String> {
        self.try_create_secret("probe", true).await.map(drop)
    }

    async fn try_create_secret(&self, name: &str, dry_run: bool) -> Result<Value, String> {
        let secret = json!({"metadata": {"name": name}, "stringData": {"theirs": "1"}}).to_string();
        let path = format!("{}{}", self.path_of_kind("secret"), if dry_run { "?dryRun=All" } else { "" });
        let post = || Request::post(&path).header(CONTENT_TYPE, "application/json");
        self.request(post, secret.as_bytes()).await.map_err(|status| status.message)
    }
}
