//! The routes: what each takes, names and answers.

use tempmail_model::id::{id_time, new_id};

use super::credential::Door::{self, Live, Mailbox, MaybePro, Open, Pro, Stream};

/// What a path names, which A has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// Nothing: the route is about the caller, or about everybody.
    Nothing,
    /// A message with an attachment, in a mailbox of A.
    Message,
    /// The address of a mailbox of A with mail in it.
    Address,
    /// A mailbox of A.
    Account,
    /// A custom domain of A.
    Domain,
    /// The name of a verified custom domain of A with mail in it.
    DomainName,
    /// A webhook of A.
    Webhook,
    /// A Pro token of A.
    ProToken,
    /// A live token of A.
    LiveToken,
}
use Names::{Account, Address, Domain, DomainName, LiveToken, Message, Nothing, ProToken, Webhook};

impl Names {
    /// Whether the path names a thing, which is not there for anybody but A.
    pub(super) fn a_thing_of_a(self) -> bool {
        self != Nothing
    }

    /// One like `thing` that never was; an id of the same millisecond.
    pub(super) fn made_up(self, thing: &str) -> String {
        match self {
            Nothing => String::new(),
            Address => "someone@elsewhere.example".into(),
            DomainName => "elsewhere.example".into(),
            _ => new_id(id_time(thing.parse().unwrap()).unwrap()).to_string(),
        }
    }
}

/// What a body is, with whatever has to be new each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    None,
    /// A new address, and a password.
    NewAccount,
    /// Address and password of a mailbox of A.
    SignIn,
    /// A Pro token of A.
    Session,
    /// Another password.
    Password,
    /// A new name.
    Domain,
    /// The name of a token.
    Token,
    /// URL and events of a webhook.
    Webhook,
}

/// A route.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) door: Door,
    pub(super) names: Names,
    pub(super) body: Body,
    /// The status where it is done.
    pub(super) done: u16,
}

const fn get(path: &'static str, door: Door, names: Names) -> Route {
    Route { method: "GET", path, door, names, body: Body::None, done: 200 }
}

const fn delete(path: &'static str, door: Door, names: Names) -> Route {
    Route { method: "DELETE", path, door, names, body: Body::None, done: 204 }
}

const fn post(path: &'static str, door: Door, names: Names, body: Body, done: u16) -> Route {
    Route { method: "POST", path, door, names, body, done }
}

const fn put(path: &'static str, door: Door, names: Names, body: Body, done: u16) -> Route {
    Route { method: "PUT", path, door, names, body, done }
}

pub(super) const ROUTES: &[Route] = &[
    get("/openapi.json", Open, Nothing),
    get("/docs", Open, Nothing),
    get("/api/domains", Open, Nothing),
    post("/api/accounts", MaybePro, Nothing, Body::NewAccount, 201),
    post("/api/token", Open, Nothing, Body::SignIn, 200),
    // The mailbox's JWT is its first message: see `mailbox_api::ws`. This is the upgrade.
    Route { method: "GET", path: "/api/ws", door: Open, names: Nothing, body: Body::None, done: 426 },
    get("/api/me", Mailbox, Nothing),
    delete("/api/me", Mailbox, Nothing),
    get("/api/messages", Mailbox, Nothing),
    get("/api/messages/{id}", Mailbox, Message),
    delete("/api/messages/{id}", Mailbox, Message),
    put("/api/messages/{id}/read", Mailbox, Message, Body::None, 204),
    get("/api/messages/{id}/raw", Mailbox, Message),
    get("/api/messages/{id}/attachments/{index}", Mailbox, Message),
    post("/pro/api/session", Open, Nothing, Body::Session, 200),
    get("/pro/api/accounts", Pro, Nothing),
    delete("/pro/api/accounts/{id}", Pro, Account),
    put("/pro/api/accounts/{id}/reset-password", Pro, Account, Body::Password, 200),
    get("/pro/api/accounts/{id}/messages", Pro, Account),
    get("/pro/api/domains", Pro, Nothing),
    post("/pro/api/domains", Pro, Nothing, Body::Domain, 201),
    post("/pro/api/domains/{id}/verify", Pro, Domain, Body::None, 200),
    delete("/pro/api/domains/{id}", Pro, Domain),
    get("/pro/api/webhooks", Pro, Nothing),
    post("/pro/api/webhooks", Pro, Nothing, Body::Webhook, 201),
    delete("/pro/api/webhooks/{id}", Pro, Webhook),
    post("/pro/api/webhooks/{id}/rotate", Pro, Webhook, Body::None, 200),
    get("/pro/api/webhooks/{id}/deliveries", Pro, Webhook),
    get("/pro/api/tokens", Pro, Nothing),
    post("/pro/api/tokens", Pro, Nothing, Body::Token, 201),
    delete("/pro/api/tokens/{id}", Pro, ProToken),
    get("/v1/config", Open, Nothing),
    get("/v1/inbox/{address}", Live, Address),
    delete("/v1/inbox/{address}", Live, Address),
    get("/v1/me", Live, Nothing),
    get("/v1/domain/{domain}", Live, DomainName),
    get("/v1/sse/addr", Stream, Address),
    get("/v1/sse/user", Stream, Nothing),
    get("/v1/email/{id}", Live, Message),
    delete("/v1/email/{id}", Live, Message),
    get("/v1/email/{id}/raw", Live, Message),
    get("/v1/email/{id}/attachments/{index}", Live, Message),
    get("/v1/domains", Live, Nothing),
    post("/v1/domains", Live, Nothing, Body::Domain, 201),
    delete("/v1/domains/{id}", Live, Domain),
    get("/v1/tokens", Live, Nothing),
    post("/v1/tokens", Live, Nothing, Body::Token, 201),
    delete("/v1/tokens/{id}", Live, LiveToken),
];
