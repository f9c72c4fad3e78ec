use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, conditions};
use crate::policy::DeletionPolicy;

/// A team with its own mailboxes, domains, webhooks and tokens.
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
    doc = "A team with its own mailboxes, domains, webhooks and tokens.",
    printcolumn(name = "Retention", type_ = "integer", json_path = ".spec.retentionHours", description = "hours"),
    printcolumn(name = "Suspended", type_ = "boolean", json_path = ".spec.suspended"),
    printcolumn(name = "Domains", type_ = "integer", json_path = ".status.usage.customDomains"),
    printcolumn(name = "Mailboxes", type_ = "integer", json_path = ".status.usage.mailboxes", priority = "1"),
    validation = Rule::new("self.metadata.name.size() <= 63").message("a tenant's name has at most 63 characters"),
    validation = Rule::new("self.metadata.name != 'platform'").message("the tenant 'platform' is built in")
)]
#[serde(rename_all = "camelCase")]
pub struct TenantSpec {
    /// Whether the tenant is suspended: its requests and its mail are refused, its data is kept.
    #[serde(default)]
    pub suspended: bool,
    /// How many hours new mail is kept: 1, 6, 24, 72, 168 or 720.
    #[serde(default = "TenantSpec::retention_hours")]
    #[x_kube(validation = Rule::new("self in [1, 6, 24, 72, 168, 720]")
        .message("retentionHours is one of 1, 6, 24, 72, 168 and 720"))]
    pub retention_hours: i32,
    /// Upper limits of the tenant's resources.
    #[serde(default)]
    pub limits: TenantLimits,
    /// Namespaces whose objects may use this tenant. An absent or empty selector selects none. The label
    /// `kubernetes.io/metadata.name` is always the namespace's name and can't be forged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector")]
    pub allowed_namespaces: Option<LabelSelector>,
    /// Whether deleting this object suspends the tenant (Retain) or deletes it with all its data (Delete).
    #[serde(default = "DeletionPolicy::retain")]
    pub deletion_policy: DeletionPolicy,
}

/// Upper limits of a tenant's resources. Lowering a limit removes nothing that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TenantLimits {
    /// Number of mailboxes.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub mailboxes: i32,
    /// Number of custom domains.
    #[schemars(range(min = 0, max = 100_000))]
    pub custom_domains: i32,
    /// Number of webhooks.
    #[schemars(range(min = 0, max = 100))]
    pub webhooks: i32,
    /// Number of tokens that are neither revoked nor expired.
    #[schemars(range(min = 0, max = 100_000))]
    pub tokens: i32,
    /// Quota of a new mailbox in bytes.
    #[schemars(range(min = 1, max = 1_099_511_627_776_i64))]
    pub mailbox_bytes: i64,
}

/// Observed state of a Tenant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// The `metadata.generation` that the operator observed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// ID of the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Resources in use, refreshed at least every 10 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TenantUsage>,
    /// Ready and Accepted; also Reconciling, Stalled, QuotaExceeded and ReconciliationPaused, only while they
    /// are True.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Resources that a tenant uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantUsage {
    /// Number of mailboxes.
    pub mailboxes: i64,
    /// Number of custom domains.
    pub custom_domains: i64,
    /// Number of webhooks.
    pub webhooks: i64,
    /// Number of tokens that are neither revoked nor expired.
    pub tokens: i64,
}

impl TenantSpec {
    fn retention_hours() -> i32 {
        72
    }
}

impl Default for TenantLimits {
    /// The defaults of `tempmail tenant create`.
    fn default() -> Self {
        Self { mailboxes: 100, custom_domains: 10, webhooks: 1, tokens: 20, mailbox_bytes: 52_428_800 }
    }
}

/// Schema of a label selector, with upper bounds on its size.
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
