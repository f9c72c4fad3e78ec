use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::shared_field::{Condition, DeletionPolicy, KindStatus, conditions};

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
    printcolumn(name = "Suspended", type_ = "boolean", json_path = ".spec.suspended"),
    printcolumn(name = "Domains", type_ = "integer", json_path = ".status.usage.customDomains"),
    printcolumn(name = "Mailboxes", type_ = "integer", json_path = ".status.usage.mailboxes"),
    printcolumn(
        name = "Retention",
        type_ = "integer",
        json_path = ".spec.retentionHours",
        description = "hours",
        priority = "1"
    ),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.tenantId", priority = "1"),
    validation = Rule::new("self.metadata.name.size() <= 63").message("a tenant's name has at most 63 characters"),
    validation = Rule::new("oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')")
        .message("a tenant's name has a-z, 0-9 and '-', and begins and ends with a letter or digit")
        .optional_old_self(true),
    validation = Rule::new("self.metadata.name != 'platform'").message("the tenant 'platform' is built in")
)]
#[serde(rename_all = "camelCase")]
pub struct TenantSpec {
    /// Whether the tenant is suspended: its requests and its mail are refused, its data is kept. Defaults to
    /// false.
    #[serde(default)]
    pub suspended: bool,
    /// How many hours new mail is kept: 1, 6, 24, 72, 168 or 720. Defaults to 72.
    #[serde(default = "TenantSpec::retention_hours")]
    #[x_kube(validation = Rule::new("self in [1, 6, 24, 72, 168, 720]")
        .message("retentionHours is one of 1, 6, 24, 72, 168 and 720"))]
    pub retention_hours: i32,
    /// Upper limits of the tenant's resources. Lowering a limit removes nothing that exists. Defaults to the
    /// default of each limit.
    #[serde(default)]
    pub limits: TenantLimits,
    /// Namespaces whose objects may use this tenant. Defaults to none: an absent or empty selector selects no
    /// namespace, unlike elsewhere in Kubernetes. The label `kubernetes.io/metadata.name` is always the
    /// namespace's name and can't be forged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector")]
    pub allowed_namespaces: Option<LabelSelector>,
    /// Whether deleting this object suspends the tenant (Retain) or deletes it with all its data (Delete).
    /// Defaults to Retain.
    #[serde(default = "DeletionPolicy::retain")]
    pub deletion_policy: DeletionPolicy,
    /// Whether the API server refuses to delete this object, by a ValidatingAdmissionPolicy of the chart. Defaults
    /// to false.
    #[serde(default)]
    pub deletion_protection: bool,
}

/// Upper limits of a tenant's resources. Lowering a limit removes nothing that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TenantLimits {
    /// Number of mailboxes. Defaults to 100.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub mailboxes: i32,
    /// Number of custom domains. Defaults to 10.
    #[schemars(range(min = 0, max = 100_000))]
    pub custom_domains: i32,
    /// Number of webhooks. Defaults to 1.
    #[schemars(range(min = 0, max = 100))]
    pub webhooks: i32,
    /// Number of tokens that are neither revoked nor expired. Defaults to 20.
    #[schemars(range(min = 0, max = 100_000))]
    pub tokens: i32,
    /// Quota of a new mailbox in bytes. Defaults to 52428800.
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
    /// Ready and Accepted; also Reconciling, Stalled, Suspended, QuotaExceeded and ReconciliationPaused, only
    /// while they are True.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl KindStatus for TenantStatus {
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

/// Schema of a label selector, with the rules of Kubernetes for label selectors, and bounds on its size.
fn selector(_: &mut SchemaGenerator) -> Schema {
    let key_rule = |rule: &str, what: &str| {
        let message = format!("{what} is a label key, such as team or example.com/team");
        json!([{"rule": rule, "message": message}])
    };
    let value = json!({
        "type": "string",
        "maxLength": 63,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')",
            "message": "not a label's value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
        }],
    });
    let requirement = json!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {
                "description": "Key of the label.",
                "type": "string",
                "maxLength": 317,
                "x-kubernetes-validations": key_rule("!format.qualifiedName().validate(self).hasValue()", "key"),
            },
            "operator": {
                "description": "How the label is compared with the values: In, NotIn, Exists or DoesNotExist.",
                "type": "string",
                "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
            },
            "values": {
                "description": "Values for In and NotIn; Exists and DoesNotExist take none. Defaults to none.",
                "type": "array",
                "maxItems": 500,
                "items": value,
                "x-kubernetes-list-type": "atomic",
            },
        },
        "x-kubernetes-validations": [{
            "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values != [])",
            "message": "In and NotIn need values, Exists and DoesNotExist take none",
        }],
    });
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {
                "description": "Labels that a namespace must have, with these values. Defaults to none.",
                "type": "object",
                "maxProperties": 16,
                "additionalProperties": value,
                "x-kubernetes-validations": key_rule(
                    "self.all(key, !format.qualifiedName().validate(key).hasValue())",
                    "a key of matchLabels",
                ),
            },
            "matchExpressions": {
                "description": "Requirements of a namespace's labels; all must be met. Defaults to none.",
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "atomic",
                "items": requirement,
            },
        },
    })
}
