//! An operator that is killed at a write, to the API server or to Postgres: the next one brings
//! everything to the same end.

mod action;
mod fixture;
mod kill;

use tempmail_tests::kubernetes::StopPoint;

use self::action::UserAction;
use self::fixture::CrashFixture;
use self::kill::KillPoint;
use super::object_kinds::{API_TOKEN, CUSTOM_DOMAIN, MAILBOX, SYSTEM_DOMAIN, WEBHOOK};

#[tokio::test(flavor = "multi_thread")]
async fn recovers_from_a_kill_at_any_write_for_a_new_token() {
    let fixture = CrashFixture::start().await;
    for point in [
        KillPoint::Request(StopPoint::BeforeWrite),
        KillPoint::Request(StopPoint::AfterWrite),
        KillPoint::Statement,
    ] {
        fixture.kill_at_each_write(UserAction::Create(API_TOKEN), point).await;
    }
}

/// Once for each kind of act, after a row was written that the API server shows nothing of yet.
#[tokio::test(flavor = "multi_thread")]
async fn recovers_from_a_kill_after_a_row_is_written() {
    let fixture = CrashFixture::start().await;
    fixture.kill_after_statement(UserAction::CreateTenant, 1).await;
    for kind in [SYSTEM_DOMAIN, CUSTOM_DOMAIN, WEBHOOK, MAILBOX] {
        fixture.kill_after_statement(UserAction::Create(kind), 2).await;
    }
    fixture.kill_after_statement(UserAction::Rotate(API_TOKEN), 1).await;
    fixture.kill_after_statement(UserAction::Delete(WEBHOOK), 1).await;
    fixture.kill_after_statement(UserAction::DeleteTenant, 1).await;
}

/// Kills at every write of every action.
mod chaos {
    use tempmail_tests::kubernetes::StopPoint;

    use super::super::object_kinds::KINDS;
    use super::action::UserAction;
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
        for kind in KINDS.into_iter().filter(|kind| kind.name != "Tenant") {
            actions.push(UserAction::Create(kind));
            if kind.secret.is_some() {
                actions.push(UserAction::Rotate(kind));
            }
            actions.push(UserAction::Delete(kind));
        }
        actions.push(UserAction::DeleteTenant);
        for action in actions {
            fixture.kill_at_each_write(action, point).await;
        }
    }
}
