//! Two tenants with every resource that a route can name, and every kind of credential.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::app::Mailbox;
use tempmail_tests::http::percent;
use tempmail_tests::{App, Response, Tenant, rows, send_mail};

use super::credential::{CredentialKind, Identity, PresentedCredentials};
use super::route::{BodyTemplate, Route, Target};

/// A mail with HTML and one attachment.
const MAIL: &[u8] = b"From: a@client.example\r\nSubject: for A alone\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>for A alone</p>\r\n\
    --b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"a.pdf\"\r\n\r\n\
    %PDF\r\n--b--\r\n";

/// A credential, its kind and identity.
pub(super) struct Credential {
    pub(super) name: &'static str,
    pub(super) kind: CredentialKind,
    pub(super) identity: Identity,
    pub(super) secret: String,
}

/// Tenants A and B, and others whose credentials are invalid.
pub(super) struct MatrixFixture {
    pub(super) app: App,
    pub(super) b: Tenant,
    /// The mailbox of A that receives its messages.
    pub(super) mailbox_a: Mailbox,
    pub(super) mailbox_b: Mailbox,
    pub(super) credentials: Vec<Credential>,
    created: AtomicUsize,
}

impl MatrixFixture {
    pub(super) async fn create() -> Self {
        let app = App::start().await;
        let b = app.another_tenant("lighthouse").await;
        let suspended = app.another_tenant("suspended").await;
        rows::lift_limits(&app.pool).await;
        let mut credentials = expired(&app).await;
        app.advance_hours(8 * 24);
        credentials.extend(revoked(&app).await);
        credentials.extend(of_suspended(&app, &suspended).await);
        let mailbox_a = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
        let mailbox_b = app.mailbox(Some(&b.pro), "lamp@inbox.localhost").await;
        let free = app.mailbox(None, "free@inbox.localhost").await;
        // Every tenant has mail, so that long-polls return at once.
        for address in [&mailbox_a.address, &mailbox_b.address, "postmaster@inbox.localhost"] {
            app.deliver(address, "for its owner", "").await;
        }
        let mut add = |name, kind, identity, secret: &str| {
            credentials.push(Credential { name, kind, identity, secret: secret.to_owned() });
        };
        add("a JWT of A", CredentialKind::Jwt, Identity::A, &mailbox_a.jwt);
        add("a JWT of B", CredentialKind::Jwt, Identity::B, &mailbox_b.jwt);
        add("a JWT of a free mailbox", CredentialKind::Jwt, Identity::B, &free.jwt);
        add("a Pro token of A", CredentialKind::Pro, Identity::A, &app.tenant.pro);
        add("a Pro token of B", CredentialKind::Pro, Identity::B, &b.pro);
        add("a session of A", CredentialKind::Session, Identity::A, &session(&app, &app.tenant.pro).await);
        add("a session of B", CredentialKind::Session, Identity::B, &session(&app, &b.pro).await);
        add("a live token of A", CredentialKind::Live, Identity::A, &app.tenant.live);
        add("a live token of B", CredentialKind::Live, Identity::B, &b.live);
        let minted = app.mint(&app.tenant.live, "quay+minted@inbox.localhost").await.token;
        add("a minted token of A", CredentialKind::Minted, Identity::A, &minted);
        let minted = app.mint(&b.live, "lamp+minted@inbox.localhost").await.token;
        add("a minted token of B", CredentialKind::Minted, Identity::B, &minted);
        let on_surface = app.request(Method::POST, "/v1/tokens").live(&app.tenant.live);
        let on_surface =
            on_surface.json(&json!({ "name": "quay", "surfaces": ["mailpit"] })).send().await.expect(201);
        let on_surface = on_surface["token"].as_str().unwrap();
        add("a token of A for a drop-in surface", CredentialKind::Live, Identity::Revoked, on_surface);
        add("a live token of platform", CredentialKind::Live, Identity::B, &app.platform_token().await);
        Self { app, b, mailbox_a, mailbox_b, credentials, created: AtomicUsize::new(0) }
    }

    /// Creates a resource of A; returns its name in a path.
    pub(super) async fn create_target(&self, target: Target) -> String {
        match target {
            Target::Unnamed => String::new(),
            Target::Message => {
                let reply =
                    send_mail(self.app.smtp(), "a@client.example", &self.mailbox_a.address, MAIL).await;
                assert_eq!(reply.code, 250, "{reply:?}");
                let newest = self.app.messages(&self.mailbox_a).await[0]["id"].clone();
                newest.as_str().unwrap().to_owned()
            }
            Target::Address => {
                let address = format!("quay-{}@inbox.localhost", self.number());
                self.app.mailbox(Some(&self.app.tenant.pro), &address).await;
                self.app.deliver(&address, "for A alone", "").await;
                address
            }
            Target::Account => {
                let address = format!("quay-{}@inbox.localhost", self.number());
                self.app.mailbox(Some(&self.app.tenant.pro), &address).await.id.to_string()
            }
            Target::Domain => {
                let body = json!({ "domain": format!("quay-{}.example", self.number()) });
                self.create_as_a("/pro/api/domains", &body).await
            }
            Target::DomainName => {
                let name = format!("quay-{}.example", self.number());
                self.app.custom_domain(&self.app.tenant, &name).await;
                self.app.deliver(&format!("any@{name}"), "for A alone", "").await;
                name
            }
            Target::Webhook => {
                let body = json!({ "url": "https://quay.example/", "events": ["email.received"] });
                self.create_as_a("/pro/api/webhooks", &body).await
            }
            Target::ProToken => {
                self.create_as_a("/pro/api/tokens", &json!({ "name": "quay", "kind": "pro" })).await
            }
            Target::Document => {
                let message = Box::pin(self.create_target(Target::Message)).await;
                let path = format!("/pro/api/messages/{message}/document");
                let request = self.app.request(Method::POST, &path).bearer(&self.app.tenant.pro);
                let created = request.json(&json!({})).send().await.expect(201);
                let url = created["url"].as_str().unwrap();
                url.strip_prefix("/pro/api/document/").unwrap().to_owned()
            }
            Target::LiveToken => {
                self.create_as_a("/pro/api/tokens", &json!({ "name": "quay", "kind": "live" })).await
            }
        }
    }

    /// Creates a resource over `/pro/api`; returns its id.
    async fn create_as_a(&self, path: &str, body: &Value) -> String {
        let request = self.app.request(Method::POST, path).bearer(&self.app.tenant.pro).json(body);
        request.send().await.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// Sends the request of a route about a resource.
    pub(super) async fn send_to(
        &self,
        route: &Route,
        presented: &PresentedCredentials,
        id: &str,
    ) -> Response {
        let path = route.path.replace("{index}", "0");
        let path = ["{id}", "{address}", "{domain}"].iter().fold(path, |path, name| path.replace(name, id));
        let mut query = Vec::new();
        if route.path == "/v1/sse/addr" {
            query.push(format!("address={}", percent(id)));
        }
        query.extend(presented.token.iter().map(|(value, ..)| format!("token={}", percent(value))));
        let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
        let mut request = self.app.request(route.method.parse::<Method>().unwrap(), &path);
        if let Some((value, kind, identity)) = &presented.authorization {
            // The request that invalidates its JWT or session gets one that no other request uses.
            let tenant = match identity {
                Identity::A => Some(&self.app.tenant),
                Identity::B => Some(&self.b),
                _ => None,
            };
            let value = match (route.method, route.path, *kind, tenant) {
                ("DELETE", "/api/me", CredentialKind::Jwt, Some(tenant)) => &self.unused_jwt(tenant).await,
                ("DELETE", "/pro/api/session", CredentialKind::Session, Some(tenant)) => {
                    &format!("Bearer {}", session(&self.app, &tenant.pro).await)
                }
                _ => value,
            };
            request = request.header("authorization", value);
        }
        if let Some((value, _, _)) = &presented.x_api_token {
            request = request.live(value);
        }
        match self.body(route.body) {
            Some(body) => request.json(&body).send().await,
            None => request.send().await,
        }
    }

    fn body(&self, body: BodyTemplate) -> Option<Value> {
        let mailbox = &self.mailbox_a;
        match body {
            BodyTemplate::None => None,
            BodyTemplate::NewAccount => {
                let address = format!("new-{}@inbox.localhost", self.number());
                Some(json!({ "address": address, "password": "correct horse" }))
            }
            BodyTemplate::SignIn => Some(json!({ "address": mailbox.address, "password": mailbox.password })),
            BodyTemplate::Session => Some(json!({ "token": self.app.tenant.pro })),
            BodyTemplate::Password => Some(json!({ "password": "another horse" })),
            BodyTemplate::Domain => Some(json!({ "domain": format!("new-{}.example", self.number()) })),
            BodyTemplate::Token => Some(json!({ "name": "robot" })),
            BodyTemplate::Document => Some(json!({ "remote": true })),
            BodyTemplate::SignInCode => Some(json!({ "code": "0".repeat(64) })),
            BodyTemplate::WaitOnOwned => Some(json!({ "all": true, "since": "0" })),
            BodyTemplate::Webhook => {
                Some(json!({ "url": "https://hooks.example/", "events": ["email.received"] }))
            }
        }
    }

    /// What no response to `identity` may contain.
    pub(super) fn secrets_from(&self, identity: Identity) -> Vec<String> {
        if identity == Identity::B { vec!["quay".into(), "for A alone".into()] } else { Vec::new() }
    }

    async fn unused_jwt(&self, tenant: &Tenant) -> String {
        let address = format!("own-{}@inbox.localhost", self.number());
        format!("Bearer {}", self.app.mailbox(Some(&tenant.pro), &address).await.jwt)
    }

    fn number(&self) -> usize {
        self.created.fetch_add(1, Ordering::Relaxed)
    }
}

/// Credentials that expire within 8 days.
async fn expired(app: &App) -> Vec<Credential> {
    let of = |name, kind, secret| Credential { name, kind, identity: Identity::Expired, secret };
    let jwt = app.mailbox(Some(&app.tenant.pro), "quay-early@inbox.localhost").await.jwt;
    let (pro, live) =
        (app.token(&app.tenant, TokenKind::Pro).await, app.token(&app.tenant, TokenKind::Live).await);
    let made = made_by(app, &live).await;
    for token in [&pro, &live] {
        rows::expire_token(&app.pool, token, app.clock.now() + SignedDuration::from_hours(7 * 24)).await;
    }
    let session = session(app, &app.tenant.pro).await;
    vec![
        of("an expired JWT", CredentialKind::Jwt, jwt),
        of("an expired Pro token", CredentialKind::Pro, pro),
        of("an expired session", CredentialKind::Session, session),
        of("an expired live token", CredentialKind::Live, live),
        of("a live token that an expired one made", CredentialKind::Live, made),
    ]
}

/// Revoked credentials.
async fn revoked(app: &App) -> Vec<Credential> {
    let of = |name, kind, secret| Credential { name, kind, identity: Identity::Revoked, secret };
    let reset = app.mailbox(Some(&app.tenant.pro), "quay-reset@inbox.localhost").await;
    rows::advance_password_epoch(&app.pool, reset.id).await;
    let deleted = app.mailbox(Some(&app.tenant.pro), "quay-deleted@inbox.localhost").await;
    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&deleted.jwt).send().await.status, 204);
    let (pro, live) =
        (app.token(&app.tenant, TokenKind::Pro).await, app.token(&app.tenant, TokenKind::Live).await);
    let session = session(app, &pro).await;
    let (made, minted) =
        (made_by(app, &live).await, app.mint(&live, "quay+minted@inbox.localhost").await.token);
    for token in [&pro, &live] {
        rows::revoke_token(&app.pool, token, app.clock.now()).await;
    }
    vec![
        of("a JWT from before a reset", CredentialKind::Jwt, reset.jwt),
        of("a JWT of a deleted mailbox", CredentialKind::Jwt, deleted.jwt),
        of("a revoked Pro token", CredentialKind::Pro, pro),
        of("a session of a revoked token", CredentialKind::Session, session),
        of("a revoked live token", CredentialKind::Live, live),
        of("a live token that a revoked one made", CredentialKind::Live, made),
        of("a token that a revoked live token minted", CredentialKind::Minted, minted),
    ]
}

/// Suspends a tenant; its credentials.
async fn of_suspended(app: &App, tenant: &Tenant) -> Vec<Credential> {
    let of = |name, kind, secret| Credential { name, kind, identity: Identity::Suspended, secret };
    let jwt = app.mailbox(Some(&tenant.pro), "frozen@inbox.localhost").await.jwt;
    let session = session(app, &tenant.pro).await;
    rows::suspend_tenant(&app.pool, tenant.id).await;
    vec![
        of("a JWT of a suspended tenant", CredentialKind::Jwt, jwt),
        of("a Pro token of a suspended tenant", CredentialKind::Pro, tenant.pro.clone()),
        of("a session of a suspended tenant", CredentialKind::Session, session),
        of("a live token of a suspended tenant", CredentialKind::Live, tenant.live.clone()),
    ]
}

/// A live token that another one makes.
async fn made_by(app: &App, live: &str) -> String {
    let request = app.request(Method::POST, "/v1/tokens").live(live);
    let made = request.json(&json!({ "name": "made" })).send().await.expect(201);
    made["token"].as_str().unwrap().to_owned()
}

/// Exchanges a Pro token for a session.
pub(super) async fn session(app: &App, pro: &str) -> String {
    let request = app.request(Method::POST, "/pro/api/session").json(&json!({ "token": pro }));
    request.send().await.expect(200)["token"].as_str().unwrap().to_owned()
}
