//! Every route with every credential: each cell has one right answer, which follows from the
//! rules in [`credential`] and the table in [`route`]. A route of the OpenAPI document that is
//! not in the table fails the test.

#![expect(clippy::print_stdout, reason = "how much was asked is worth a line")]

mod credential;
mod ids;
mod route;
mod world;

use std::collections::BTreeSet;

use tempmail_tests::Answer;

use self::credential::{Presented, Verdict, Who};
use self::route::{ROUTES, Route};
use self::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_every_credential_by_the_rules() {
    let world = World::build().await;
    let presented = world.presentations();
    let mut cells = 0;
    for route in ROUTES {
        let standing = world.make(route.names).await;
        for presented in &presented {
            // What A may do is done last, and first of all to the thing that stood all of this.
            if presented.verdict(route.door) != Verdict::Admitted(Who::A) {
                cells += cell(&world, route, presented, &standing).await;
            }
        }
        let mut thing = Some(standing);
        for presented in &presented {
            if presented.verdict(route.door) == Verdict::Admitted(Who::A) {
                let thing = match thing.take() {
                    Some(standing) => standing,
                    None => world.make(route.names).await,
                };
                cells += cell(&world, route, presented, &thing).await;
            }
        }
    }
    println!("{cells} cells: {} routes, {} credentials", ROUTES.len(), presented.len());
}

/// Asks a route about a thing of A and asserts the one right answer; returns 1.
async fn cell(world: &World, route: &Route, presented: &Presented, thing: &str) -> usize {
    let name = format!("{} {} with {}", route.method, route.path, presented.name);
    let answer = world.ask(route, presented, thing).await;
    match presented.verdict(route.door) {
        Verdict::Refused(status, code) => {
            is_error(&name, route, &answer, status, code);
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge.is_empty(), status != 401, "{name}: {challenge}");
        }
        Verdict::Admitted(Who::B) if route.names.a_thing_of_a() => {
            is_error(&name, route, &answer, 404, "not_found");
            let made_up = world.ask(route, presented, &route.names.made_up(thing)).await;
            assert_eq!(answer.appearance(), made_up.appearance(), "{name}: it tells that A has it");
        }
        Verdict::Admitted(who) => {
            assert_eq!(answer.status, route.done, "{name}: {}", answer.text());
            for secret in world.known_to_a_alone(who) {
                assert!(!answer.text().contains(&secret), "{name} tells {secret}: {}", answer.text());
            }
        }
    }
    1
}

fn is_error(name: &str, route: &Route, answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{name}: {}", answer.text());
    assert_eq!(answer.json()["error"], code, "{name}");
    if route.path.starts_with("/v1") {
        answer.is_v1_error(status, code);
    } else {
        answer.is_api_error(status, code);
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
    assert!(missing.is_empty(), "in the document or in the table alone: {missing:?}");
    assert_eq!(expected.len(), ROUTES.len(), "no route is in the table twice");
}
