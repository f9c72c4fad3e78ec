//! A custom domain as its tenant is shown it.

use serde::Serialize;
use tempmail_model::verify_token::{txt_host, txt_value};
use tempmail_store::CustomDomain;
use tempmail_verification::CheckResult;
use utoipa::ToSchema;
use uuid::Uuid;

use tempmail_model::timestamp::timestamp;

/// Preference of the MX record that is proposed; any is right.
const MX_PRIORITY: u16 = 10;

/// A custom domain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainRecord {
    id: Uuid,
    /// As A-labels.
    domain: String,
    /// `pending`, `verified` or `failed`.
    verify_status: &'static str,
    verify_token: String,
    /// What to set in DNS.
    dns_records: Vec<DnsRecord>,
    /// Whether the MX record was right when the name servers last answered.
    mx_configured: bool,
    created_at: String,
    /// A pending domain fails then.
    deadline: String,
    /// When it last became verified.
    verified_at: Option<String>,
    /// `verification_timed_out`, `records_lost` or `claimed_by_another`; null unless failed.
    failure_reason: Option<&'static str>,
    /// `api` or `kubernetes`.
    managed_by: &'static str,
}

/// A record to set in DNS.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DnsRecord {
    /// `TXT` or `MX`.
    #[serde(rename = "type")]
    kind: &'static str,
    host: String,
    value: String,
    /// Of an MX record.
    priority: Option<u16>,
    /// Whether it was right when the name servers last answered.
    ok: bool,
}

/// A page of custom domains, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainList {
    domains: Vec<DomainRecord>,
}

/// A custom domain with what was found just now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckedDomain {
    #[serde(flatten)]
    record: DomainRecord,
    /// Whether the TXT record is right; false also where the name servers did not answer.
    txt_record: bool,
    /// Whether the MX record is right; false also where the name servers did not answer.
    mx_record: bool,
}

impl DomainRecord {
    /// Mail of it is to go to `mx_host`.
    pub(crate) fn new(domain: CustomDomain, mx_host: &str) -> Self {
        let txt = DnsRecord {
            kind: "TXT",
            host: txt_host(&domain.name),
            value: txt_value(&domain.token),
            priority: None,
            ok: domain.txt_ok,
        };
        let mx = DnsRecord {
            kind: "MX",
            host: domain.name.clone(),
            value: mx_host.to_owned(),
            priority: Some(MX_PRIORITY),
            ok: domain.mx_ok,
        };
        Self {
            id: domain.id,
            domain: domain.name,
            verify_status: domain.status.as_str(),
            verify_token: domain.token,
            dns_records: vec![txt, mx],
            mx_configured: domain.mx_ok,
            created_at: timestamp(domain.created_at),
            deadline: timestamp(domain.deadline),
            verified_at: domain.verified_at.map(timestamp),
            failure_reason: domain.failure_reason.map(|reason| reason.as_str()),
            managed_by: domain.managed_by.as_str(),
        }
    }
}

impl DomainList {
    pub(crate) fn new(domains: Vec<CustomDomain>, mx_host: &str) -> Self {
        Self { domains: domains.into_iter().map(|domain| DomainRecord::new(domain, mx_host)).collect() }
    }
}

impl CheckedDomain {
    pub(crate) fn new(record: DomainRecord, checked: CheckResult) -> Self {
        Self { record, txt_record: checked.txt_found, mx_record: checked.mx_found }
    }
}
