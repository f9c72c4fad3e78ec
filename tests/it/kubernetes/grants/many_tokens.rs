//! A thousand tokens of a namespace.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tempmail_tests::kubernetes::{Installation, Team, condition, secret_value};
use tempmail_tests::wait::eventually;

use super::{Credential, assert_refused};

/// How many there are.
const TOKENS: usize = 1_000;
/// Requests that are sent at once.
const REQUESTS: usize = 25;

/// Declares the tokens, and returns them when all are ready.
async fn declare_tokens(team: &Team) -> Vec<Credential> {
    let declared = stream::iter(0..TOKENS).map(|number| async move {
        team.apply("ApiToken", &format!("token-{number}"), "type: Live").await;
    });
    declared.buffer_unordered(REQUESTS).collect::<Vec<()>>().await;
    eventually("all tokens are ready", || async {
        let tokens = team.list("apitoken").await;
        let is_ready =
            |token: &Value| condition(token, "Ready").is_some_and(|ready| ready["status"] == "True");
        tokens.iter().all(is_ready).then_some(())
    })
    .await;
    let secrets = team.list("secret").await;
    secrets.iter().filter_map(|secret| secret_value(secret, "token")).map(Credential::Live).collect()
}

/// Asserts that none of them is accepted later than `bound` after the loss of the grant.
pub(super) async fn are_refused_after(bound: Duration) {
    let installation = Installation::exclusive().await;
    let team = Team::with_spec(&installation.cluster, &format!("limits: {{tokens: {TOKENS}}}")).await;
    let tokens = declare_tokens(&team).await;
    assert_eq!(tokens.len(), TOKENS);
    let accepted = stream::iter(&tokens).map(|token| token.status(&installation));
    let accepted: Vec<_> = accepted.buffer_unordered(REQUESTS).collect().await;
    assert!(accepted.iter().all(|status| *status == 200), "{accepted:?}");
    team.revoke_grant().await;
    let lost_at = Instant::now();
    let groups = tokens.chunks(TOKENS / REQUESTS);
    join_all(groups.map(|tokens| assert_refused(&installation, tokens, lost_at, bound))).await;
}
