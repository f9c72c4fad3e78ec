//! Definitions of tempmail's kinds (CRDs) that a test changes. The cluster is not reused afterwards.

use serde_json::{Value, json};

use super::cluster::Cluster;

impl Cluster {
    /// Removes the validation of a kind's spec (`customdomains`), as the definitions of another version
    /// might. The API server enforces it for some moments longer.
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive).
    pub async fn remove_spec_validation(&self, plural: &str) {
        self.do_not_reuse();
        let version = "/spec/versions/0";
        let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let path = format!("{version}/schema/openAPIV3Schema/properties/spec");
        let mut patch = vec![json!({"op": "replace", "path": path, "value": spec})];
        if plural != "tenants" {
            patch.push(json!({"op": "remove", "path": format!("{version}/selectableFields")}));
        }
        let (definition, patch) = (format!("{plural}.tempmail.dev"), Value::from(patch).to_string());
        let patched = self.kubectl(&["patch", "crd", &definition, "--type=json", "-p", &patch]).await;
        patched.expect("the definition is patched");
    }

    /// Deletes the definition of a kind (`mailboxes`).
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive).
    pub async fn delete_definition(&self, plural: &str) {
        self.do_not_reuse();
        let definition = format!("{plural}.tempmail.dev");
        self.kubectl(&["delete", "crd", &definition]).await.expect("the definition is deleted");
    }

    /// Applies the definitions of all kinds.
    ///
    /// # Panics
    /// The API server refuses them.
    pub async fn apply_definitions(&self) {
        let definitions = tempmail_crds::manifests().expect("the definitions can be written");
        self.apply(&definitions).await.expect("the API server accepts the definitions");
    }
}
