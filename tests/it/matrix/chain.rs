//! Tokens that tokens make: none does what the first of its chain may not, and all end with it.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::surface::DropInSurface;
use tempmail_model::token::TokenKind;
use tempmail_tests::{App, Response};

const ADDRESS: &str = "quay@inbox.localhost";

/// The tokens that a live token makes, and what these make.
struct Chain {
    /// Made by the first token, and by that one.
    live: Vec<String>,
    /// For all drop-in surfaces: made by the first token, and by the last one.
    surface: Vec<String>,
    /// Minted by the first token, and by the last one.
    minted: Vec<String>,
}

impl Chain {
    async fn make(app: &App, first: &str) -> Self {
        let mut chain = Self { live: Vec::new(), surface: Vec::new(), minted: Vec::new() };
        let mut maker = first.to_owned();
        for _ in 0..2 {
            maker = text(&create(app, &maker, &json!({ "name": "made" })).await.expect(201), "token");
            chain.live.push(maker.clone());
        }
        for maker in [first, &maker] {
            let surfaces = DropInSurface::ALL.map(DropInSurface::as_str);
            let made = create(app, maker, &json!({ "name": "made", "surfaces": surfaces })).await;
            chain.surface.push(text(&made.expect(201), "token"));
            chain.minted.push(app.mint(maker, ADDRESS).await.token);
        }
        chain
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.live.iter().chain(&self.surface).chain(&self.minted)
    }

    /// Asserts the answer to each token wherever it is accepted.
    async fn assert_status(&self, app: &App, status: u16, on_surfaces: u16) {
        for token in &self.live {
            let answer = app.get_as(token, "/v1/tokens").await;
            assert_eq!(answer.status, status, "{}", answer.text());
        }
        for token in &self.minted {
            let answer = app.get_as(token, &format!("/v1/inbox/{ADDRESS}?since=0")).await;
            assert_eq!(answer.status, status, "{}", answer.text());
        }
        for token in &self.surface {
            for (surface, path) in [
                (DropInSurface::Mailpit, "/api/v1/messages"),
                (DropInSurface::MailHog, "/api/v2/messages"),
                (DropInSurface::Mailosaur, "/api/servers"),
            ] {
                let answer = app.drop_in_request(surface, Method::GET, path).bearer(token).send().await;
                assert_eq!(answer.status, on_surfaces, "{surface:?}: {}", answer.text());
            }
        }
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}

async fn create(app: &App, live: &str, body: &Value) -> Response {
    app.request(Method::POST, "/v1/tokens").live(live).json(body).send().await
}

/// The id of a token of the tenant.
async fn id_of(app: &App, token: &str) -> String {
    let listed = app.request(Method::GET, "/pro/api/tokens").bearer(&app.tenant.pro).send().await.expect(200);
    let listed = listed["tokens"].as_array().unwrap().iter();
    text(listed.clone().find(|listed| token.ends_with(listed["hint"].as_str().unwrap())).unwrap(), "id")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_live_token_makes_may_not_do_more() {
    let app = App::builder().drop_ins().start().await;
    app.deliver(ADDRESS, "there", "").await;
    let chain = Chain::make(&app, &app.tenant.live).await;
    chain.assert_status(&app, 200, 200).await;
    let mailbox = json!({ "address": "made@inbox.localhost", "password": "correct horse" });
    for token in chain.all().chain([&app.tenant.live]) {
        let made = app.request(Method::POST, "/api/accounts").bearer(token).json(&mailbox).send().await;
        made.assert_api_error(401, "invalid_token");
        for path in ["/pro/api/accounts", "/pro/api/tokens"] {
            app.request(Method::GET, path).bearer(token).send().await.assert_api_error(401, "invalid_token");
        }
        let session = json!({ "token": token });
        let session = app.request(Method::POST, "/pro/api/session").json(&session).send().await;
        session.assert_api_error(401, "invalid_token");
        for surface in DropInSurface::ALL {
            for path in ["/accounts", "/api/accounts", "/api/servers", "/api/v1/send"] {
                let request = app.drop_in_request(surface, Method::POST, path).bearer(token).json(&mailbox);
                let answer = request.send().await;
                assert!([401, 404, 405].contains(&answer.status), "{surface:?} {path}: {answer:?}");
            }
        }
    }
    for token in chain.live.iter().chain([&app.tenant.live]) {
        let pro = create(&app, token, &json!({ "name": "more", "kind": "pro" })).await;
        pro.assert_v1_error(400, "invalid_request");
    }
    assert_eq!(app.count("SELECT count(*) FROM mailbox").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_live_token_makes_is_revoked_with_it() {
    let app = App::builder().drop_ins().start().await;
    app.deliver(ADDRESS, "there", "").await;
    let first = app.token(&app.tenant, TokenKind::Live).await;
    let chain = Chain::make(&app, &first).await;
    chain.assert_status(&app, 200, 200).await;
    let waits = chain.live.iter().map(|token| app.get_as(token, "/v1/inbox/empty@inbox.localhost"));
    let revoke = async {
        let path = format!("/v1/tokens/{}", id_of(&app, &first).await);
        assert_eq!(app.delete(&path).await.status, 204);
    };
    let (waited, ()) = tokio::join!(futures_util::future::join_all(waits), revoke);
    for answer in waited {
        answer.assert_v1_error(401, "invalid_token");
    }
    chain.assert_status(&app, 401, 401).await;
    // Those that were minted have no row that is revoked.
    let revoked = "SELECT count(*) FROM audit WHERE kind = 'token' AND action = 'revoked'";
    assert_eq!(app.count(revoked).await, 5, "each is in the audit trail");
    assert_eq!(app.get("/v1/tokens").await.status, 200, "no other token of the tenant ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_live_token_makes_expires_with_it() {
    let app = App::builder().drop_ins().start().await;
    app.deliver(ADDRESS, "there", "").await;
    let made = app.request(Method::POST, "/pro/api/tokens").bearer(&app.tenant.pro);
    let made = made.json(&json!({ "name": "first", "kind": "live", "expires_in_days": 2 })).send().await;
    let first = made.expect(201);
    let body = json!({ "name": "longer", "expires_in_days": 30, "surfaces": ["mailpit"] });
    let longer = create(&app, &text(&first, "token"), &body).await.expect(201);
    assert_eq!(longer["expires_at"], first["expires_at"]);
    let chain = Chain::make(&app, &text(&first, "token")).await;
    chain.assert_status(&app, 200, 200).await;
    app.advance_hours(2 * 24);
    chain.assert_status(&app, 440, 401).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pro_token_makes_is_its_tenants_and_stays() {
    let app = App::builder().drop_ins().start().await;
    app.deliver(ADDRESS, "there", "").await;
    let pro = app.token(&app.tenant, TokenKind::Pro).await;
    let make = async |kind: &str| {
        let request = app.request(Method::POST, "/pro/api/tokens").bearer(&pro);
        text(&request.json(&json!({ "name": "made", "kind": kind })).send().await.expect(201), "token")
    };
    let (another, live) = (make("pro").await, make("live").await);
    let chain = Chain::make(&app, &live).await;
    let path = format!("/pro/api/tokens/{}", id_of(&app, &pro).await);
    assert_eq!(app.request(Method::DELETE, &path).bearer(&another).send().await.status, 204);
    let listed = app.request(Method::GET, "/pro/api/tokens").bearer(&another).send().await;
    assert_eq!(listed.status, 200);
    chain.assert_status(&app, 200, 200).await;
}
