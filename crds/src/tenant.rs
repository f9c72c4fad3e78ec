use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, conditions};
use crate::policy::DeletionPolicy;

/// A team that has mailboxes, domains, webhooks and tokens of its own.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tempmail.dev",
    version = "v1alpha1",
    kind = "Tenant",
    plural = "tenants",
    shortname = "tmt",
    category = "tempmail",
    status = "TenantStatus",
    derive = "PartialEq",
    doc = "A team that has mailboxes, domains, webhooks and tokens of its own.",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        priority = "1"
    ),
    printcolumn(name = "Retention", type_ = "integer", json_path = ".spec.retentionHours", description = "hours"),
    printcolumn(name = "Suspended", type_ = "boolean", json_path = ".spec.suspended"),
    printcolumn(name = "Domains", type_ = "integer", json_path = ".status.usage.customDomains"),
    printcolumn(name = "Mailboxes", type_ = "integer", json_path = ".status.usage.mailboxes", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63").message("a tenant's name has at most 63 characters"),
    validation = Rule::new("self.metadata.name != 'platform'").message("the tenant 'platform' is built in")
)]
#[serde(rename_all = "camelCase")]
pub struct TenantSpec {
    /// Whether the tenant is refused everywhere. Its data stays.
    #[serde(default)]
    pub suspended: bool,
    /// How long mail is kept from now on, hours: 1, 6, 24, 72, 168 or 720.
    #[serde(default = "TenantSpec::retention_hours")]
    #[x_kube(validation = Rule::new("self in [1, 6, 24, 72, 168, 720]")
        .message("retentionHours is one of 1, 6, 24, 72, 168 and 720"))]
    pub retention_hours: i32,
    /// How much the tenant may have.
    #[serde(default)]
    pub limits: TenantLimits,
    /// Namespaces whose objects may refer to this tenant; absent or empty: none. The key
    /// `kubernetes.io/metadata.name` is the namespace's name, which nobody can forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector")]
    pub allowed_namespaces: Option<LabelSelector>,
    /// What deleting this object does: suspends the tenant (Retain) or deletes it with all it has.
    #[serde(default = "DeletionPolicy::retain")]
    pub deletion_policy: DeletionPolicy,
}

/// How much a tenant may have. What is there already stays when a limit is lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TenantLimits {
    /// Mailboxes.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub mailboxes: i32,
    /// Custom domains.
    #[schemars(range(min = 0, max = 100_000))]
    pub custom_domains: i32,
    /// Webhooks.
    #[schemars(range(min = 0, max = 10_000))]
    pub webhooks: i32,
    /// Tokens that are neither revoked nor expired.
    #[schemars(range(min = 0, max = 100_000))]
    pub tokens: i32,
    /// Octets of a mailbox made from now on.
    #[schemars(range(min = 1, max = 1_099_511_627_776_i64))]
    pub mailbox_bytes: i64,
}

/// What the operator knows of a Tenant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// Generation of the spec that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// What the tenant has; brought up to date every 10 minutes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TenantUsage>,
    /// Ready, Accepted; while true: Reconciling, Stalled, QuotaExceeded, ReconciliationPaused.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// What a tenant has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantUsage {
    /// Mailboxes.
    pub mailboxes: i64,
    /// Custom domains.
    pub custom_domains: i64,
    /// Webhooks.
    pub webhooks: i64,
    /// Tokens that are neither revoked nor expired.
    pub tokens: i64,
}

impl TenantSpec {
    fn retention_hours() -> i32 {
        72
    }
}

impl Default for TenantLimits {
    /// Those of `tempmail tenant create`.
    fn default() -> Self {
        Self { mailboxes: 100, custom_domains: 10, webhooks: 1, tokens: 20, mailbox_bytes: 52_428_800 }
    }
}

/// A label selector with bounds.
fn selector(_: &mut SchemaGenerator) -> Schema {
    let text = |max: u32| json_schema!({"type": "string", "maxLength": max});
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {"type": "object", "maxProperties": 16, "additionalProperties": text(63)},
            "matchExpressions": {
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": text(317),
                        "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                        "values": {"type": "array", "maxItems": 500, "items": text(63),
                                   "x-kubernetes-list-type": "atomic"},
                    },
                },
            },
        },
    })
}
