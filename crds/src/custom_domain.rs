use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, conditions};
use crate::policy::{AdoptionPolicy, DeletionPolicy};
use crate::reference::TenantRef;

/// A domain of a tenant, which receives mail once its DNS records are seen.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tempmail.dev",
    version = "v1alpha1",
    kind = "CustomDomain",
    plural = "customdomains",
    shortname = "cdom",
    category = "tempmail",
    namespaced,
    status = "CustomDomainStatus",
    derive = "PartialEq",
    doc = "A domain of a tenant, which receives mail once its DNS records are seen.",
    selectable = ".spec.tenantRef.name",
    selectable = ".spec.domain",
    printcolumn(name = "Domain", type_ = "string", json_path = ".spec.domain"),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name"),
    printcolumn(
        name = "Verified",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Verified')].status"
    ),
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
    printcolumn(
        name = "Deadline",
        type_ = "string",
        json_path = ".status.verification.deadline",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct CustomDomainSpec {
    /// The tenant whose domain it is.
    #[x_kube(validation = Rule::new("self == oldSelf").message("tenantRef can't be changed: delete the object and make it again"))]
    pub tenant_ref: TenantRef,
    /// The domain: lower case, A-labels.
    #[schemars(length(min = 3, max = 243))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("domain can't be changed: make another CustomDomain"))]
    #[x_kube(validation = Rule::new(r"self.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]([a-z0-9-]{0,61}[a-z0-9])$')")
        .message("domain is a host name of at least two labels, in lower case and as A-labels, such as mail.example.com"))]
    pub domain: String,
    /// Whether a domain that the tenant added over HTTP is taken over.
    #[serde(default = "AdoptionPolicy::if_unowned")]
    pub adoption_policy: AdoptionPolicy,
    /// What deleting this object does to the domain, its mailboxes and its mail.
    #[serde(default = "DeletionPolicy::delete")]
    pub deletion_policy: DeletionPolicy,
}

/// What the operator knows of a CustomDomain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomDomainStatus {
    /// Generation of the spec that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<String>,
    /// Where its verification stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Value of `tempmail.dev/verify-requested-at` that was carried out last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_verify_at: Option<String>,
    /// Ready, Accepted, Verified; while true: Reconciling, Stalled, ReconciliationPaused.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Where the verification of a domain stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Pending, Verified or Failed.
    pub state: VerificationState,
    /// Why it failed, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A pending domain fails then.
    pub deadline: Time,
    /// When it last became verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<Time>,
    /// The records to set.
    #[schemars(length(max = 4))]
    pub records: Vec<DnsRecord>,
}

/// State of a domain's verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VerificationState {
    /// Its records were not seen yet.
    Pending,
    /// It receives mail.
    Verified,
    /// It receives no mail, and is looked at no more.
    Failed,
}

/// A DNS record to set, and what was seen in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct DnsRecord {
    /// TXT or MX.
    #[serde(rename = "type")]
    pub kind: DnsRecordType,
    /// Its owner name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its value.
    #[schemars(length(max = 255))]
    pub value: String,
    /// Preference of an MX record; any will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// What the name servers said.
    pub result: RecordResult,
    /// What was there instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 255)))]
    pub observed: Vec<String>,
}

/// Type of a DNS record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum DnsRecordType {
    /// Proves that the domain is the tenant's.
    Txt,
    /// Brings the mail.
    Mx,
}

/// What the name servers said of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RecordResult {
    /// Every server that answered has it.
    Right,
    /// A server has nothing in its place.
    Missing,
    /// A server has something else in its place.
    Mismatch,
    /// No server answered.
    Unknown,
}
