//! Every route with every credential: two tenants and a shared inbox.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::PgPool;
use tempmail_model::clock::Clock as _;
use tempmail_model::surface::DropInSurface;
use tempmail_model::token::TokenKind;
use tempmail_tests::{App, Response, Tenant, rows};

use super::{deliver, unknown_like};

/// What the mail of A has in its subject, and that of the shared inbox.
const SECRET: &str = "the-secret-of-A";
const SHARED: &str = "in-the-shared-inbox";

/// A route: `{id}` is a message of A, `{server}` its domain.
struct Route {
    surface: DropInSurface,
    method: Method,
    path: &'static str,
    body: Option<fn() -> Value>,
    success: u16,
}

fn routes() -> Vec<Route> {
    use DropInSurface::{MailHog, Mailosaur, Mailpit};
    let get = |surface, path| Route { surface, method: Method::GET, path, body: None, success: 200 };
    let of = |surface, method, path, success| Route { surface, method, path, body: None, success };
    vec![
        get(Mailpit, "/api/v1/info"),
        get(Mailpit, "/api/v1/webui"),
        get(Mailpit, "/api/v1/tags"),
        get(Mailpit, "/api/v1/messages"),
        get(Mailpit, "/api/v1/search?query=subject:the-secret"),
        get(Mailpit, "/api/v1/search?query=the-secret"),
        get(Mailpit, "/api/v1/message/{id}"),
        get(Mailpit, "/api/v1/message/{id}/headers"),
        get(Mailpit, "/api/v1/message/{id}/raw"),
        get(Mailpit, "/api/v1/message/{id}/part/0"),
        get(Mailpit, "/api/v1/message/{id}/part/0/thumb"),
        get(Mailpit, "/view/{id}.html"),
        get(Mailpit, "/view/{id}.txt"),
        Route { body: Some(|| json!({"Read": true})), ..of(Mailpit, Method::PUT, "/api/v1/messages", 200) },
        of(Mailpit, Method::DELETE, "/api/v1/search?query=subject:the-secret", 200),
        of(Mailpit, Method::DELETE, "/api/v1/messages", 200),
        get(MailHog, "/api/v1/messages"),
        get(MailHog, "/api/v2/messages"),
        get(MailHog, "/api/v2/search?kind=containing&query=the-secret"),
        get(MailHog, "/api/v1/messages/{id}"),
        get(MailHog, "/api/v1/messages/{id}/download"),
        get(MailHog, "/api/v1/messages/{id}/mime/part/0/download"),
        of(MailHog, Method::DELETE, "/api/v1/messages/{id}", 200),
        of(MailHog, Method::DELETE, "/api/v1/messages", 200),
        get(Mailosaur, "/api/servers"),
        get(Mailosaur, "/api/servers/{server}"),
        get(Mailosaur, "/api/messages?server={server}"),
        Route {
            body: Some(|| json!({"subject": "the-secret"})),
            ..of(Mailosaur, Method::POST, "/api/messages/search?server={server}", 200)
        },
        get(Mailosaur, "/api/messages/{id}"),
        get(Mailosaur, "/api/files/email/{id}"),
        get(Mailosaur, "/api/files/attachments/{id}-0"),
        of(Mailosaur, Method::DELETE, "/api/messages/{id}", 204),
        of(Mailosaur, Method::DELETE, "/api/messages?server={server}", 204),
    ]
}

const A_DOMAIN: &str = "a.example";

async fn send(app: &App, route: &Route, token: Option<&str>, id: &str) -> Response {
    let path = route.path.replace("{id}", id).replace("{server}", A_DOMAIN);
    let request = app.drop_in_request(route.surface, route.method.clone(), &path);
    let request = match token {
        Some(token) => request.bearer(token),
        None => request,
    };
    match route.body {
        Some(body) => request.json(&body()).send().await,
        None => request.send().await,
    }
}

/// A new message of A.
async fn message_of_a(app: &App, a: &Tenant) -> String {
    let address = format!("kim@{A_DOMAIN}");
    deliver(app, &address, &super::whole(&address, SECRET)).await;
    let emails = app.emails_as(&a.live, &address).await;
    emails[0]["id"].as_str().unwrap().to_owned()
}

/// A token of A for a surface, which a live token made that `end` ends.
async fn of_ended_live_token(
    app: &App,
    a: &Tenant,
    surface: DropInSurface,
    end: impl AsyncFn(&PgPool, &str, Timestamp),
) -> String {
    let maker = Tenant { live: app.token(a, TokenKind::Live).await, ..a.clone() };
    let token = app.surface_token(&maker, &[surface]).await;
    end(&app.pool, &maker.live, app.clock.now()).await;
    token
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_every_credential_by_the_rules() {
    let app = App::builder().drop_ins().start().await;
    let (a, b) = (app.tenant.clone(), app.another_tenant("b").await);
    app.custom_domain(&a, A_DOMAIN).await;
    app.custom_domain(&b, "b.example").await;
    app.deliver("anyone@inbox.localhost", SHARED, "").await;
    for surface in [DropInSurface::Mailpit, DropInSurface::MailHog, DropInSurface::Mailosaur] {
        let token_a = app.surface_token(&a, &[surface]).await;
        let token_b = app.surface_token(&b, &[surface]).await;
        let others: Vec<_> = DropInSurface::ALL.into_iter().filter(|other| *other != surface).collect();
        let of_others = app.surface_token(&a, &others).await;
        let minted = app.mint(&a.live, &format!("kim@{A_DOMAIN}")).await.token;
        let revoked = of_ended_live_token(&app, &a, surface, rows::revoke_token).await;
        let expired = of_ended_live_token(&app, &a, surface, rows::expire_token).await;
        for route in routes().iter().filter(|route| route.surface == surface) {
            let name = format!("{surface:?} {} {}", route.method, route.path);
            let id = message_of_a(&app, &a).await;
            for (credential, token) in [
                ("no token", None),
                ("a token of other surfaces", Some(of_others.as_str())),
                ("a live token", Some(&a.live)),
                ("a Pro token", Some(&a.pro)),
                ("a minted token", Some(&minted)),
                ("a token that a revoked live token made", Some(&revoked)),
                ("a token that an expired live token made", Some(&expired)),
            ] {
                let answer = send(&app, route, token, &id).await;
                assert_eq!(answer.status, 401, "{name} with {credential}: {}", answer.text());
                assert!(!answer.text().contains(SECRET), "{name} with {credential}");
            }
            let of_b = send(&app, route, Some(&token_b), &id).await;
            assert!(!of_b.text().contains(SECRET), "{name} shows B the mail of A: {}", of_b.text());
            assert!(!of_b.text().contains(SHARED), "{name} shows B a shared inbox: {}", of_b.text());
            if route.path.contains('{') {
                assert_eq!(of_b.status, 404, "{name} with the token of B: {}", of_b.text());
            }
            if route.path.contains("{id}") {
                let unknown = send(&app, route, Some(&token_b), &unknown_like(&id)).await;
                assert_eq!(of_b.appearance(), unknown.appearance(), "{name} discloses that A has it");
            }
            let still = app.get_as(&a.live, &format!("/v1/email/{id}")).await;
            assert_eq!(still.status, 200, "{name} with the token of B deletes the mail of A");
            let of_a = send(&app, route, Some(&token_a), &id).await;
            assert_eq!(of_a.status, route.success, "{name} with the token of A: {}", of_a.text());
            assert!(!of_a.text().contains(SHARED), "{name} lists a shared inbox: {}", of_a.text());
        }
    }
    let shared = app.emails("anyone@inbox.localhost").await;
    assert_eq!(shared.len(), 1, "no surface deletes from a shared inbox that is not named");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_inbox_is_found_by_its_exact_address_only() {
    let app = App::builder().drop_ins().start().await;
    app.deliver("anyone@inbox.localhost", SHARED, "").await;
    let token = app.surface_token(&app.tenant, &DropInSurface::ALL).await;
    let get =
        |surface, path: &'static str| app.drop_in_request(surface, Method::GET, path).bearer(&token).send();
    for (surface, path, is_found) in [
        (DropInSurface::Mailpit, "/api/v1/search?query=to:anyone@inbox.localhost", true),
        (DropInSurface::Mailpit, "/api/v1/search?query=to:anyone@inbox.localhost%20-subject:shared", false),
        (DropInSurface::Mailpit, "/api/v1/search?query=to:nyone@inbox.localhost", false),
        (DropInSurface::Mailpit, "/api/v1/search?query=to:inbox.localhost", false),
        (DropInSurface::Mailpit, "/api/v1/search?query=-to:anyone@inbox.localhost", false),
        (DropInSurface::Mailpit, "/api/v1/search?query=subject:shared", false),
        (DropInSurface::Mailpit, "/api/v1/messages", false),
        (DropInSurface::Mailpit, "/api/v1/message/latest", false),
        (DropInSurface::MailHog, "/api/v2/search?kind=to&query=anyone@inbox.localhost", true),
        (DropInSurface::MailHog, "/api/v2/search?kind=to&query=inbox.localhost", false),
        (DropInSurface::MailHog, "/api/v2/search?kind=containing&query=shared", false),
        (DropInSurface::MailHog, "/api/v1/messages", false),
        (DropInSurface::Mailosaur, "/api/messages?server=inbox.localhost", false),
    ] {
        let answer = get(surface, path).await;
        assert_eq!(answer.text().contains(SHARED), is_found, "{surface:?} {path}: {}", answer.text());
    }
    let search = |criteria: Value| {
        let path = "/api/messages/search?server=inbox.localhost";
        app.drop_in_request(DropInSurface::Mailosaur, Method::POST, path)
            .bearer(&token)
            .json(&criteria)
            .send()
    };
    assert!(search(json!({"sentTo": "anyone@inbox.localhost"})).await.text().contains(SHARED));
    assert!(
        search(json!({"sentTo": "ANYONE@inbox.localhost", "subject": "IN-the"}))
            .await
            .text()
            .contains(SHARED)
    );
    assert!(!search(json!({"subject": "shared"})).await.text().contains(SHARED));
    let any = json!({"sentTo": "anyone@inbox.localhost", "subject": "x", "match": "ANY"});
    assert!(!search(any).await.text().contains(SHARED));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_marks_what_is_in_a_shared_inbox() {
    let app = App::builder().drop_ins().start().await;
    app.deliver("anyone@inbox.localhost", SHARED, "").await;
    let token = app.surface_token(&app.tenant, &[DropInSurface::Mailpit]).await;
    let request =
        |method, path: &str| app.drop_in_request(DropInSurface::Mailpit, method, path).bearer(&token);
    let search = async || {
        let path = "/api/v1/search?query=to:anyone@inbox.localhost";
        request(Method::GET, path).send().await.expect(200)["messages"][0].clone()
    };
    let id = search().await["ID"].as_str().unwrap().to_owned();
    assert_eq!(request(Method::GET, &format!("/api/v1/message/{id}")).send().await.status, 200);
    for body in
        [json!({"IDs": [id], "Read": true}), json!({"Search": "to:anyone@inbox.localhost", "Read": true})]
    {
        assert_eq!(request(Method::PUT, "/api/v1/messages").json(&body).send().await.status, 200);
        assert_eq!(search().await["Read"], false, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_mailbox_is_nobodys_on_the_surfaces_of_a_tenant() {
    let app = App::builder().drop_ins().start().await;
    app.mailbox(None, "free@inbox.localhost").await;
    app.deliver("free@inbox.localhost", SECRET, "").await;
    let token = app.surface_token(&app.tenant, &DropInSurface::ALL).await;
    for path in ["/api/v1/search?query=to:free@inbox.localhost", "/api/v1/messages"] {
        let answer =
            app.drop_in_request(DropInSurface::Mailpit, Method::GET, path).bearer(&token).send().await;
        assert!(answer.status == 200 && !answer.text().contains(SECRET), "{path}: {}", answer.text());
    }
}
