//! Kills at every write of every act.

use tempmail_tests::kubernetes::StopPoint;

use super::action::{KINDS, UserAction};
use super::fixture::CrashFixture;
use super::kill::KillPoint;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: takes 7 minutes"]
async fn recovers_from_a_kill_at_any_write() {
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
        for point in [
            KillPoint::Request(StopPoint::BeforeWrite),
            KillPoint::Request(StopPoint::AfterWrite),
            KillPoint::Statement,
        ] {
            fixture.kill_at_each_write(action, point).await;
        }
    }
}
