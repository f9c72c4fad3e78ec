//! What a row of the matrix is played in: a tenant with one of everything that is listened to.

use std::net::SocketAddr;

use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{Fleet, Tenant};
use uuid::Uuid;

use super::listener::{Listener, Way};

/// What is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A mailbox of the tenant on a system domain.
    Mailbox,
    /// A mailbox under its custom domain.
    DomainMailbox,
    /// Another address under its custom domain.
    DomainAddress,
    /// A shared inbox of the system domain.
    Shared,
    /// `/v1/domain` of the custom domain.
    Domain,
    /// `/v1/me`, `/v1/sse/user`.
    Owned,
    /// A free mailbox on the system domain.
    Free,
    /// `/pro/api`.
    Account,
}

/// Places that are listened to with a live token.
const WITH_TOKEN: [Place; 6] =
    [Place::Mailbox, Place::DomainMailbox, Place::DomainAddress, Place::Shared, Place::Domain, Place::Owned];

/// See the module.
pub struct World {
    /// Its name, which is part of every other name in it.
    pub name: &'static str,
    /// The tenant.
    pub tenant: Tenant,
    session: String,
    /// A live token for each place that takes one, since a token waits once.
    tokens: Vec<(Place, String)>,
    /// The row of the custom domain.
    pub custom_domain: Uuid,
    /// Mailboxes, of the places of that name.
    pub mailbox: Mailbox,
    pub domain_mailbox: Mailbox,
    pub free: Mailbox,
}

impl World {
    pub async fn make(fleet: &Fleet, name: &'static str) -> Self {
        let tenant = fleet.another_tenant(name).await;
        let (system, custom) = names(name);
        fleet.system_domain(&system, true).await;
        let custom_domain = fleet.custom_domain(&tenant, &custom).await;
        let pro = Some(tenant.pro.as_str());
        let mailbox = fleet.mailbox(pro, &address(name, Place::Mailbox)).await;
        let domain_mailbox = fleet.mailbox(pro, &address(name, Place::DomainMailbox)).await;
        let free = fleet.mailbox(None, &address(name, Place::Free)).await;
        let request = fleet.request(0, Method::POST, "/pro/api/session");
        let session = request.json(&json!({ "token": tenant.pro })).send().await.expect(200);
        let session = session["token"].as_str().unwrap().to_owned();
        let mut tokens = Vec::new();
        for place in WITH_TOKEN {
            tokens.push((place, fleet.token(&tenant, TokenKind::Live).await));
        }
        Self { name, tenant, session, tokens, custom_domain, mailbox, domain_mailbox, free }
    }

    /// Its system domain.
    pub fn system_domain(&self) -> String {
        names(self.name).0
    }

    /// The name of its custom domain.
    pub fn custom_domain(&self) -> String {
        names(self.name).1
    }

    /// The address that mail for a place is sent to.
    pub fn address(&self, place: Place) -> String {
        address(self.name, place)
    }

    /// Listens at a process in every way there is.
    pub fn listen(&self, server: SocketAddr) -> Vec<(Place, Listener)> {
        let mut ways = vec![(Place::Account, Way::Session { token: self.session.clone() })];
        for (place, token) in self.tokens.clone() {
            let (path, stream_of) = match place {
                Place::Owned => ("/v1/me".to_owned(), Some(None)),
                Place::Domain => (format!("/v1/domain/{}", self.custom_domain()), None),
                _ => (format!("/v1/inbox/{}", self.address(place)), Some(Some(self.address(place)))),
            };
            ways.push((place, Way::Polls { path, token: token.clone() }));
            ways.extend(stream_of.map(|address| (place, Way::Stream { address, token })));
        }
        let sockets = [
            (Place::Mailbox, &self.mailbox),
            (Place::DomainMailbox, &self.domain_mailbox),
            (Place::Free, &self.free),
        ];
        ways.extend(sockets.map(|(place, mailbox)| (place, Way::Socket { jwt: mailbox.jwt.clone() })));
        ways.into_iter().map(|(place, way)| (place, Listener::start(server, way, None))).collect()
    }
}

fn names(world: &str) -> (String, String) {
    (format!("{world}.inbox.test"), format!("{world}.ships.test"))
}

fn address(world: &str, place: Place) -> String {
    let (system, custom) = names(world);
    match place {
        Place::Mailbox => format!("box@{system}"),
        Place::Shared => format!("shared@{system}"),
        Place::Free => format!("free@{system}"),
        Place::DomainMailbox => format!("desk@{custom}"),
        Place::DomainAddress | Place::Domain | Place::Owned | Place::Account => format!("any@{custom}"),
    }
}
