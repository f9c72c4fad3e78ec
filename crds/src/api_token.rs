use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, conditions};
use crate::reference::{SecretTarget, TenantRef};

/// A token that acts for a tenant over HTTP.
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
    doc = "A token that acts for a tenant over HTTP.",
    selectable = ".spec.tenantRef.name",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secretName"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 240").message("the object's name has at most 240 characters")
)]
#[x_kube(validation = Rule::new("has(self.secret) == has(oldSelf.secret)")
    .message("secret can't be added or removed: delete the object and make it again"))]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenSpec {
    /// The tenant that it acts for.
    #[x_kube(validation = Rule::new("self == oldSelf").message("tenantRef can't be changed: delete the object and make it again"))]
    pub tenant_ref: TenantRef,
    /// Pro tokens are for `/pro/api`, live ones for `/v1`.
    #[serde(rename = "type")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("type can't be changed: make another ApiToken"))]
    pub kind: TokenType,
    /// The Secret with the token, under `token`; without it `<name>-token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("secret.name can't be changed: delete the object and make it again"))]
    pub secret: Option<SecretTarget>,
    /// From when on the token is refused; without it never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// What to do when the Secret is gone or no longer holds the token.
    #[serde(default = "OnSecretLoss::rotate")]
    pub on_secret_loss: OnSecretLoss,
}

/// Which surface a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TokenType {
    /// `/pro/api`: `tm_pro_…`.
    Pro,
    /// `/v1`: `tm_live_…`.
    Live,
}

/// What to do when a token's Secret is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnSecretLoss {
    /// Make a new token; the former one is refused from then on.
    Rotate,
    /// Wait for `tempmail.dev/rotate-requested-at`; the former one works on.
    Stall,
}

/// What the operator knows of an ApiToken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenStatus {
    /// Generation of the spec that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// The token's last four characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The Secret with the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Value of `tempmail.dev/rotate-requested-at` that was carried out last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_rotate_at: Option<String>,
    /// Ready, Accepted; while true: Reconciling, Stalled, ReconciliationPaused.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl OnSecretLoss {
    fn rotate() -> Self {
        Self::Rotate
    }
}
