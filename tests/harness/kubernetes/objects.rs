//! Objects of a cluster, named as `kubectl` names them (`customdomain/mail`), without the cost of a
//! process for each request.

use std::sync::LazyLock;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Builder;
use kube::Client;
use serde_json::{Value, json};
use uuid::Uuid;

use super::status::secret_value;
use crate::wait::{DEADLINE, eventually, next_probe};

/// The field manager of what tests apply.
const MANAGER: &str = "tempmail-tests";

/// The kinds of tempmail: the kind in lower case, its plural, and whether its objects are in namespaces.
static KINDS: LazyLock<Vec<(String, String, bool)>> = LazyLock::new(|| {
    let specs = tempmail_crds::all().into_iter().map(|definition| definition.spec);
    specs
        .map(|spec| (spec.names.kind.to_lowercase(), spec.names.plural, spec.scope == "Namespaced"))
        .collect()
});

/// A resource that tests name by its kind in lower case: path of its group and version, plural, and
/// whether its objects are in namespaces.
fn resource(kind: &str) -> (&'static str, String, bool) {
    if let Some((_, plural, is_namespaced)) = KINDS.iter().find(|(own, ..)| own == kind) {
        return ("apis/tempmail.dev/v1alpha1", plural.clone(), *is_namespaced);
    }
    match kind {
        "secret" | "configmap" => ("api/v1", format!("{kind}s"), true),
        "quota" => ("api/v1", "resourcequotas".to_owned(), true),
        "namespace" => ("api/v1", "namespaces".to_owned(), false),
        "event" => ("apis/events.k8s.io/v1", "events".to_owned(), true),
        "lease" => ("apis/coordination.k8s.io/v1", "leases".to_owned(), true),
        "validatingadmissionpolicy" => {
            ("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies".to_owned(), false)
        }
        "validatingadmissionpolicybinding" => {
            ("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings".to_owned(), false)
        }
        _ => panic!("name the resource of {kind} here"),
    }
}

/// The objects of a namespace, and those that are in none. Requests are repeated while the API server is
/// unreachable.
#[derive(Clone)]
pub struct Objects {
    client: Client,
    namespace: String,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Objects {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    pub(super) fn path_of_kind(&self, kind: &str) -> String {
        match resource(kind) {
            (group, plural, true) => format!("/{group}/namespaces/{}/{plural}", self.namespace),
            (group, plural, false) => format!("/{group}/{plural}"),
        }
    }

    fn path(&self, object: &str) -> String {
        let (kind, name) = object.split_once('/').expect("an object is named `kind/name`");
        format!("{}/{name}", self.path_of_kind(kind))
    }

    /// Sends a request until the API server answers.
    pub(super) async fn request(
        &self,
        builder: impl Fn() -> Builder,
        body: &[u8],
    ) -> Result<Value, kube::core::Status> {
        let started = Instant::now();
        loop {
            let request = builder().body(body.to_vec()).expect("a request");
            match self.client.request::<Value>(request).await {
                Ok(answer) => return Ok(answer),
                Err(kube::Error::Api(status)) => return Err(*status),
                Err(error) => {
                    assert!(started.elapsed() < DEADLINE, "the API server does not answer: {error}");
                }
            }
            next_probe(started).await;
        }
    }

    async fn patch_as(&self, media_type: &str, path: &str, body: &[u8]) -> Result<Value, kube::core::Status> {
        self.request(|| Request::patch(path).header(CONTENT_TYPE, media_type), body).await
    }

    /// An object (`customdomain/mail`) as it is now.
    pub async fn get_opt(&self, object: &str) -> Option<Value> {
        match self.request(|| Request::get(self.path(object)), b"").await {
            Ok(shown) => Some(shown),
            Err(status) if status.code == 404 => None,
            Err(status) => panic!("{object} can't be read: {}", status.message),
        }
    }

    /// An object as it is now.
    ///
    /// # Panics
    /// There is no such object.
    pub async fn get(&self, object: &str) -> Value {
        self.get_opt(object).await.unwrap_or_else(|| panic!("there is no {object}"))
    }

    /// All objects of a kind (`event`).
    ///
    /// # Panics
    /// The API server refuses.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.request(|| Request::get(self.path_of_kind(kind)), b"").await;
        let mut list = list.unwrap_or_else(|status| panic!("{kind} can't be listed: {}", status.message));
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The events where those about an object are: in its namespace, or in `default` where it is in none.
    pub(super) async fn list_events_of(&self, object: &str) -> Vec<Value> {
        let (kind, _name) = object.split_once('/').expect("an object is named `kind/name`");
        let (_group, _plural, is_namespaced) = resource(kind);
        let namespace = if is_namespaced { self.namespace.clone() } else { "default".to_owned() };
        Self { client: self.client.clone(), namespace }.list("event").await
    }

    /// Applies an object of tempmail (`CustomDomain`) with this metadata beside its name, and this spec:
    /// both are fields of a YAML mapping in one line, such as `domain: example.com, deletionPolicy: Retain`.
    ///
    /// # Errors
    /// The message of the API server that refuses it.
    pub async fn try_apply_with(
        &self,
        kind: &str,
        name: &str,
        metadata: &str,
        spec: &str,
    ) -> Result<Value, String> {
        self.send_manifest(kind, name, metadata, spec, "").await
    }

    async fn send_manifest(
        &self,
        kind: &str,
        name: &str,
        metadata: &str,
        spec: &str,
        parameters: &str,
    ) -> Result<Value, String> {
        let manifest = format!(
            "{{apiVersion: tempmail.dev/v1alpha1, kind: {kind}, metadata: {{name: {name}, {metadata}}}, \
             spec: {{{spec}}}}}"
        );
        let object = self.path(&format!("{}/{name}", kind.to_lowercase()));
        let path = format!("{object}?fieldManager={MANAGER}&force=true&fieldValidation=Strict{parameters}");
        let applied = self.patch_as("application/apply-patch+yaml", &path, manifest.as_bytes()).await;
        applied.map_err(|status| status.message)
    }

    /// A new object of tempmail as the API server would store it.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn dry_run(&self, kind: &str, name: &str, spec: &str) -> Value {
        self.send_manifest(kind, name, "", spec, "&dryRun=All")
            .await
            .unwrap_or_else(|why| panic!("{kind} {name} is refused: {why}"))
    }

    /// Applies an object of tempmail (`SystemDomain`) with this spec, as [`Self::try_apply_with`] does.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn apply_object(&self, kind: &str, name: &str, spec: &str) -> Value {
        self.try_apply_with(kind, name, "", spec)
            .await
            .unwrap_or_else(|why| panic!("{kind} {name} is refused: {why}"))
    }

    /// Merges this into an object.
    ///
    /// # Errors
    /// The message of the API server that refuses it.
    pub async fn try_patch(&self, object: &str, patch: &Value) -> Result<Value, String> {
        let path = format!("{}?fieldManager={MANAGER}-patch", self.path(object));
        let patched =
            self.patch_as("application/merge-patch+json", &path, patch.to_string().as_bytes()).await;
        patched.map_err(|status| status.message)
    }

    /// Merges this into an object.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn patch(&self, object: &str, patch: &Value) -> Value {
        self.try_patch(object, patch).await.unwrap_or_else(|why| panic!("the patch of {object}: {why}"))
    }

    /// Sets an annotation of an object.
    ///
    /// # Panics
    /// As [`Self::patch`].
    pub async fn annotate(&self, object: &str, name: &str, value: &str) {
        self.patch(object, &json!({"metadata": {"annotations": {name: value}}})).await;
    }

    /// Removes an annotation of an object.
    ///
    /// # Panics
    /// As [`Self::patch`].
    pub async fn remove_annotation(&self, object: &str, name: &str) {
        self.patch(object, &json!({"metadata": {"annotations": {name: null}}})).await;
    }

    /// Makes the operator reconcile an object now: changes an annotation that means nothing to it.
    ///
    /// # Panics
    /// As [`Self::patch`].
    pub async fn trigger_reconcile(&self, object: &str) {
        self.annotate(object, "example.com/trigger", &Uuid::new_v4().to_string()).await;
    }

    /// Begins the deletion of an object.
    ///
    /// # Panics
    /// The API server refuses it, or there is no such object.
    pub async fn start_deletion(&self, object: &str) {
        let path = format!("{}?propagationPolicy=Background", self.path(object));
        let deleted = self.request(|| Request::delete(&path), b"").await;
        deleted.unwrap_or_else(|status| panic!("the deletion of {object}: {}", status.message));
    }

    /// Deletes an object, and returns when it is gone.
    ///
    /// # Panics
    /// It stays.
    pub async fn delete(&self, object: &str) {
        // The operator may create another one of its name at once.
        let uid = self.get(object).await["metadata"]["uid"].clone();
        self.start_deletion(object).await;
        self.wait_until_gone(object, &uid).await;
    }

    /// Deletes an object without its finalizers: the operator does not finalize it.
    ///
    /// # Panics
    /// It stays.
    pub async fn delete_without_finalizers(&self, object: &str) {
        self.patch(object, &json!({"metadata": {"finalizers": null}})).await;
        self.delete(object).await;
    }

    /// Deletes what an earlier test left in a cluster: the objects of tempmail in all namespaces, and the
    /// leases and Secrets of this namespace. No operator may be running.
    ///
    /// # Panics
    /// The API server refuses.
    pub(super) async fn delete_everything(&self) {
        for (kind, ..) in &*KINDS {
            let (group, plural, _) = resource(kind);
            let list = self.request(|| Request::get(format!("/{group}/{plural}")), b"").await;
            let list = list.unwrap_or_else(|status| panic!("{plural}: {}", status.message));
            for object in list["items"].as_array().into_iter().flatten() {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
                let name = object["metadata"]["name"].as_str().expect("an object has a name");
                let objects = Self::new(self.client.clone(), namespace);
                objects.delete_without_finalizers(&format!("{kind}/{name}")).await;
            }
        }
        for kind in ["lease", "secret"] {
            let deleted = self.request(|| Request::delete(self.path_of_kind(kind)), b"").await;
            deleted.unwrap_or_else(|status| panic!("{kind}s can't be deleted: {}", status.message));
        }
    }
}

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
