//! An operator that is killed at a write, to the API server or to Postgres: the next one brings
//! everything to the same end.

mod action;
mod chaos;
mod fixture;
mod kill;
mod snapshot;
mod statement;

use tempmail_tests::kubernetes::StopPoint;

use self::action::{API_TOKEN, CUSTOM_DOMAIN, MAILBOX, SYSTEM_DOMAIN, UserAction, WEBHOOK};
use self::fixture::CrashFixture;
use self::kill::KillPoint;

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
