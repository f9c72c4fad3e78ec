//! The loss of many grants at once.

use std::time::Duration;

use tempmail_tests::wait::DEADLINE;

use super::{many_tokens, sequences};

/// Within this time after the loss of its grant no token of a namespace works.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: 141 teams, which no machine is quick enough for to assert on time"]
async fn no_order_of_actions_keeps_access_or_destroys_data() {
    sequences::run_all(4, DEADLINE).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: asserts on time, a thousand tokens"]
async fn refuses_a_thousand_tokens_within_5_s() {
    many_tokens::are_refused_after(ENDS_WITHIN).await;
}
