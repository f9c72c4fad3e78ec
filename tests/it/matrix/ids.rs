//! Ids of another tenant and unknown ids, at every age.

use jiff::SignedDuration;
use tempmail_model::clock::Clock as _;

use super::assert_error;
use super::credential::{CredentialKind, Decision, Identity, PresentedCredentials, RouteAccess};
use super::fixture::{MatrixFixture, session};
use super::route::{ROUTES, Route, Target};

/// The credential of B for a route, with a new session, since one expires meanwhile.
async fn of_b(fixture: &MatrixFixture, access: RouteAccess) -> PresentedCredentials {
    let none = PresentedCredentials::none("B");
    let bearer = |secret: &str, kind| {
        PresentedCredentials::none("B").authorization(&format!("Bearer {secret}"), kind, Identity::B)
    };
    match access {
        RouteAccess::Mailbox => bearer(&fixture.mailbox_b.jwt, CredentialKind::Jwt),
        RouteAccess::Pro | RouteAccess::OptionalPro => {
            bearer(&session(&fixture.app, &fixture.b.pro).await, CredentialKind::Session)
        }
        RouteAccess::Live | RouteAccess::Stream => {
            none.x_api_token(&fixture.b.live, CredentialKind::Live, Identity::B)
        }
        RouteAccess::Open => none,
    }
}

/// To B, a message of A is like an unknown one: 404 while mail of that age may exist for anybody, 410 from then on. Other
/// ids are always 404.
#[tokio::test(flavor = "multi_thread")]
async fn answers_an_id_of_another_tenant_like_an_unknown_id_of_the_same_age() {
    let fixture = MatrixFixture::create().await;
    // Keeps all messages readable for A.
    sqlx::query("UPDATE tenant SET retention_hours = 168, classes = '{72,168}'")
        .execute(&fixture.app.pool)
        .await
        .unwrap();
    let mut ids = Vec::new();
    for route in ROUTES {
        ids.push(fixture.create_target(route.target).await);
    }
    let mut pairs = 0;
    let began = fixture.app.clock.now();
    for (age, of_a_message) in [
        (SignedDuration::from_mins(5), (404, "not_found")),
        (SignedDuration::from_hours(2), (410, "email_expired")),
        (SignedDuration::from_hours(80), (410, "email_expired")),
    ] {
        fixture.app.clock.advance(age - fixture.app.clock.now().duration_since(began));
        let of_ids = |route: &Route| route.path.contains("{id}") && route.target.is_named();
        for (route, id) in ROUTES.iter().zip(&ids).filter(|(route, _)| of_ids(route)) {
            let b = of_b(&fixture, route.access).await;
            assert_eq!(b.decide(route.access), Decision::Admitted(Identity::B));
            let name = format!("{} {} after {age:#}", route.method, route.path);
            let theirs = fixture.send_to(route, &b, id).await;
            let unknown = fixture.send_to(route, &b, &route.target.unknown_like(id)).await;
            let expected = if route.target == Target::Message { of_a_message } else { (404, "not_found") };
            assert_error(&name, route, &theirs, expected.0, expected.1);
            assert_eq!(theirs.appearance(), unknown.appearance(), "{name}");
            pairs += 1;
        }
    }
    // A can still read it.
    let message = &ids[ROUTES.iter().position(|route| route.target == Target::Message).unwrap()];
    assert_eq!(fixture.app.get(&format!("/v1/email/{message}")).await.status, 200);
    println!("{pairs} pairs of responses");
}
