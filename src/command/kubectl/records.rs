//! `kubectl tempmail records`: what to create in the DNS, as a table or as lines of a zone file.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::{Args, ValueEnum};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use tempmail_client::shown_text::escaped_line;
use tempmail_crds::{Condition, CustomDomain, DnsRecord, DnsRecordType, VerificationState};

use super::{Connection, explain};
use crate::command::output;

/// Time to live of the records in a zone file, seconds: changes are seen at the next check.
const TTL_SECONDS: u32 = 300;
/// Preference of an MX record that has none: any is accepted.
const MX_PREFERENCE: i32 = 10;

const HEADER: [&str; 6] = ["CUSTOMDOMAIN", "TYPE", "NAME", "PRIORITY", "VALUE", "RESULT"];

/// Options of `records`.
#[derive(Debug, Args)]
pub(super) struct RecordsArgs {
    /// Name of a CustomDomain; without it, all of the namespace
    #[arg(conflicts_with = "all_namespaces")]
    name: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Format of the output
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table with the result of the last check
    Table,
    /// Lines of a zone file
    Zone,
}

/// Prints the records of CustomDomains.
///
/// # Errors
/// The API server refuses, or has no such CustomDomain.
pub(super) async fn run(args: &RecordsArgs, connection: &Connection) -> anyhow::Result<()> {
    let client = connection.client.clone();
    let api: Api<CustomDomain> =
        if args.all_namespaces { Api::all(client) } else { Api::namespaced(client, &connection.namespace) };
    let domains = match &args.name {
        Some(name) => vec![api.get(name).await.map_err(explain)?],
        None => api.list(&ListParams::default()).await.map_err(explain)?.items,
    };
    match args.output {
        Output::Table => print_table(&domains),
        Output::Zone => output::text(zone(&domains).trim_end()),
    }
}

fn print_table(domains: &[CustomDomain]) -> anyhow::Result<()> {
    let rows = rows(domains);
    if !rows.is_empty() {
        output::table(HEADER, &rows)?;
    }
    let mut stderr = std::io::stderr().lock();
    if domains.is_empty() {
        writeln!(stderr, "There are no CustomDomains here.")?;
    }
    for domain in domains.iter().filter(|domain| records(domain).is_empty()) {
        writeln!(stderr, "{} has no records yet: {}", name(domain), reason(domain))?;
    }
    Ok(())
}

/// A row for each record.
fn rows(domains: &[CustomDomain]) -> Vec<[String; 6]> {
    let of_domain = |domain: &CustomDomain| {
        let name = name(domain);
        let rows = records(domain).iter().map(move |record| row(name.clone(), record));
        rows.collect::<Vec<_>>()
    };
    domains.iter().flat_map(of_domain).collect()
}

fn row(domain: String, record: &DnsRecord) -> [String; 6] {
    let priority = match record.kind {
        DnsRecordType::Mx => record.priority.unwrap_or(MX_PREFERENCE).to_string(),
        DnsRecordType::Txt => String::new(),
    };
    let mut result = format!("{:?}", record.result);
    if !record.observed.is_empty() {
        let _ = write!(result, ", observed: {}", record.observed.join(", "));
    }
    [domain, kind(record).to_owned(), record.name.clone(), priority, record.value.clone(), result]
}

/// The records as lines of a zone file; comments say which object they are for.
fn zone(domains: &[CustomDomain]) -> String {
    let mut zone = String::new();
    if domains.is_empty() {
        zone.push_str("; There are no CustomDomains here.\n");
    }
    for domain in domains {
        let _ = writeln!(zone, "; CustomDomain {}: {}", name(domain), state(domain));
        for record in records(domain) {
            let (owner, kind) = (absolute(&record.name), kind(record));
            let data = match record.kind {
                DnsRecordType::Txt => quoted(&record.value),
                DnsRecordType::Mx => {
                    format!("{} {}", record.priority.unwrap_or(MX_PREFERENCE), absolute(&record.value))
                }
            };
            let _ = writeln!(zone, "{owner} {TTL_SECONDS} IN {kind} {data}");
        }
    }
    zone
}

fn records(domain: &CustomDomain) -> &[DnsRecord] {
    let verification = domain.status.as_ref().and_then(|status| status.verification.as_ref());
    verification.map(|verification| verification.records.as_slice()).unwrap_or_default()
}

/// `namespace/name` of a domain.
fn name(domain: &CustomDomain) -> String {
    format!("{}/{}", domain.namespace().unwrap_or_default(), domain.name_any())
}

/// How far the verification is.
fn state(domain: &CustomDomain) -> String {
    let verification = domain.status.as_ref().and_then(|status| status.verification.as_ref());
    match verification {
        Some(verification) if verification.state == VerificationState::Pending => {
            format!("Pending, create the records until {}", verification.deadline.0)
        }
        Some(verification) => format!("{:?}", verification.state),
        None => format!("no records yet: {}", reason(domain)),
    }
}

/// Why there are no records.
fn reason(domain: &CustomDomain) -> String {
    let conditions = domain.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let is_ready = |condition: &&Condition| condition.type_ == "Ready";
    let message = conditions.iter().find(is_ready).map(|condition| escaped_line(&condition.message));
    message.unwrap_or_else(|| "the operator has not reconciled the object".to_owned())
}

fn kind(record: &DnsRecord) -> &'static str {
    match record.kind {
        DnsRecordType::Txt => "TXT",
        DnsRecordType::Mx => "MX",
    }
}

/// A host name as an absolute one: what a zone file has after it does not count.
fn absolute(name: &str) -> String {
    format!("{}.", escaped_line(name).trim_end_matches('.'))
}

/// A character string of a zone file (RFC 1035, section 5.1).
fn quoted(value: &str) -> String {
    format!("\"{}\"", escaped_line(value).replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A domain with this status.
    fn domain(status: &serde_json::Value) -> CustomDomain {
        let object = json!({
            "apiVersion": "tempmail.dev/v1alpha1",
            "kind": "CustomDomain",
            "metadata": {"namespace": "team-a", "name": "mail"},
            "spec": {"tenantRef": {"name": "acme"}, "domain": "mail.example.com"},
            "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn pending() -> CustomDomain {
        domain(&json!({"verification": {
            "state": "Pending",
            "deadline": "2026-08-01T12:00:00Z",
            "records": [
                {"type": "TXT", "name": "_tempmail.mail.example.com", "value": "tempmail-verify=abc",
                 "result": "Mismatch", "observed": ["old"]},
                {"type": "MX", "name": "mail.example.com", "value": "mx.example.net", "priority": 20,
                 "result": "Missing"},
            ],
        }}))
    }

    #[test]
    fn lists_the_records_with_their_results() {
        let rows: Vec<String> = rows(&[pending()]).iter().map(|row| row.join("|")).collect();
        assert_eq!(
            rows,
            [
                "team-a/mail|TXT|_tempmail.mail.example.com||tempmail-verify=abc|Mismatch, observed: old",
                "team-a/mail|MX|mail.example.com|20|mx.example.net|Missing",
            ]
        );
    }

    #[test]
    fn writes_absolute_names_into_a_zone_file() {
        assert_eq!(
            zone(&[pending()]),
            "; CustomDomain team-a/mail: Pending, create the records until 2026-08-01T12:00:00Z\n\
             _tempmail.mail.example.com. 300 IN TXT \"tempmail-verify=abc\"\n\
             mail.example.com. 300 IN MX 20 mx.example.net.\n"
        );
    }

    #[test]
    fn quotes_a_text_with_quotes() {
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
    }

    #[test]
    fn says_why_a_domain_has_no_records() {
        let refused = domain(&json!({"conditions": [{
            "type": "Ready", "status": "False", "reason": "ReservedDomain", "message": "Use another domain.",
            "lastTransitionTime": "2026-08-01T12:00:00Z",
        }]}));
        assert_eq!(zone(&[refused]), "; CustomDomain team-a/mail: no records yet: Use another domain.\n");
    }
}
