//! A tenant with one of everything that can be subscribed to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::app::Mailbox;
use tempmail_tests::smtp::{message, send_mail};
use tempmail_tests::{Fleet, Tenant};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use uuid::Uuid;

use super::subscriber::{Subscriber, Transport};

/// What is subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
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

/// Scopes that are read with a live token.
const WITH_TOKEN: [Scope; 6] =
    [Scope::Mailbox, Scope::DomainMailbox, Scope::DomainAddress, Scope::Shared, Scope::Domain, Scope::Owned];

/// See the module.
pub struct TenantFixture {
    /// Its name, which is part of all of its other names.
    pub name: &'static str,
    /// The tenant.
    pub tenant: Tenant,
    session: String,
    /// Two live tokens per scope, since a token waits once, and for each address two that one of them minted.
    tokens: Vec<(Scope, [String; 2])>,
    /// Id of the custom domain.
    pub custom_domain: Uuid,
    /// Of [`Scope::Mailbox`].
    pub mailbox: Mailbox,
    /// Of [`Scope::DomainMailbox`].
    pub domain_mailbox: Mailbox,
    /// Of [`Scope::Free`].
    pub free: Mailbox,
}

impl TenantFixture {
    /// Creates all of it.
    pub async fn create(fleet: &Fleet, name: &'static str) -> Self {
        let tenant = fleet.another_tenant(name).await;
        let (system, custom) = names(name);
        fleet.system_domain(&system, true).await;
        let custom_domain = fleet.custom_domain(&tenant, &custom).await;
        let pro = Some(tenant.pro.as_str());
        let mailbox = fleet.mailbox(pro, &address(name, Scope::Mailbox)).await;
        let domain_mailbox = fleet.mailbox(pro, &address(name, Scope::DomainMailbox)).await;
        let free = fleet.mailbox(None, &address(name, Scope::Free)).await;
        let request = fleet.request(0, Method::POST, "/pro/api/session");
        let session = request.json(&json!({ "token": tenant.pro })).send().await.expect(200);
        let session = session["token"].as_str().unwrap().to_owned();
        let mut tokens = Vec::new();
        for scope in WITH_TOKEN {
            let token = || fleet.token(&tenant, TokenKind::Live);
            let pair = [token().await, token().await];
            if !matches!(scope, Scope::Domain | Scope::Owned) {
                let mint = async || fleet.mint(&pair[0], &address(name, scope)).await.token;
                tokens.push((scope, [mint().await, mint().await]));
            }
            tokens.push((scope, pair));
        }
        Self { name, tenant, session, tokens, custom_domain, mailbox, domain_mailbox, free }
    }

    /// The name of its system domain.
    pub fn system_domain_name(&self) -> String {
        names(self.name).0
    }

    /// The name of its custom domain.
    pub fn custom_domain_name(&self) -> String {
        names(self.name).1
    }

    /// The address that mail for a scope is sent to.
    pub fn address(&self, scope: Scope) -> String {
        address(self.name, scope)
    }

    /// Subscribes to each scope over each transport.
    pub fn subscribe(&self, server: SocketAddr) -> Vec<(Scope, Subscriber)> {
        let mut transports = vec![(Scope::Account, Transport::ProSession { token: self.session.clone() })];
        for (scope, [token, second]) in self.tokens.clone() {
            let body = match scope {
                Scope::Owned => json!({ "all": true }),
                Scope::Domain => json!({ "domain": self.custom_domain_name() }),
                _ => json!({ "address": self.address(scope) }),
            };
            transports.push((scope, Transport::MailWait { body, token: second }));
            let (path, stream_of) = match scope {
                Scope::Owned => ("/v1/me".to_owned(), Some(None)),
                Scope::Domain => (format!("/v1/domain/{}", self.custom_domain_name()), None),
                _ => (format!("/v1/inbox/{}", self.address(scope)), Some(Some(self.address(scope)))),
            };
            transports.push((scope, Transport::LongPoll { path, token: token.clone() }));
            transports.extend(stream_of.map(|address| (scope, Transport::Sse { address, token })));
        }
        let sockets = [
            (Scope::Mailbox, &self.mailbox),
            (Scope::DomainMailbox, &self.domain_mailbox),
            (Scope::Free, &self.free),
        ];
        transports.extend(
            sockets.map(|(scope, mailbox)| (scope, Transport::WebSocket { jwt: mailbox.jwt.clone() })),
        );
        transports
            .into_iter()
            .map(|(scope, transport)| (scope, Subscriber::start(server, transport, None)))
            .collect()
    }
}

fn names(fixture: &str) -> (String, String) {
    (format!("{fixture}.inbox.test"), format!("{fixture}.ships.test"))
}

fn address(fixture: &str, scope: Scope) -> String {
    let (system, custom) = names(fixture);
    match scope {
        Scope::Mailbox => format!("box@{system}"),
        Scope::Shared => format!("shared@{system}"),
        Scope::Free => format!("free@{system}"),
        Scope::DomainMailbox => format!("desk@{custom}"),
        Scope::DomainAddress | Scope::Domain | Scope::Owned | Scope::Account => format!("any@{custom}"),
    }
}

/// Time between two mails of a sender.
const INTERVAL: Duration = Duration::from_millis(10);

/// One sender at each of two ingest processes.
pub struct BackgroundMail {
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<()>>,
}

impl BackgroundMail {
    /// Starts to send to these addresses in turn, whether the mail is accepted or not.
    pub fn start(fleet: &Fleet, addresses: &[&str]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let addresses: Vec<String> = addresses.iter().map(|it| (*it).to_owned()).collect();
        let senders = [0, 1].map(|index| {
            let (server, stop, addresses) = (fleet.smtp(index), Arc::clone(&stop), addresses.clone());
            tokio::spawn(async move {
                for (number, address) in addresses.iter().cycle().enumerate() {
                    if stop.load(Ordering::Acquire) {
                        return;
                    }
                    let mail = message("Ada <ada@client.example>", &format!("{index}.{number}"), "");
                    send_mail(server, "ada@client.example", address, &mail).await;
                    sleep(INTERVAL).await;
                }
            })
        });
        Self { stop, senders: senders.into() }
    }

    /// Stops once the mails in flight are answered.
    pub async fn stop(self) {
        self.stop.store(true, Ordering::Release);
        for sender in self.senders {
            sender.await.unwrap();
        }
    }
}
