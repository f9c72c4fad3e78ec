//! `POST /v1/wait` across restarts of everything that it depends on.

use tempmail_model::token::TokenKind;
use tempmail_tests::load::senders::Senders;
use tempmail_tests::postgres::StopMode;
use tempmail_tests::{Feed, Follower};
use uuid::Uuid;

use super::super::faults::{killed_api, postgres_restart, redis_outage, with_own_postgres};
use super::super::fixture::{DOMAIN, RealtimeFixture};
use super::FULL;

/// A follower that began after there was mail, and the addresses whose mail it has to receive.
struct LateFollower {
    follower: Follower,
    like: String,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: restarts an API process, Redis and Postgres under load"]
async fn waits_return_each_mail_once_and_none_of_before_across_restarts_of_api_redis_and_postgres() {
    let (postgres, mut fixture) = with_own_postgres().await;
    let senders = Senders::start(&fixture.load());
    senders.wait_for_accepted(FULL.mails).await;
    senders.stop().await;
    let old: i64 =
        sqlx::query_scalar("SELECT max(seq) FROM message").fetch_one(&fixture.fleet.pool).await.unwrap();
    let followers = late_followers(&fixture).await;

    killed_api(&mut fixture, FULL).await;
    let accepted = fixture
        .deliver_across(FULL.mails, async |fixture, senders| {
            for api in [0, 1] {
                let ended = fixture.fleet.api(api).terminate().await;
                assert!(ended.status.success(), "{ended:?}");
                fixture.move_subscribers(api, 1 - api);
                senders.wait_for_accepted(FULL.mails).await;
                fixture.fleet.api(api).restart().await;
                fixture.move_subscribers(api, api);
            }
        })
        .await;
    assert!(!accepted.is_empty());
    redis_outage(&mut fixture, FULL).await;
    let stops = [StopMode::Immediate, StopMode::Fast, StopMode::Kill];
    postgres_restart(&mut fixture, FULL, &postgres, &stops).await;

    for LateFollower { follower, like } in &followers {
        let stored: Vec<Uuid> =
            sqlx::query_scalar("SELECT id FROM message WHERE address LIKE $1 AND seq > $2 ORDER BY seq")
                .bind(like)
                .bind(old)
                .fetch_all(&fixture.fleet.pool)
                .await
                .unwrap();
        follower.wait_for_message(*stored.last().expect("there is mail")).await;
        assert_eq!(follower.received(), stored, "{like}: missed, foreign, or of before");
        assert_eq!(follower.duplicates(), 0, "{like}");
    }
}

/// Followers of each scope at each API process, which stay there while it is restarted.
async fn late_followers(fixture: &RealtimeFixture) -> Vec<LateFollower> {
    let fleet = &fixture.fleet;
    let mut followers = Vec::new();
    for api in 0..2 {
        for (feed, like) in [
            (Feed::Wait(format!("any@{DOMAIN}")), format!("any@{DOMAIN}")),
            (Feed::WaitOwned("desk@".to_owned()), format!("desk@{DOMAIN}")),
        ] {
            let token = fleet.token(&fleet.tenant, TokenKind::Live).await;
            let follower = fleet.follow(api, &token, feed);
            follower.ready().await;
            followers.push(LateFollower { follower, like });
        }
    }
    followers
}
