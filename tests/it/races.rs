//! Concurrent requests for one thing: one succeeds, and the others get the error that says why.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tempmail_tests::{App, Response};

/// Attempts at once.
const ATTEMPTS: usize = 200;

/// How often each status and code came.
fn outcomes(answers: &[Response]) -> BTreeMap<(u16, String), usize> {
    let mut outcomes = BTreeMap::new();
    for answer in answers {
        let code = answer.json()["error"].as_str().unwrap_or_default().to_owned();
        *outcomes.entry((answer.status, code)).or_insert(0) += 1;
    }
    outcomes
}

/// Tries to create a mailbox until the server has room to hash its password.
async fn create(app: &App, pro: &str, address: &str) -> Response {
    loop {
        let answer = app.create_mailbox(Some(pro), address, "pass123").await;
        if answer.status != 503 {
            return answer;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gives_an_address_to_one_of_two_concurrent_requests() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let attempts = (0..ATTEMPTS).map(|i| {
        let tenant = if i % 2 == 0 { &app.tenant } else { &other };
        create(&app, &tenant.pro, "wanted@inbox.localhost")
    });
    let answers = join_all(attempts).await;
    let expected = [((201, String::new()), 1), ((409, "address_taken".to_owned()), ATTEMPTS - 1)];
    assert_eq!(outcomes(&answers), BTreeMap::from(expected));
}
