use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared_field::{Condition, KindStatus, SecretTarget, TenantRef, conditions};

/// An API token that authenticates as a tenant over HTTP.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tempmail.dev",
    version = "v1alpha1",
    kind = "ApiToken",
    plural = "apitokens",
    shortname = "mtok",
    category = "tempmail",
    namespaced,
    status = "ApiTokenStatus",
    derive = "PartialEq",
    doc = "An API token that authenticates as a tenant over HTTP.",
    selectable = ".spec.tenantRef.name",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secretName"),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expiresAt"),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name", priority = "1"),
    validation = Rule::new("self.metadata.name.size() <= 240").message("the object's name has at most 240 characters"),
    validation = Rule::new("(has(self.spec.secret) ? self.spec.secret.name : self.metadata.name + '-token') == (has(oldSelf.spec.secret) ? oldSelf.spec.secret.name : self.metadata.name + '-token')")
        .message("the Secret's name can't be changed: delete the object and create it again")
)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenSpec {
    /// The tenant that the token authenticates as.
    pub tenant_ref: TenantRef,
    /// The API that accepts the token: Pro is `/pro/api`, Live is `/v1`.
    #[serde(rename = "type")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("type can't be changed: create another ApiToken"))]
    pub kind: TokenType,
    /// The Secret that the operator writes the token to, under the key `token`. Defaults to the Secret
    /// `<name>-token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretTarget>,
    /// When the token expires. Defaults to never. A time that has passed already is refused when the object
    /// is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub expires_at: Option<Time>,
    /// What the operator does when the Secret is missing or no longer holds the token: Rotate issues a new
    /// token and revokes the previous one, Stall keeps the token valid and waits. Defaults to Rotate.
    #[serde(default = "OnSecretLoss::rotate")]
    pub on_secret_loss: OnSecretLoss,
}

/// The API that accepts a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TokenType {
    /// `/pro/api`: `tm_pro_…`.
    Pro,
    /// `/v1`: `tm_live_…`.
    Live,
}

/// What the operator does when a token's Secret is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnSecretLoss {
    /// Issue a new token and revoke the previous one.
    Rotate,
    /// Keep the token valid and wait for `tempmail.dev/rotate-requested-at`.
    Stall,
}

/// Observed state of an ApiToken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenStatus {
    /// The `metadata.generation` that the operator observed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// ID of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// The last four characters of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Name of the Secret that holds the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Value of `tempmail.dev/rotate-requested-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_rotate_at: Option<String>,
    /// Ready and Accepted; also Reconciling, Stalled and ReconciliationPaused, only while they are True.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl KindStatus for ApiTokenStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn set_observed_generation(&mut self, generation: Option<i64>) {
        self.observed_generation = generation;
    }
}

impl OnSecretLoss {
    fn rotate() -> Self {
        Self::Rotate
    }
}
