//! Every route with every credential. The expected response of each pair follows from the rules in [`credential`] and
//! the table in [`route`], which must list every route of the OpenAPI document.

#![expect(clippy::print_stdout, reason = "the number of requests is for the reader of the log")]

mod chain;
mod credential;
mod fixture;
mod ids;
mod minted;
mod presentation;
mod proxy;
mod route;

use std::collections::BTreeSet;

use tempmail_tests::Response;

use self::credential::{Decision, Identity, PresentedCredentials};
use self::fixture::MatrixFixture;
use self::presentation::presentations;
use self::route::{ROUTES, Route};

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_every_credential_by_the_rules() {
    let fixture = MatrixFixture::create().await;
    let presented = presentations(&fixture);
    let mut requests = 0;
    for route in ROUTES {
        let target = fixture.create_target(route.target).await;
        for presented in &presented {
            // Requests of A change the target, so they come last, the first of them to this target.
            if presented.decide(route.access) != Decision::Admitted(Identity::A) {
                requests += request(&fixture, route, presented, &target).await;
            }
        }
        let mut unchanged = Some(target);
        for presented in &presented {
            if presented.decide(route.access) == Decision::Admitted(Identity::A) {
                let target = match unchanged.take() {
                    Some(target) => target,
                    None => fixture.create_target(route.target).await,
                };
                requests += request(&fixture, route, presented, &target).await;
            }
        }
    }
    println!("{requests} requests: {} routes, {} credentials", ROUTES.len(), presented.len());
}

/// Sends a request about a target of A and asserts the response; returns 1.
async fn request(
    fixture: &MatrixFixture,
    route: &Route,
    presented: &PresentedCredentials,
    id: &str,
) -> usize {
    let name = format!("{} {} with {}", route.method, route.path, presented.name);
    let response = fixture.send_to(route, presented, id).await;
    match presented.decide(route.access) {
        Decision::Rejected(status, code) => {
            assert_error(&name, route, &response, status, code);
            let challenge = response.header("www-authenticate");
            assert_eq!(challenge.is_empty(), status != 401, "{name}: {challenge}");
        }
        Decision::Admitted(Identity::B) if route.target.is_named() => {
            assert_error(&name, route, &response, 404, "not_found");
            let unknown = fixture.send_to(route, presented, &route.target.unknown_like(id)).await;
            assert_eq!(response.appearance(), unknown.appearance(), "{name}: discloses that A has it");
        }
        Decision::Admitted(identity) => {
            assert_eq!(response.status, route.success, "{name}: {}", response.text());
            for secret in fixture.secrets_from(identity) {
                assert!(!response.text().contains(&secret), "{name} discloses {secret}: {}", response.text());
            }
        }
    }
    1
}

fn assert_error(name: &str, route: &Route, response: &Response, status: u16, code: &str) {
    assert_eq!(response.status, status, "{name}: {}", response.text());
    assert_eq!(response.json()["error"], code, "{name}");
    if route.path.starts_with("/v1") {
        response.assert_v1_error(status, code);
    } else {
        response.assert_api_error(status, code);
    }
}

#[test]
fn table_lists_every_documented_route() {
    let document = tempmail_api_server::openapi_document();
    let documented: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, operations)| {
            let methods = operations.as_object().unwrap().keys();
            methods.map(move |method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let expected: BTreeSet<(String, String)> =
        ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_owned())).collect();
    let missing: Vec<_> = documented.symmetric_difference(&expected).collect();
    assert!(missing.is_empty(), "only in the document or only in the table: {missing:?}");
    assert_eq!(expected.len(), ROUTES.len(), "no route is in the table twice");
}
