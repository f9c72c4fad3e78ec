//! Two tenants with everything a route can name, and every credential there is.

use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use tempmail_tests::app::Mailbox;
use tempmail_tests::http::percent;
use tempmail_tests::{Answer, App, Tenant, send_mail};

use super::credential::{Kind, Presented, Who};
use super::route::{Body, Names, Route};

/// A mail with one attachment.
const MAIL: &[u8] = b"From: a@client.example\r\nSubject: for A alone\r\nMIME-Version: 1.0\r\n\
    Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"a.pdf\"\r\n\r\n%PDF\r\n";

/// A credential and what it is.
struct Credential {
    name: &'static str,
    kind: Kind,
    who: Who,
    secret: String,
}

/// Tempmail with tenants A and B, and others that may do nothing.
pub(super) struct World {
    pub(super) app: App,
    pub(super) b: Tenant,
    /// Where A's mail goes.
    pub(super) mailbox_a: Mailbox,
    pub(super) mailbox_b: Mailbox,
    credentials: Vec<Credential>,
    made: AtomicUsize,
}

impl World {
    pub(super) async fn build() -> Self {
        let app = App::start().await;
        let b = app.another_tenant("lighthouse").await;
        let suspended = app.another_tenant("suspended").await;
        sqlx::query("UPDATE tenant SET mailbox_limit = 1000, domain_limit = 1000, webhook_limit = 1000, token_limit = 1000")
            .execute(&app.pool)
            .await
            .unwrap();
        let mut credentials = expired(&app).await;
        app.advance_hours(8 * 24);
        credentials.extend(revoked(&app).await);
        credentials.extend(of_suspended(&app, &suspended).await);
        let mailbox_a = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
        let mailbox_b = app.mailbox(Some(&b.pro), "lamp@inbox.localhost").await;
        let free = app.mailbox(None, "free@inbox.localhost").await;
        // What each tenant owns has mail, so that waiting on it is answered at once.
        for address in [&mailbox_a.address, &mailbox_b.address, "postmaster@inbox.localhost"] {
            app.deliver(address, "for its owner", "").await;
        }
        let mut add = |name, kind, who, secret: &str| {
            credentials.push(Credential { name, kind, who, secret: secret.to_owned() });
        };
        add("a JWT of A", Kind::Jwt, Who::A, &mailbox_a.jwt);
        add("a JWT of B", Kind::Jwt, Who::B, &mailbox_b.jwt);
        add("a JWT of a free mailbox", Kind::Jwt, Who::B, &free.jwt);
        add("a Pro token of A", Kind::Pro, Who::A, &app.tenant.pro);
        add("a Pro token of B", Kind::Pro, Who::B, &b.pro);
        add("a session of A", Kind::Session, Who::A, &session(&app, &app.tenant.pro).await);
        add("a session of B", Kind::Session, Who::B, &session(&app, &b.pro).await);
        add("a live token of A", Kind::Live, Who::A, &app.tenant.live);
        add("a live token of B", Kind::Live, Who::B, &b.live);
        add("a live token of platform", Kind::Live, Who::B, &app.platform_token().await);
        Self { app, b, mailbox_a, mailbox_b, credentials, made: AtomicUsize::new(0) }
    }

    /// Each credential in each header, nothing at all, and junk.
    pub(super) fn presentations(&self) -> Vec<Presented> {
        let nothing = |name: String| Presented { name, authorization: None, x_api_token: None, token: None };
        let mut all = vec![nothing("nothing".into())];
        let (pro, live) = (&self.app.tenant.pro, &self.app.tenant.live);
        all.push(Presented {
            authorization: Some((String::new(), Kind::Empty, Who::Nobody)),
            x_api_token: Some((String::new(), Kind::Empty, Who::Nobody)),
            token: Some((String::new(), Kind::Empty, Who::Nobody)),
            ..nothing("empty header fields".into())
        });
        for Credential { name, kind, who, secret } in &self.credentials {
            all.push(Presented {
                authorization: Some((format!("Bearer {secret}"), *kind, *who)),
                ..nothing(format!("{name} as Bearer"))
            });
            all.push(Presented {
                x_api_token: Some((secret.clone(), *kind, *who)),
                ..nothing(format!("{name} as x-api-token"))
            });
            all.push(Presented {
                token: Some((secret.clone(), *kind, *who)),
                ..nothing(format!("{name} in the query"))
            });
            all.push(Presented {
                x_api_token: Some((live.clone(), Kind::Live, Who::A)),
                token: Some((secret.clone(), *kind, *who)),
                ..nothing(format!("{name} in the query and a live token of A as x-api-token"))
            });
        }
        let unknown_pro = PlainToken::generate(TokenKind::Pro).unwrap();
        let unknown_live = PlainToken::generate(TokenKind::Live).unwrap();
        let jwt = &self.mailbox_a.jwt;
        let (head, signature) = jwt.rsplit_once('.').unwrap();
        for junk in [
            "Bearer x",
            "Bearer",
            "x",
            "Bearer tm_pro_",
            "Bearer a.b.c",
            "Basic YTpi",
            &format!("Basic {pro}"),
            &format!("Bearer {}", unknown_pro.expose()),
            &format!("Bearer {}", unknown_live.expose()),
            &format!("Bearer {pro}0"),
            &format!("Bearer {} ", pro.to_uppercase()),
            &format!("Bearer {pro}, Bearer {pro}"),
            &format!("Bearer {head}."),
            &format!("Bearer {head}.{}", signature.chars().rev().collect::<String>()),
            pro,
            jwt,
        ] {
            all.push(Presented {
                authorization: Some((junk.to_owned(), Kind::Junk, Who::Nobody)),
                ..nothing(format!("Authorization: {junk}"))
            });
        }
        for junk in [
            "x",
            "tm_live_",
            unknown_live.expose(),
            unknown_pro.expose(),
            &format!("{live}0"),
            &live[..live.len() - 1],
            &live.to_uppercase(),
            &format!("Bearer {live}"),
            &format!("{live}, {live}"),
        ] {
            all.push(Presented {
                x_api_token: Some((junk.to_owned(), Kind::Junk, Who::Nobody)),
                ..nothing(format!("x-api-token: {junk}"))
            });
            all.push(Presented {
                token: Some((junk.to_owned(), Kind::Junk, Who::Nobody)),
                ..nothing(format!("token={junk}"))
            });
        }
        // A header that the surface does not look at changes nothing.
        all.push(Presented {
            authorization: Some((format!("bearer {pro}"), Kind::Pro, Who::A)),
            x_api_token: Some(("junk".into(), Kind::Junk, Who::Nobody)),
            ..nothing("a Pro token of A, and junk as x-api-token".into())
        });
        all.push(Presented {
            authorization: Some(("junk".into(), Kind::Junk, Who::Nobody)),
            x_api_token: Some((live.clone(), Kind::Live, Who::A)),
            ..nothing("a live token of A, and junk as Authorization".into())
        });
        all
    }

    /// A new thing of A, as the path names it.
    pub(super) async fn make(&self, names: Names) -> String {
        match names {
            Names::Nothing => String::new(),
            Names::Message => {
                let reply =
                    send_mail(self.app.smtp(), "a@client.example", &self.mailbox_a.address, MAIL).await;
                assert_eq!(reply.code, 250, "{reply:?}");
                let newest = self.app.messages(&self.mailbox_a).await[0]["id"].clone();
                newest.as_str().unwrap().to_owned()
            }
            Names::Address => {
                let address = format!("quay-{}@inbox.localhost", self.number());
                self.app.mailbox(Some(&self.app.tenant.pro), &address).await;
                self.app.deliver(&address, "for A alone", "").await;
                address
            }
            Names::Account => {
                let address = format!("quay-{}@inbox.localhost", self.number());
                self.app.mailbox(Some(&self.app.tenant.pro), &address).await.id.to_string()
            }
            Names::Domain => {
                let body = json!({ "domain": format!("quay-{}.example", self.number()) });
                self.made_by_a("/pro/api/domains", &body).await
            }
            Names::DomainName => {
                let name = format!("quay-{}.example", self.number());
                self.app.custom_domain(&self.app.tenant, &name).await;
                self.app.deliver(&format!("any@{name}"), "for A alone", "").await;
                name
            }
            Names::Webhook => {
                let body = json!({ "url": "https://quay.example/", "events": ["email.received"] });
                self.made_by_a("/pro/api/webhooks", &body).await
            }
            Names::ProToken => {
                self.made_by_a("/pro/api/tokens", &json!({ "name": "quay", "kind": "pro" })).await
            }
            Names::LiveToken => {
                self.made_by_a("/pro/api/tokens", &json!({ "name": "quay", "kind": "live" })).await
            }
        }
    }

    /// The id of a thing that A makes.
    async fn made_by_a(&self, path: &str, body: &Value) -> String {
        let request = self.app.request(Method::POST, path).bearer(&self.app.tenant.pro).json(body);
        request.send().await.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// Sends the route's request about a thing.
    pub(super) async fn ask(&self, route: &Route, presented: &Presented, thing: &str) -> Answer {
        let path = route.path.replace("{index}", "0");
        let path =
            ["{id}", "{address}", "{domain}"].iter().fold(path, |path, name| path.replace(name, thing));
        let mut query = Vec::new();
        if route.path == "/v1/sse/addr" {
            query.push(format!("address={}", percent(thing)));
        }
        query.extend(presented.token.iter().map(|(value, ..)| format!("token={}", percent(value))));
        let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
        let mut request = self.app.request(route.method.parse::<Method>().unwrap(), &path);
        if let Some((value, kind, who)) = &presented.authorization {
            // What ends its own credential needs one that nothing else does.
            let of_its_own = (route.method, route.path, *kind) == ("DELETE", "/api/me", Kind::Jwt);
            let value = match who {
                Who::A if of_its_own => &self.jwt_of_its_own(&self.app.tenant).await,
                Who::B if of_its_own => &self.jwt_of_its_own(&self.b).await,
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

    fn body(&self, body: Body) -> Option<Value> {
        let mailbox = &self.mailbox_a;
        match body {
            Body::None => None,
            Body::NewAccount => {
                let address = format!("new-{}@inbox.localhost", self.number());
                Some(json!({ "address": address, "password": "correct horse" }))
            }
            Body::SignIn => Some(json!({ "address": mailbox.address, "password": mailbox.password })),
            Body::Session => Some(json!({ "token": self.app.tenant.pro })),
            Body::Password => Some(json!({ "password": "another horse" })),
            Body::Domain => Some(json!({ "domain": format!("new-{}.example", self.number()) })),
            Body::Token => Some(json!({ "name": "robot" })),
            Body::Webhook => Some(json!({ "url": "https://hooks.example/", "events": ["email.received"] })),
        }
    }

    /// What no answer to `who` may show.
    pub(super) fn known_to_a_alone(&self, who: Who) -> Vec<String> {
        if who == Who::B { vec!["quay".into(), "for A alone".into()] } else { Vec::new() }
    }

    async fn jwt_of_its_own(&self, tenant: &Tenant) -> String {
        let address = format!("own-{}@inbox.localhost", self.number());
        format!("Bearer {}", self.app.mailbox(Some(&tenant.pro), &address).await.jwt)
    }

    fn number(&self) -> usize {
        self.made.fetch_add(1, Ordering::Relaxed)
    }
}

/// Credentials that are past their time 8 days from now.
async fn expired(app: &App) -> Vec<Credential> {
    let of = |name, kind, secret| Credential { name, kind, who: Who::Expired, secret };
    let jwt = app.mailbox(Some(&app.tenant.pro), "quay-early@inbox.localhost").await.jwt;
    let (pro, live) =
        (app.token(&app.tenant, TokenKind::Pro).await, app.token(&app.tenant, TokenKind::Live).await);
    for (kind, token) in [(TokenKind::Pro, &pro), (TokenKind::Live, &live)] {
        set_token(
            app,
            kind,
            token,
            "UPDATE api_token SET expires_at = created_at + interval '7 days' WHERE hash = $1",
        )
        .await;
    }
    let session = session(app, &app.tenant.pro).await;
    vec![
        of("an expired JWT", Kind::Jwt, jwt),
        of("an expired Pro token", Kind::Pro, pro),
        of("an expired session", Kind::Session, session),
        of("an expired live token", Kind::Live, live),
    ]
}

/// Credentials that were taken back.
async fn revoked(app: &App) -> Vec<Credential> {
    let of = |name, kind, secret| Credential { name, kind, who: Who::Revoked, secret };
    let reset = app.mailbox(Some(&app.tenant.pro), "quay-reset@inbox.localhost").await;
    sqlx::query("UPDATE mailbox SET password_epoch = password_epoch + 1 WHERE id = $1")
        .bind(reset.id)
        .execute(&app.pool)
        .await
        .unwrap();
    let deleted = app.mailbox(Some(&app.tenant.pro), "quay-deleted@inbox.localhost").await;
    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&deleted.jwt).send().await.status, 204);
    let (pro, live) =
        (app.token(&app.tenant, TokenKind::Pro).await, app.token(&app.tenant, TokenKind::Live).await);
    let session = session(app, &pro).await;
    for (kind, token) in [(TokenKind::Pro, &pro), (TokenKind::Live, &live)] {
        set_token(app, kind, token, "UPDATE api_token SET revoked_at = created_at WHERE hash = $1").await;
    }
    vec![
        of("a JWT from before a reset", Kind::Jwt, reset.jwt),
        of("a JWT of a deleted mailbox", Kind::Jwt, deleted.jwt),
        of("a revoked Pro token", Kind::Pro, pro),
        of("a session of a revoked token", Kind::Session, session),
        of("a revoked live token", Kind::Live, live),
    ]
}

/// Credentials of a tenant that is then suspended.
async fn of_suspended(app: &App, tenant: &Tenant) -> Vec<Credential> {
    let of = |name, kind, secret| Credential { name, kind, who: Who::Suspended, secret };
    let jwt = app.mailbox(Some(&tenant.pro), "frozen@inbox.localhost").await.jwt;
    let session = session(app, &tenant.pro).await;
    sqlx::query("UPDATE tenant SET suspended = true WHERE id = $1")
        .bind(tenant.id)
        .execute(&app.pool)
        .await
        .unwrap();
    vec![
        of("a JWT of a suspended tenant", Kind::Jwt, jwt),
        of("a Pro token of a suspended tenant", Kind::Pro, tenant.pro.clone()),
        of("a session of a suspended tenant", Kind::Session, session),
        of("a live token of a suspended tenant", Kind::Live, tenant.live.clone()),
    ]
}

/// Exchanges a Pro token for a session.
pub(super) async fn session(app: &App, pro: &str) -> String {
    let request = app.request(Method::POST, "/pro/api/session").json(&json!({ "token": pro }));
    request.send().await.expect(200)["token"].as_str().unwrap().to_owned()
}

/// Changes the row of a token.
async fn set_token(app: &App, kind: TokenKind, token: &str, statement: &'static str) {
    let hash = TokenHash::from_presented(kind, token).unwrap();
    let changed = sqlx::query(statement).bind(hash.as_bytes().as_slice()).execute(&app.pool).await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
}
