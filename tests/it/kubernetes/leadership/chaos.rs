//! A leader that is paused for long.

use std::time::Duration;

use tokio::time::sleep;

use super::resumes_a_paused_leader;

/// Far longer than any lease, connection or request lasts.
const PAUSE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: takes 2 minutes"]
async fn a_leader_that_was_paused_for_a_minute_changes_nothing_when_it_resumes() {
    resumes_a_paused_leader(async || sleep(PAUSE).await).await;
}
