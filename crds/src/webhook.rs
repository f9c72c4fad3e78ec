use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared_field::{Condition, KindStatus, SecretTarget, TenantRef, conditions};

/// An HTTPS URL that receives events about a tenant's mail.
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
    doc = "An HTTPS URL that receives events about a tenant's mail.",
    selectable = ".spec.tenantRef.name",
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.url"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name", priority = "1"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secretName", priority = "1"),
    validation = Rule::new("self.metadata.name.size() <= 240").message("the object's name has at most 240 characters"),
    validation = Rule::new("(has(self.spec.secret) ? self.spec.secret.name : self.metadata.name + '-webhook') == (has(oldSelf.spec.secret) ? oldSelf.spec.secret.name : self.metadata.name + '-webhook')")
        .message("the Secret's name can't be changed: delete the object and create it again")
)]
#[serde(rename_all = "camelCase")]
pub struct WebhookSpec {
    /// The tenant whose mail causes the events.
    pub tenant_ref: TenantRef,
    /// Where events are sent: an https URL with a public host name (not an IP address) and port 443 or 8443,
    /// without user info and without a fragment. With `webhooks.allowed_networks`, any host name and port.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != 'localhost'")
        .message("url is an https URL with a public host name, such as https://hooks.example.com/mail"))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^[^/]*//([A-Za-z0-9_-]+[.])*[A-Za-z][A-Za-z0-9_-]*[.]?(:[0-9]+)?([/?][^#\s\\]*)?$')")
        .message("url has a host name and no address, no user name or password, no fragment and no white space"))]
    pub url: String,
    /// The events to send. Defaults to email.received.
    #[serde(default = "WebhookSpec::events")]
    #[schemars(schema_with = "events")]
    pub events: Vec<String>,
    /// The Secret that the operator writes the signing secret to, under the key `secret`. Defaults to the
    /// Secret `<name>-webhook`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretTarget>,
}

/// Observed state of a Webhook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    /// The `metadata.generation` that the operator observed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// ID of the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<String>,
    /// Whether events are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<WebhookState>,
    /// Name of the Secret that holds the signing secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Value of `tempmail.dev/rotate-requested-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_rotate_at: Option<String>,
    /// Value of `tempmail.dev/reenable-requested-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reenable_at: Option<String>,
    /// Ready, Accepted and Delivering; also Reconciling, Stalled and ReconciliationPaused, only while they are
    /// True.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl KindStatus for WebhookStatus {
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

/// Whether a webhook receives events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WebhookState {
    /// Events are sent.
    Active,
    /// Events are not sent, because ten attempts in a row failed.
    Disabled,
}

impl WebhookSpec {
    fn events() -> Vec<String> {
        vec!["email.received".to_owned()]
    }
}

/// Schema of the events to send.
fn events(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "description": "The events to send. Defaults to email.received.",
        "type": "array",
        "minItems": 1,
        "maxItems": 1,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "enum": ["email.received"]},
        "default": ["email.received"],
    })
}
