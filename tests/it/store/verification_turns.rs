//! Domains are checked a turn of each tenant: one with many domains, or with silent name servers, holds up nobody's.

use std::time::Duration;

use jiff::SignedDuration;
use tempmail_model::clock::Clock as _;
use tempmail_tests::App;
use tempmail_tests::rows::{TenantLimit, set_limit};

use super::store;

const LEASE: Duration = Duration::from_secs(60);

/// How many domains of the first and of the second tenant are claimed.
async fn claim(app: &App, limit: usize) -> (usize, usize) {
    let claimed = store(app).claim_due_domains(limit, LEASE, app.clock.now()).await.unwrap();
    let of_many = claimed.iter().filter(|domain| domain.name.starts_with("many")).count();
    (of_many, claimed.len() - of_many)
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_domains_of_each_tenant_in_turn() {
    let app = App::start().await;
    let other = app.another_tenant("few").await;
    set_limit(&app.pool, app.tenant.id, TenantLimit::Domains, 20).await;
    for number in 0..20 {
        app.domain(&app.tenant, &format!("many{number}.test")).await;
    }
    for number in 0..2 {
        app.domain(&other, &format!("few{number}.test")).await;
    }
    app.clock.advance(SignedDuration::from_mins(10));
    assert_eq!(claim(&app, 4).await, (2, 2), "those of the second tenant are the youngest");
    assert_eq!(claim(&app, 50).await, (3, 0), "a tenant has five in flight");
    assert_eq!(claim(&app, 50).await, (0, 0));
    sqlx::query("UPDATE domain SET next_check_at = NULL WHERE claimed_until IS NOT NULL")
        .execute(&app.pool)
        .await
        .unwrap();
    assert_eq!(claim(&app, 50).await, (5, 0));
}
