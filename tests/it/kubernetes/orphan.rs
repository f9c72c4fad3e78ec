//! Rows whose objects vanished without letting go of them.

mod successor;

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::World;
use tempmail_tests::kubernetes::Team;
use tempmail_tests::wait::eventually;

/// Takes an object away as somebody does who takes its finalizer away.
async fn vanish(team: &Team<'_>, object: &str) {
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    team.kubectl(&["patch", object, "--type=merge", "-p", patch]).await.unwrap();
    team.kubectl(&["delete", object, "--timeout=120s"]).await.unwrap();
}

/// Whether an object is noted as missing; `None` where nothing is noted of it.
async fn is_missing<C>(world: &World<C>, name: &str) -> Option<bool> {
    sqlx::query_scalar("SELECT missing_since IS NOT NULL FROM resource WHERE name = $1")
        .bind(name)
        .fetch_optional(&world.app.pool)
        .await
        .unwrap()
}

async fn noted_as_missing<C>(world: &World<C>, name: &str) {
    eventually(&format!("{name} is noted as missing"), || async {
        (is_missing(world, name).await == Some(true)).then_some(())
    })
    .await;
}

/// Whether a domain is there, and who manages it.
async fn managed_by<C>(world: &World<C>, domain: &str) -> Option<String> {
    sqlx::query_scalar("SELECT managed_by FROM domain WHERE name = $1 AND removed_at IS NULL")
        .bind(domain)
        .fetch_optional(&world.app.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_kept_for_a_day_and_then_let_go_of_as_its_object_said() {
    let mut world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    let gone = Team::with(&world.cluster, "").await;
    let policies = [("goes", "Delete"), ("stays", "Retain"), ("lives", "Delete"), ("later", "Delete")];
    for (name, policy) in policies {
        let spec = format!("domain: {}, deletionPolicy: {policy}", team.domain(name));
        team.apply("CustomDomain", name, &spec).await.unwrap();
        team.wait(&format!("customdomain/{name}"), "Accepted").await;
    }
    let shown = gone.get(&format!("tenant/{}", gone.tenant)).await;
    let pro = world.token(shown["status"]["tenantId"].as_str().unwrap(), TokenKind::Pro).await;

    world.app.stop_operator();
    for object in ["customdomain/goes", "customdomain/stays", &format!("tenant/{}", gone.tenant)] {
        vanish(if object.starts_with("tenant") { &gone } else { &team }, object).await;
    }
    // One that was missing and came back.
    sqlx::query("UPDATE resource SET missing_since = '2020-01-01' WHERE name = 'lives'")
        .execute(&world.app.pool)
        .await
        .unwrap();
    world.app.start_operator(world.cluster.client());
    for name in ["goes", "stays", &gone.tenant] {
        noted_as_missing(&world, name).await;
    }
    eventually("what came back is missing no more", || async {
        (is_missing(&world, "lives").await == Some(false)).then_some(())
    })
    .await;

    world.app.stop_operator();
    vanish(&team, "customdomain/later").await;
    world.app.clock.advance(SignedDuration::from_hours(23));
    world.app.start_operator(world.cluster.client());
    noted_as_missing(&world, "later").await;
    for name in ["goes", "stays", &gone.tenant] {
        assert_eq!(is_missing(&world, name).await, Some(true), "{name} is kept for a day");
    }
    let domains = world.request(Method::GET, "/pro/api/domains").bearer(&pro).send().await;
    assert_eq!(domains.status, 200, "the tenant is served");

    world.app.stop_operator();
    world.app.clock.advance(SignedDuration::from_hours(2));
    world.app.start_operator(world.cluster.client());
    for name in ["goes", "stays", &gone.tenant] {
        eventually(&format!("{name} is let go of"), || async {
            is_missing(&world, name).await.is_none().then_some(())
        })
        .await;
    }
    assert_eq!(managed_by(&world, &team.domain("goes")).await, None);
    assert_eq!(managed_by(&world, &team.domain("stays")).await.as_deref(), Some("api"));
    assert_eq!(managed_by(&world, &team.domain("lives")).await.as_deref(), Some("kubernetes"));
    assert_eq!(managed_by(&world, &team.domain("later")).await.as_deref(), Some("kubernetes"));
    let domains = world.request(Method::GET, "/pro/api/domains").bearer(&pro).send().await;
    domains.assert_api_error(403, "account_disabled");
}
