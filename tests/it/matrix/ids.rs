//! Ids of another's things and ids that never were, at every age of them.

use jiff::SignedDuration;
use tempmail_model::clock::Clock as _;

use super::credential::{Door, Kind, Presented, Verdict, Who};
use super::is_error;
use super::route::{Names, ROUTES};
use super::world::{World, session};

/// The credential of B for a door, made now: a JWT or a session would end meanwhile.
async fn of_b(world: &World, door: Door) -> Presented {
    let nothing = Presented { name: "B".into(), authorization: None, x_api_token: None, token: None };
    let bearer = |text: String, kind| Some((format!("Bearer {text}"), kind, Who::B));
    match door {
        Door::Mailbox => {
            Presented { authorization: bearer(world.mailbox_b.jwt.clone(), Kind::Jwt), ..nothing }
        }
        Door::Pro | Door::MaybePro => Presented {
            authorization: bearer(session(&world.app, &world.b.pro).await, Kind::Session),
            ..nothing
        },
        Door::Live | Door::Stream => {
            Presented { x_api_token: Some((world.b.live.clone(), Kind::Live, Who::B)), ..nothing }
        }
        Door::Open => nothing,
    }
}

/// A message that A can still read counts by its id alone, as one that never was: 404 while
/// mail of that moment may be there for anybody, 410 from then on. Other ids are 404 always.
#[tokio::test(flavor = "multi_thread")]
async fn answers_an_id_of_another_tenant_like_an_unknown_id_of_the_same_age() {
    let world = World::build().await;
    // So that the rows are there all the time.
    sqlx::query("UPDATE tenant SET retention_hours = 168, classes = '{72,168}'")
        .execute(&world.app.pool)
        .await
        .unwrap();
    let mut things = Vec::new();
    for route in ROUTES {
        things.push(world.make(route.names).await);
    }
    let mut pairs = 0;
    let began = world.app.clock.now();
    for (age, of_a_message) in [
        (SignedDuration::from_mins(5), (404, "not_found")),
        (SignedDuration::from_hours(2), (410, "email_expired")),
        (SignedDuration::from_hours(80), (410, "email_expired")),
    ] {
        world.app.clock.advance(age - world.app.clock.now().duration_since(began));
        for (route, thing) in ROUTES.iter().zip(&things).filter(|(route, _)| route.path.contains("{id}")) {
            let b = of_b(&world, route.door).await;
            assert_eq!(b.verdict(route.door), Verdict::Admitted(Who::B));
            let name = format!("{} {} after {age:#}", route.method, route.path);
            let theirs = world.ask(route, &b, thing).await;
            let nobodys = world.ask(route, &b, &route.names.made_up(thing)).await;
            let expected = if route.names == Names::Message { of_a_message } else { (404, "not_found") };
            is_error(&name, route, &theirs, expected.0, expected.1);
            assert_eq!(theirs.appearance(), nobodys.appearance(), "{name}");
            pairs += 1;
        }
    }
    // They were there all the time, and whoever may read them still does.
    let message = &things[ROUTES.iter().position(|route| route.names == Names::Message).unwrap()];
    assert_eq!(world.app.get(&format!("/v1/email/{message}")).await.status, 200);
    println!("{pairs} pairs of answers");
}
