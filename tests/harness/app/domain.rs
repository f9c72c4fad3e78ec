//! Custom domains through the HTTP interface, and their records in the DNS of the test.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};

use super::{App, Tenant};
use crate::dns::TestDns;
use crate::http::Response;

/// A created custom domain.
#[derive(Debug, Clone)]
pub struct Domain {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The expected TXT record.
    pub txt: String,
    /// The expected MX host.
    pub mx_host: String,
}

impl App {
    /// Tries to add a custom domain.
    pub async fn create_domain(&self, tenant: &Tenant, name: &str) -> Response {
        let request = self.request(Method::POST, "/pro/api/domains").bearer(&tenant.pro);
        request.json(&json!({ "domain": name })).send().await
    }

    /// A new custom domain, pending.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn domain(&self, tenant: &Tenant, name: &str) -> Domain {
        let made = self.create_domain(tenant, name).await.expect(201);
        let text = |value: &Value| value.as_str().expect("the creation answers a text").to_owned();
        Domain {
            id: text(&made["id"]),
            name: text(&made["domain"]),
            txt: text(&made["dns_records"][0]["value"]),
            mx_host: text(&made["dns_records"][1]["value"]),
        }
    }

    /// Requests a check of a domain's records.
    pub async fn check_domain(&self, tenant: &Tenant, id: &str) -> Response {
        self.request(Method::POST, &format!("/pro/api/domains/{id}/verify")).bearer(&tenant.pro).send().await
    }

    /// The result of a check, after advancing the clock to when its owner may request one.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn check_domain_once_allowed(&self, tenant: &Tenant, id: &str) -> Value {
        self.clock.advance(SignedDuration::from_secs(10));
        self.check_domain(tenant, id).await.expect(200)
    }

    /// Deletes a domain.
    pub async fn delete_domain(&self, tenant: &Tenant, id: &str) -> Response {
        self.request(Method::DELETE, &format!("/pro/api/domains/{id}")).bearer(&tenant.pro).send().await
    }

    /// The first page of a tenant's domains, newest first.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn domains(&self, tenant: &Tenant) -> Vec<Value> {
        let answer = self.request(Method::GET, "/pro/api/domains").bearer(&tenant.pro).send().await;
        answer.expect(200)["domains"].as_array().expect("domains is a list").clone()
    }

    /// A domain as listed for its tenant.
    ///
    /// # Panics
    /// It is not listed.
    pub async fn domain_record(&self, tenant: &Tenant, id: &str) -> Value {
        let domains = self.domains(tenant).await;
        domains.into_iter().find(|domain| domain["id"] == id).expect("the domain is listed")
    }

    /// `verify_status` and `failure_reason` (`""` if there is none) of a domain.
    pub async fn domain_state(&self, tenant: &Tenant, id: &str) -> (String, String) {
        let record = self.domain_record(tenant, id).await;
        let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        (text("verify_status"), text("failure_reason"))
    }
}

impl TestDns {
    /// Publishes the TXT records of these domains, which share one name, and the MX record.
    pub async fn publish(&self, domains: &[&Domain]) {
        let texts: Vec<&str> = domains.iter().map(|domain| domain.txt.as_str()).collect();
        let Some(first) = domains.first() else { return };
        self.set_txt(&format!("_tempmail.{}", first.name), &texts).await;
        self.set_mx(&first.name, &[(10, &first.mx_host)]).await;
    }
}
