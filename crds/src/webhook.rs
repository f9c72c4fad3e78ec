use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, conditions};
use crate::reference::{SecretTarget, TenantRef};

/// An HTTPS URL that is told of a tenant's mail.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tempmail.dev",
    version = "v1alpha1",
    kind = "Webhook",
    plural = "webhooks",
    shortname = "mwh",
    category = "tempmail",
    namespaced,
    status = "WebhookStatus",
    derive = "PartialEq",
    doc = "An HTTPS URL that is told of a tenant's mail.",
    selectable = ".spec.tenantRef.name",
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.url"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        priority = "1"
    ),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secretName", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 240").message("the object's name has at most 240 characters")
)]
#[x_kube(validation = Rule::new("has(self.secret) == has(oldSelf.secret)")
    .message("secret can't be added or removed: delete the object and make it again"))]
#[serde(rename_all = "camelCase")]
pub struct WebhookSpec {
    /// The tenant whose mail it is told of.
    #[x_kube(validation = Rule::new("self == oldSelf").message("tenantRef can't be changed: delete the object and make it again"))]
    pub tenant_ref: TenantRef,
    /// Where events are sent: https, a host name and no address, no user info, no fragment.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != 'localhost'")
        .message("url is an https URL with a public host name, such as https://hooks.example.com/mail"))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^[^/]*//([A-Za-z0-9_-]+[.])*[A-Za-z][A-Za-z0-9_-]*[.]?(:[0-9]+)?([/?][^#\s\\]*)?$')")
        .message("url has a host name and no address, no user name or password, no fragment and no white space"))]
    pub url: String,
    /// What it is told of.
    #[serde(default = "WebhookSpec::events")]
    #[schemars(schema_with = "events")]
    pub events: Vec<String>,
    /// The Secret with the signing secret, under `secret`; without it `<name>-webhook`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("secret.name can't be changed: delete the object and make it again"))]
    pub secret: Option<SecretTarget>,
}

/// What the operator knows of a Webhook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    /// Generation of the spec that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<String>,
    /// Active, or Disabled after ten failures in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<WebhookState>,
    /// The Secret with the signing secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Value of `tempmail.dev/rotate-requested-at` that was carried out last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_rotate_at: Option<String>,
    /// Value of `tempmail.dev/reenable-requested-at` that was carried out last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reenable_at: Option<String>,
    /// Ready, Accepted, Delivering; while true: Reconciling, Stalled, ReconciliationPaused.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Whether a webhook is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WebhookState {
    /// It is.
    Active,
    /// It is not: ten attempts in a row failed.
    Disabled,
}

impl WebhookSpec {
    fn events() -> Vec<String> {
        vec!["email.received".to_owned()]
    }
}

/// The events there are.
fn events(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "description": "What it is told of.",
        "type": "array",
        "minItems": 1,
        "maxItems": 1,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "enum": ["email.received"]},
        "default": ["email.received"],
    })
}
