//! `/api/servers`: the domains whose mail the tenant reads. Clients expect ids of eight characters, and make addresses
//! `<anything>@<id>.<their host>`: so a domain whose first label has eight letters or digits has that as its id. A sink
//! has mail of every domain, so there each domain is a server, and an id stands for its domain at the clients' host.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempmail_model::address::normalize_domain;
use tempmail_model::limits::{OWNED_PAGE_SIZE, PAGES_MAX};
use tempmail_model::verification::VerifyStatus;
use uuid::Uuid;

use super::{Caller, Error, Mailosaur};
use crate::compat::mail::TenantMail;
use crate::compat::request::Segments;
use crate::http::error::ApiError;
use crate::state::AppState;

/// Characters of an id.
const ID_LEN: usize = 8;
/// The host of the addresses that clients make.
const HOST: &str = "mailosaur.net";

/// A server: a verified custom domain of the tenant, or a system domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) id: String,
    pub(super) domain: String,
}

/// Lists the servers, in the order of their names.
pub(super) async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<Value>, Error> {
    let servers = all(&state, caller.tenant).await?;
    let counts = TenantMail::of(state, &caller).count_by_domain().await?;
    let items = servers.iter().map(|server| {
        json!({"id": server.id, "name": server.domain, "users": [],
               "messages": counts.get(&server.domain).copied().unwrap_or(0)})
    });
    Ok(Json(json!({"items": items.collect::<Vec<_>>()})))
}

/// One server, by its id or its domain.
pub(super) async fn get_server(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id, _): Segments<Mailosaur, String>,
) -> Result<Json<Value>, Error> {
    let server = find(&state, caller.tenant, &id).await?;
    let counts = TenantMail::of(state, &caller).count_by_domain().await?;
    Ok(Json(json!({"id": server.id, "name": server.domain, "users": [],
                   "messages": counts.get(&server.domain).copied().unwrap_or(0)})))
}

/// The server of a tenant with this id or domain.
///
/// # Errors
/// 404; the store failed.
pub(super) async fn find(state: &AppState, tenant: Uuid, id: &str) -> Result<Server, ApiError> {
    let id = id.to_ascii_lowercase();
    let found = all(state, tenant).await?.into_iter().find(|server| server.id == id || server.domain == id);
    let is_sink = state.config.sink == Some(tenant);
    found.or_else(|| of_sink(id).filter(|_| is_sink)).ok_or(ApiError::NotFound)
}

/// The id of the server with a domain. A domain that is none, or no longer, is named by itself.
///
/// # Errors
/// The store failed.
pub(super) async fn id_of_domain(state: &AppState, tenant: Uuid, domain: &str) -> Result<String, ApiError> {
    let known = all(state, tenant).await?.into_iter().find(|server| server.domain == domain);
    Ok(known.map_or_else(|| id_at_host(domain).unwrap_or(domain).to_owned(), |server| server.id))
}

/// The server of a sink with this id or domain; `None` where it is neither.
fn of_sink(id: String) -> Option<Server> {
    if is_id(&id) {
        return Some(Server { domain: format!("{id}.{HOST}"), id });
    }
    let domain = normalize_domain(&id).ok()?;
    Some(Server { id: id_at_host(&domain).unwrap_or(&domain).to_owned(), domain })
}

/// The id in a domain `<id>.mailosaur.net`.
fn id_at_host(domain: &str) -> Option<&str> {
    domain.split_once('.').filter(|(label, host)| is_id(label) && *host == HOST).map(|(label, _)| label)
}

/// The servers of a tenant, in the order of their domains.
pub(super) async fn all(state: &AppState, tenant: Uuid) -> Result<Vec<Server>, ApiError> {
    let system = state.store.list_system_domains().await?;
    let mut domains: Vec<_> = system.into_iter().map(|domain| (domain.id, domain.name)).collect();
    for page in 1..=PAGES_MAX {
        let custom = state.store.list_custom_domains(tenant, page).await?;
        let is_last = i64::try_from(custom.len()).is_ok_and(|count| count < OWNED_PAGE_SIZE);
        let verified = custom.into_iter().filter(|domain| domain.status == VerifyStatus::Verified);
        domains.extend(verified.map(|domain| (domain.id, domain.name)));
        if is_last {
            break;
        }
    }
    Ok(servers_of(domains))
}

fn servers_of(mut domains: Vec<(Uuid, String)>) -> Vec<Server> {
    // Ids carry the time: of two domains with the same label, the one that was created first has it.
    domains.sort_unstable();
    let mut taken = BTreeSet::new();
    let servers = domains.into_iter().map(|(row, domain)| {
        let label = domain.split('.').next().filter(|label| is_id(label) && !taken.contains(*label));
        let id = label.map_or_else(|| derived_id(row), str::to_owned);
        taken.insert(id.clone());
        Server { id, domain }
    });
    let mut servers: Vec<_> = servers.collect();
    servers.sort_unstable_by(|a, b| a.domain.cmp(&b.domain));
    servers
}

fn is_id(label: &str) -> bool {
    label.len() == ID_LEN && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Eight hex digits that stay the same for a domain.
fn derived_id(row: Uuid) -> String {
    let digest = Sha256::digest(row.as_bytes());
    digest.iter().take(ID_LEN / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_domain_an_id_of_eight_characters() {
        let domains = ["mailtest.localhost", "inbox.localhost", "mailtest.shop.example", "café8901.example"];
        let rows = domains.iter().zip(1..).map(|(name, row)| (Uuid::from_u128(row), (*name).to_owned()));
        let servers = servers_of(rows.collect());
        let id = |domain: &str| servers.iter().find(|server| server.domain == domain).unwrap().id.clone();
        assert_eq!(id("mailtest.localhost"), "mailtest");
        for other in ["inbox.localhost", "mailtest.shop.example", "café8901.example"] {
            assert!(is_id(&id(other)) && id(other) != "mailtest", "{other}");
        }
        assert_eq!(servers.iter().map(|server| &server.id).collect::<BTreeSet<_>>().len(), 4);
        assert_eq!(servers[0].domain, "café8901.example");
    }

    #[test]
    fn has_a_server_for_every_domain_of_a_sink() {
        for (id, server) in [
            ("abcd1234", Some(("abcd1234", "abcd1234.mailosaur.net"))),
            ("abcd1234.mailosaur.net", Some(("abcd1234", "abcd1234.mailosaur.net"))),
            ("shop.example", Some(("shop.example", "shop.example"))),
            ("?", None),
        ] {
            let server = server.map(|(id, domain)| Server { id: id.into(), domain: domain.into() });
            assert_eq!(of_sink(id.into()), server, "{id}");
        }
    }
}
