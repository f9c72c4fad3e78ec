//! Kills at every write of every action.

use tempmail_tests::kubernetes::StopPoint;

use super::action::{KINDS, UserAction};
use super::fixture::CrashFixture;
use super::kill::KillPoint;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: takes 3 minutes"]
async fn recovers_from_a_kill_before_any_write_to_the_api_server() {
    kill_at_every_write(KillPoint::Request(StopPoint::BeforeWrite)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: takes 3 minutes"]
async fn recovers_from_a_kill_after_any_write_to_the_api_server() {
    kill_at_every_write(KillPoint::Request(StopPoint::AfterWrite)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: takes 3 minutes"]
async fn recovers_from_a_kill_at_any_statement() {
    kill_at_every_write(KillPoint::Statement).await;
}

async fn kill_at_every_write(point: KillPoint) {
    let fixture = CrashFixture::start().await;
    let mut actions = vec![UserAction::CreateTenant];
    for &kind in KINDS {
        actions.push(UserAction::Create(kind));
        if kind.rotates {
            actions.push(UserAction::Rotate(kind));
        }
        actions.push(UserAction::Delete(kind));
    }
    actions.push(UserAction::DeleteTenant);
    for action in actions {
        fixture.kill_at_each_write(action, point).await;
    }
}
