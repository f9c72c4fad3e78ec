//! Addresses in URLs.

use super::fixture::Inbox::{Malformed, NotFound, Own, Victim};
use super::fixture::{InboxFixture, answer_of, raw_get};

/// Each row has the target behind `/v1/inbox/`, the address that it means, and the answers to the owner and to another tenant.
#[tokio::test(flavor = "multi_thread")]
async fn decodes_an_address_in_a_url_once_and_does_not_normalise_the_path() {
    let fixture = InboxFixture::start(&["victim@inbox.localhost"]).await;
    for shared in [
        "%76ictim@inbox.localhost",
        "victim%2Btag@inbox.localhost",
        "victim%@inbox.localhost",
        "victim/@inbox.localhost",
    ] {
        assert_eq!(fixture.mail(shared).await, "250 2.1.5");
    }
    assert_eq!(fixture.mail("victim+tag@inbox.localhost").await, "250 2.1.5");
    let tag = "victim+tag@inbox.localhost";
    for (target, means, by_owner, by_stranger) in [
        ("victim%40inbox.localhost", "", Victim, NotFound),
        ("%76%69ctim@inbox%2Elocalhost", "", Victim, NotFound),
        ("%22victim%22@inbox.localhost", "", Victim, NotFound),
        ("victim@inbox.localhost?address=other@inbox.localhost", "", Victim, NotFound),
        ("victim+tag@inbox.localhost", tag, Own, NotFound),
        ("victim%2Btag@inbox.localhost", tag, Own, NotFound),
        ("victim%2btag@inbox.localhost", tag, Own, NotFound),
        ("%2576ictim@inbox.localhost", "%76ictim@inbox.localhost", Own, Own),
        ("victim%252Btag@inbox.localhost", "victim%2Btag@inbox.localhost", Own, Own),
        ("victim%@inbox.localhost", "victim%@inbox.localhost", Own, Own),
        ("victim%2F@inbox.localhost", "victim/@inbox.localhost", Own, Own),
        ("victim%20tag@inbox.localhost", "", Malformed, Malformed),
        ("victim%2540inbox.localhost", "", Malformed, Malformed),
        ("victim%00@inbox.localhost", "", Malformed, Malformed),
        ("victim@inbox.localhost%00", "", Malformed, Malformed),
        ("victim%FF@inbox.localhost", "", Malformed, Malformed),
        ("victim%C3%28@inbox.localhost", "", Malformed, Malformed),
        ("victim%0D%0A@inbox.localhost", "", Malformed, Malformed),
        ("victim@inbox.localhost%2F", "", Malformed, Malformed),
        ("victim@inbox.localhost%3Fx", "", Malformed, Malformed),
        ("victim@inbox.localhost%23", "", Malformed, Malformed),
        ("victim@inbox.localhost;x=1", "", Malformed, Malformed),
        (".", "", Malformed, Malformed),
        ("%2e%2e", "", Malformed, Malformed),
        ("%E2%84%AAim@inbox.localhost", "", NotFound, NotFound),
        ("", "", NotFound, NotFound),
        ("victim@inbox.localhost/", "", NotFound, NotFound),
        ("/victim@inbox.localhost", "", NotFound, NotFound),
        ("./victim@inbox.localhost", "", NotFound, NotFound),
        ("x/../victim@inbox.localhost", "", NotFound, NotFound),
        ("..%2Finbox%2Fvictim@inbox.localhost", "", Malformed, Malformed),
    ] {
        for (live, expected) in [(&fixture.owner.live, by_owner), (&fixture.app.tenant.live, by_stranger)] {
            let (status, body) = raw_get(&fixture.app, &format!("/v1/inbox/{target}"), live).await;
            assert_eq!(answer_of(status, &body, means), expected, "{target}: {body}");
        }
    }
}
