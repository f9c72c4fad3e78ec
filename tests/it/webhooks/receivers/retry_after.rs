//! `Retry-After` of a receiver.

use tempmail_tests::Receiver;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;

use super::{app, receiver_with};
use crate::webhooks::first_attempts;

/// Delays after the first, second, … failure in seconds; each may be a fifth shorter or longer.
const DELAYS: [f64; 4] = [5.0, 30.0, 120.0, 600.0];
/// How much longer than usual the delay is.
const USUAL: (f64, f64) = (0.8, 1.2);
const TWICE: (f64, f64) = (1.6, 2.4);

/// Answers with each status and `Retry-After`, and compares the delays that follow with those that are expected. At most 16:
/// each gets one event.
async fn assert_delays(cases: &[(u16, &str, (f64, f64))]) {
    let reaction =
        |status: u16, value: &str| Reaction::StatusWithHeader(status, "retry-after", value.to_owned());
    let reactions = cases.iter().map(|(status, value, factor)| (reaction(*status, value), *value, *factor));
    assert_delays_after(reactions.collect()).await;
}

async fn assert_delays_after(cases: Vec<(Reaction, &str, (f64, f64))>) {
    let app = app().await;
    let mut receivers = Vec::new();
    for (reaction, ..) in &cases {
        receivers.push(receiver_with(reaction.clone()).await);
    }
    let urls: Vec<String> = receivers.iter().map(Receiver::url).collect();
    first_attempts(&app, &urls).await;
    for (url, (reaction, value, (least, most))) in urls.iter().zip(cases) {
        let statement = "SELECT e.attempts, extract(epoch FROM e.due_at - w.failed_at)::float8
                         FROM webhook w JOIN webhook_event e ON e.webhook = w.id WHERE w.url = $1 AND e.attempts > 0";
        let (failures, seconds): (i32, f64) = eventually(value, || async {
            sqlx::query_as(statement).bind(url).fetch_optional(&app.pool).await.unwrap()
        })
        .await;
        let delay = DELAYS[usize::try_from(failures).unwrap() - 1];
        assert!(
            (least..=most).contains(&(seconds / delay)),
            "{reaction:?}: {seconds} s after {failures} failures"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delays_the_next_attempt_up_to_twice_the_usual_delay_and_never_shortens_it() {
    assert_delays(&[
        (503, "86400", TWICE),
        (429, "4294967295", TWICE),
        (429, "4294967296", TWICE),
        (503, "99999999999999999999999999999999", TWICE),
        (503, "0", USUAL),
        (429, "-1", USUAL),
        (503, "-99999999999999999999", USUAL),
        (429, "+86400", USUAL),
        (429, "1e9", USUAL),
        (503, "86400.5", USUAL),
        (503, "", USUAL),
        (429, "NaN", USUAL),
        // Other statuses are not honoured.
        (500, "86400", USUAL),
        (404, "86400", USUAL),
        (302, "86400", USUAL),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_dates_in_all_three_forms_of_http() {
    assert_delays(&[
        (503, "Thu, 31 Dec 2099 23:59:59 GMT", TWICE),
        (429, "Friday, 31-Dec-49 23:59:59 GMT", TWICE),
        (503, "Thu Dec 31 23:59:59 2099", TWICE),
        (503, "Sun, 06 Nov 1994 08:49:37 GMT", USUAL),
        (503, "Sun, 06 Nov", USUAL),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn honours_the_field_of_an_answer_whose_body_is_cut() {
    let cut = "HTTP/1.1 503 Busy\r\nRetry-After: 86400\r\nContent-Length: 100\r\n\r\npart";
    assert_delays_after(vec![(Reaction::RawBytesAndEnd(cut.to_owned()), "86400", TWICE)]).await;
}
