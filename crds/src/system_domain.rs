use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, conditions};

/// A domain of the installation itself, under which everybody may have mailboxes.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tempmail.dev",
    version = "v1alpha1",
    kind = "SystemDomain",
    plural = "systemdomains",
    shortname = "sysd",
    category = "tempmail",
    status = "SystemDomainStatus",
    derive = "PartialEq",
    doc = "A domain of the installation itself, under which everybody may have mailboxes.",
    selectable = ".spec.domain",
    printcolumn(name = "Domain", type_ = "string", json_path = ".spec.domain"),
    printcolumn(name = "Default", type_ = "boolean", json_path = ".spec.default"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct SystemDomainSpec {
    /// The domain: lower case, A-labels.
    #[schemars(length(min = 3, max = 243))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("domain can't be changed: make another SystemDomain"))]
    #[x_kube(validation = Rule::new(r"self.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]([a-z0-9-]{0,61}[a-z0-9])$')")
        .message("domain is a host name of at least two labels, in lower case and as A-labels, such as mail.example.com"))]
    pub domain: String,
    /// Whether it is the one that is offered first. At most one SystemDomain may say so; if none
    /// does it is the oldest.
    #[serde(default)]
    pub default: bool,
    /// Place in the list, ascending.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10_000))]
    pub sort_order: i32,
    /// Whether its addresses receive without a mailbox; anybody who knows such an address may read it.
    #[serde(default = "SystemDomainSpec::shared_inboxes")]
    pub shared_inboxes: bool,
}

/// What the operator knows of a SystemDomain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemDomainStatus {
    /// Generation of the spec that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<String>,
    /// Ready, Accepted; while true: Reconciling, Stalled, ReconciliationPaused.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl SystemDomainSpec {
    fn shared_inboxes() -> bool {
        true
    }
}
