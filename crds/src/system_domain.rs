use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::shared_field::{Condition, KindStatus, conditions};

/// A domain of the installation, under which every user can create mailboxes.
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
    doc = "A domain of the installation, under which every user can create mailboxes.",
    selectable = ".spec.domain",
    printcolumn(name = "Domain", type_ = "string", json_path = ".spec.domain"),
    printcolumn(name = "Default", type_ = "boolean", json_path = ".spec.default"),
    printcolumn(name = "Shared", type_ = "boolean", json_path = ".spec.sharedInboxes", priority = "1")
)]
#[serde(rename_all = "camelCase")]
pub struct SystemDomainSpec {
    /// The domain name, in lower case and as A-labels.
    #[schemars(length(min = 3, max = 243))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("domain can't be changed: create another SystemDomain"))]
    #[x_kube(validation = Rule::new(r"self.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]([a-z0-9-]{0,61}[a-z0-9])$')")
        .message("domain is a host name of at least two labels, in lower case and as A-labels, such as mail.example.com"))]
    pub domain: String,
    /// Whether this is the default domain, which is offered first. Set it on at most one SystemDomain;
    /// without one the oldest domain is the default. Defaults to false.
    #[serde(default)]
    pub default: bool,
    /// Position in lists of domains, ascending. Defaults to 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10_000))]
    pub sort_order: i32,
    /// Whether addresses without a mailbox receive mail. Anyone who knows such an address can read its mail.
    /// Defaults to true.
    #[serde(default = "SystemDomainSpec::shared_inboxes")]
    pub shared_inboxes: bool,
}

/// Observed state of a SystemDomain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemDomainStatus {
    /// The `metadata.generation` that the operator observed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// ID of the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<String>,
    /// Ready and Accepted; also Reconciling, Stalled and ReconciliationPaused, only while they are True.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl KindStatus for SystemDomainStatus {
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

impl SystemDomainSpec {
    fn shared_inboxes() -> bool {
        true
    }
}
