//! The order of seq is the order of commits; and a test that would notice if it were not.

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use tempmail_tests::App;
use tempmail_tests::postgres::Database;

use super::follower::{addresses, follow};

#[tokio::test(flavor = "multi_thread")]
async fn returns_each_of_ten_thousand_mails_exactly_once() {
    let app = App::builder().ingests(2).start().await;
    let met = follow(&app, &addresses(15), 10_000).await;
    let mut all = BTreeSet::new();
    for (address, met) in &met {
        assert_eq!(met.subjects.len(), met.sent, "{address}");
        for subject in &met.subjects {
            assert!(all.insert(subject.parse::<usize>().unwrap()), "{subject} was met twice");
        }
    }
    assert_eq!(all, (0..10_000).collect());
}

/// The negative control: the same follower over numbers from a plain sequence, which are given
/// out in one order and committed in another.
#[tokio::test(flavor = "multi_thread")]
async fn loses_mail_with_a_plain_sequence() {
    let database = Database::create().await;
    number_by_plain_sequence(&database.pool()).await;
    let app = App::builder().database(database).ingests(2).start().await;
    let met = follow(&app, &addresses(3), 2_000).await;
    let (sent, missed): (usize, usize) = met
        .values()
        .map(|met| {
            let distinct: BTreeSet<&String> = met.subjects.iter().collect();
            (met.sent, met.sent - distinct.len())
        })
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(sent, 2_000);
    assert!(missed > 0, "the follower would not notice a wrong order of seq");
}

/// Replaces the numbering of `accept_mail`: no lock of the stream, the number taken from a
/// sequence when the batch begins, and every second batch slow to commit.
async fn number_by_plain_sequence(pool: &PgPool) {
    let statement = "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'accept_mail'";
    let function: String = sqlx::query_scalar(statement).fetch_one(pool).await.unwrap();
    let locked = "UPDATE stream SET seq = seq + v_count RETURNING seq - v_count INTO STRICT v_before;";
    assert_eq!(function.matches(locked).count(), 1, "accept_mail takes the lock of the stream once");
    let function = function.replace(
        locked,
        "v_before := nextval('plain_seq');
         PERFORM pg_sleep(CASE WHEN (v_before / 100000) % 2 = 0 THEN 0.05 ELSE 0 END);",
    );
    // The counter only follows, and locks nobody out before the end.
    let end =
        function.rfind("END\n$function$").or_else(|| function.rfind("END $function$")).expect("it ends");
    let followed = "UPDATE stream SET seq = greatest(seq, v_before + v_count);\n";
    let function = format!("{}{followed}{}", &function[..end], &function[end..]);
    pool.execute(
        "CREATE SEQUENCE plain_seq INCREMENT 100000 START 100000;
         GRANT USAGE ON SEQUENCE plain_seq TO tempmail_ingest",
    )
    .await
    .unwrap();
    pool.execute(AssertSqlSafe(function)).await.unwrap();
}
