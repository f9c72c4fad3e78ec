//! An outage that is long enough for every retry and timeout.

use std::time::Duration;

use tokio::time::sleep;

use super::survives_an_outage;

const OUTAGE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: takes 3 minutes"]
async fn changes_no_condition_during_an_outage_of_a_minute_and_catches_up_after_it() {
    survives_an_outage(async || sleep(OUTAGE).await).await;
}
