//! `Retry-After` of a receiver.

use tempmail_tests::Receiver;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::wait::eventually;

use super::{app, receiver_with};
use crate::webhooks::first_attempts;

/// Delays after the first, second, … failure in seconds; each may be a fifth shorter or longer.
const DELAYS: [f64; 4] = [5.0, 30.0, 120.0, 600.0];

#[tokio::test(flavor = "multi_thread")]
async fn delays_the_next_attempt_up_to_twice_the_usual_delay_and_never_shortens_it() {
    let app = app().await;
    let (usual, twice) = (0.8..=1.2, 1.6..=2.4);
    let mut receivers = Vec::new();
    let mut expected = Vec::new();
    for (status, value, factor) in [
        (503, "86400", &twice),
        (429, "4294967295", &twice),
        (429, "4294967296", &twice),
        (503, "99999999999999999999999999999999", &twice),
        (503, "0", &usual),
        (429, "-1", &usual),
        (503, "-99999999999999999999", &usual),
        (429, "+86400", &usual),
        (429, "1e9", &usual),
        (503, "86400.5", &usual),
        (503, "", &usual),
        (429, "NaN", &usual),
        // Dates in all three forms of HTTP.
        (503, "Thu, 31 Dec 2099 23:59:59 GMT", &twice),
        (429, "Thursday, 31-Dec-49 23:59:59 GMT", &twice),
        (503, "Thu Dec 31 23:59:59 2099", &twice),
        (503, "Sun, 06 Nov 1994 08:49:37 GMT", &usual),
        (503, "Sun, 06 Nov", &usual),
        // Other statuses are not honoured.
        (500, "86400", &usual),
        (404, "86400", &usual),
        (302, "86400", &usual),
    ] {
        receivers
            .push(receiver_with(Reaction::StatusWithHeader(status, "retry-after", value.to_owned())).await);
        expected.push((status, value, factor));
    }
    let cut = "HTTP/1.1 503 Busy\r\nRetry-After: 86400\r\nContent-Length: 100\r\n\r\npart";
    receivers.push(receiver_with(Reaction::RawBytesAndEnd(cut.to_owned())).await);
    expected.push((503, "86400, and a body that is cut", &twice));
    let urls: Vec<String> = receivers.iter().map(Receiver::url).collect();
    first_attempts(&app, &urls).await;
    for (url, (status, value, factor)) in urls.iter().zip(expected) {
        let statement = "SELECT e.attempts, extract(epoch FROM e.due_at - w.failed_at)::float8
                         FROM webhook w JOIN webhook_event e ON e.webhook = w.id WHERE w.url = $1 AND e.attempts > 0";
        let (failures, seconds): (i32, f64) = eventually(value, || async {
            sqlx::query_as(statement).bind(url).fetch_optional(&app.pool).await.unwrap()
        })
        .await;
        let delay = DELAYS[usize::try_from(failures).unwrap() - 1];
        assert!(
            factor.contains(&(seconds / delay)),
            "{status} {value:?}: {seconds} s after {failures} failures"
        );
    }
}
