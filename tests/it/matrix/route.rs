//! The routes: credential, target and success status of each.

use tempmail_model::id::{id_time, new_id};

use super::credential::RouteAccess::{self, Live, Mailbox, Open, OptionalPro, Pro, Stream};

/// The resource that a path names. All of them belong to A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// None: the route is about the caller, or public.
    Unnamed,
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
    /// A document of a message of A, which opens once.
    Document,
}
use Target::{
    Account, Address, Document, Domain, DomainName, LiveToken, Message, ProToken, Unnamed, Webhook,
};

impl Target {
    /// Whether the path names a resource, which only A can see.
    pub(super) fn is_named(self) -> bool {
        self != Unnamed
    }

    /// A name of the same form that does not exist; an id of the same millisecond.
    pub(super) fn unknown_like(self, id: &str) -> String {
        match self {
            Unnamed => String::new(),
            Address => "someone@elsewhere.example".into(),
            DomainName => "elsewhere.example".into(),
            Document => "unknown".into(),
            _ => new_id(id_time(id.parse().unwrap()).unwrap()).to_string(),
        }
    }
}

/// The body of a request; some values must be unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyTemplate {
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
    /// Whether a document has remote images.
    Document,
    /// A code that signs nobody in.
    SignInCode,
    /// A look at everything that is owned.
    WaitOnOwned,
}

/// A route.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) access: RouteAccess,
    pub(super) target: Target,
    pub(super) body: BodyTemplate,
    /// Status on success.
    pub(super) success: u16,
}

const fn get(path: &'static str, access: RouteAccess, target: Target) -> Route {
    Route { method: "GET", path, access, target, body: BodyTemplate::None, success: 200 }
}

const fn delete(path: &'static str, access: RouteAccess, target: Target) -> Route {
    Route { method: "DELETE", path, access, target, body: BodyTemplate::None, success: 204 }
}

const fn post(
    path: &'static str,
    access: RouteAccess,
    target: Target,
    body: BodyTemplate,
    success: u16,
) -> Route {
    Route { method: "POST", path, access, target, body, success }
}

const fn put(
    path: &'static str,
    access: RouteAccess,
    target: Target,
    body: BodyTemplate,
    success: u16,
) -> Route {
    Route { method: "PUT", path, access, target, body, success }
}

pub(super) const ROUTES: &[Route] = &[
    get("/openapi.json", Open, Unnamed),
    get("/docs", Open, Unnamed),
    get("/api/domains", Open, Unnamed),
    post("/api/accounts", OptionalPro, Unnamed, BodyTemplate::NewAccount, 201),
    post("/api/token", Open, Unnamed, BodyTemplate::SignIn, 200),
    // The JWT is in the first message (`mailbox_api::ws`): this is a request without an upgrade.
    Route {
        method: "GET",
        path: "/api/ws",
        access: Open,
        target: Unnamed,
        body: BodyTemplate::None,
        success: 426,
    },
    get("/api/me", Mailbox, Unnamed),
    delete("/api/me", Mailbox, Unnamed),
    get("/api/messages", Mailbox, Unnamed),
    get("/api/messages/{id}", Mailbox, Message),
    delete("/api/messages/{id}", Mailbox, Message),
    put("/api/messages/{id}/read", Mailbox, Message, BodyTemplate::None, 204),
    get("/api/messages/{id}/codes", Mailbox, Message),
    get("/api/messages/{id}/raw", Mailbox, Message),
    get("/api/messages/{id}/attachments/{index}", Mailbox, Message),
    post("/api/messages/{id}/document", Mailbox, Message, BodyTemplate::Document, 201),
    // The address of a document is all that it needs (`documents`): this is one of none.
    Route {
        method: "GET",
        path: "/document/{id}",
        access: Open,
        target: Unnamed,
        body: BodyTemplate::None,
        success: 404,
    },
    post("/pro/api/session", Open, Unnamed, BodyTemplate::Session, 200),
    get("/pro/api/session", Pro, Unnamed),
    delete("/pro/api/session", Pro, Unnamed),
    // For pages of the site itself (`pro_api::session`), which this request does not come from.
    post("/pro/api/session/link", Open, Unnamed, BodyTemplate::SignInCode, 403),
    get("/pro/api/messages", Pro, Unnamed),
    get("/pro/api/messages/events", Pro, Unnamed),
    get("/pro/api/messages/{id}", Pro, Message),
    delete("/pro/api/messages/{id}", Pro, Message),
    get("/pro/api/messages/{id}/source", Pro, Message),
    get("/pro/api/messages/{id}/attachments/{index}", Pro, Message),
    post("/pro/api/messages/{id}/document", Pro, Message, BodyTemplate::Document, 201),
    get("/pro/api/document/{id}", Pro, Document),
    get("/pro/api/usage", Pro, Unnamed),
    get("/pro/api/accounts", Pro, Unnamed),
    post("/pro/api/accounts", Pro, Unnamed, BodyTemplate::NewAccount, 201),
    delete("/pro/api/accounts/{id}", Pro, Account),
    put("/pro/api/accounts/{id}/reset-password", Pro, Account, BodyTemplate::Password, 200),
    get("/pro/api/accounts/{id}/messages", Pro, Account),
    get("/pro/api/domains", Pro, Unnamed),
    post("/pro/api/domains", Pro, Unnamed, BodyTemplate::Domain, 201),
    post("/pro/api/domains/{id}/verify", Pro, Domain, BodyTemplate::None, 200),
    delete("/pro/api/domains/{id}", Pro, Domain),
    get("/pro/api/webhooks", Pro, Unnamed),
    post("/pro/api/webhooks", Pro, Unnamed, BodyTemplate::Webhook, 201),
    delete("/pro/api/webhooks/{id}", Pro, Webhook),
    post("/pro/api/webhooks/{id}/rotate", Pro, Webhook, BodyTemplate::None, 200),
    get("/pro/api/webhooks/{id}/deliveries", Pro, Webhook),
    get("/pro/api/tokens", Pro, Unnamed),
    post("/pro/api/tokens", Pro, Unnamed, BodyTemplate::Token, 201),
    delete("/pro/api/tokens/{id}", Pro, ProToken),
    get("/v1/config", Open, Unnamed),
    get("/v1/inbox/{address}", Live, Address),
    delete("/v1/inbox/{address}", Live, Address),
    post("/v1/wait", Live, Unnamed, BodyTemplate::WaitOnOwned, 200),
    get("/v1/emails", Live, Unnamed),
    get("/v1/me", Live, Unnamed),
    get("/v1/domain/{domain}", Live, DomainName),
    get("/v1/sse/addr", Stream, Address),
    get("/v1/sse/user", Stream, Unnamed),
    get("/v1/email/{id}", Live, Message),
    delete("/v1/email/{id}", Live, Message),
    get("/v1/email/{id}/codes", Live, Message),
    get("/v1/email/{id}/raw", Live, Message),
    get("/v1/email/{id}/attachments/{index}", Live, Message),
    get("/v1/domains", Live, Unnamed),
    post("/v1/domains", Live, Unnamed, BodyTemplate::Domain, 201),
    delete("/v1/domains/{id}", Live, Domain),
    get("/v1/tokens", Live, Unnamed),
    post("/v1/tokens", Live, Unnamed, BodyTemplate::Token, 201),
    delete("/v1/tokens/{id}", Live, LiveToken),
    // Last: long-polls return at once while there is mail.
    delete("/pro/api/messages", Pro, Unnamed),
];
