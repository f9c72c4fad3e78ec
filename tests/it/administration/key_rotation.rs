//! Replacing the keys of an installation, by the steps of `docs/operations.md`.

mod jwt;
mod sealed;
mod secrets;

use tempmail_tests::Fleet;
use tempmail_tests::fleet::RoleProcess;
use tempmail_tests::wait::eventually;

/// Replaces a process, as a rollout does.
async fn roll(process: &RoleProcess) {
    process.terminate().await;
    process.restart().await;
}

/// Waits until the worker has counted this many sealed values by the key that sealed them.
pub(crate) async fn wait_for_sealed_values(fleet: &Fleet, expected: [(&str, usize); 3]) {
    eventually(&format!("the sealed values are {expected:?}"), || async {
        let metrics = fleet.worker(0).metrics().await;
        let is_there = |(key, count): (&str, usize)| {
            metrics.lines().any(|line| line == format!("tempmail_sealed_values{{key=\"{key}\"}} {count}"))
        };
        expected.into_iter().all(is_there).then_some(())
    })
    .await;
}
