//! Addresses of a custom domain.

use super::fixture::Inbox::{Malformed, NotFound, Own, Victim};
use super::fixture::{InboxFixture, Row};

/// The victims are victim@ and kim@ at b\u{fc}cher.example, and victim@kiosk.example. Another
/// tenant gets the answers for domains that are not served.
const ON_A_CUSTOM_DOMAIN: &[Row<'_>] = &[
    ("victim@b\u{fc}cher.example", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@xn--bcher-kva.example", "250 2.1.5", Victim, NotFound, 409, 200),
    ("Victim@XN--BCHER-KVA.Example.", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@B\u{dc}CHER.example", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@bu\u{308}cher.example", "250 2.1.5", Victim, NotFound, 409, 200),
    ("\"victim\"@b\u{fc}cher.example", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@\u{212a}iosk.example", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@ki\u{ff4f}sk.example", "250 2.1.5", Victim, NotFound, 409, 200),
    // The normal form of the Kelvin sign is a plain K. All of the domain is its owner's.
    ("\u{212a}im@b\u{fc}cher.example", "250 2.1.5", Victim, NotFound, 400, 401),
    ("victim+t\u{e4}g@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 400, 401),
    ("v\u{ed}ctim@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 400, 401),
    ("vi\u{301}ctim@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 400, 401),
    ("V\u{cd}CTIM@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 400, 401),
    ("\u{ff56}ictim@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 400, 401),
    ("vict\u{131}m@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 400, 401),
    ("v\u{456}ctim@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 400, 401),
    (
        "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}@b\u{fc}cher.example",
        "250 2.1.5",
        Own,
        NotFound,
        400,
        401,
    ),
    (
        "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}@b\u{fc}cher.example",
        "553 5.1.3",
        Malformed,
        Malformed,
        400,
        401,
    ),
    // Nothing is reserved here.
    ("admin@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 201, 401),
    ("Postmaster@b\u{fc}cher.example", "250 2.1.5", Own, NotFound, 201, 401),
    ("\"vic tim\"@b\u{fc}cher.example", "553 5.1.3", NotFound, NotFound, 400, 401),
    ("vic..tim@b\u{fc}cher.example", "553 5.1.3", Malformed, Malformed, 400, 401),
    // Others' domains.
    ("victim@bucher.example", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@b\u{fc}ch\u{435}r.example", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@sub.b\u{fc}cher.example", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@xn--bcher-kva.example.inbox.localhost", "550 5.7.1", NotFound, NotFound, 400, 401),
];

#[tokio::test(flavor = "multi_thread")]
async fn decides_every_spelling_of_an_address_the_same_on_every_surface() {
    let fixture = InboxFixture::start(&[
        "victim@xn--bcher-kva.example",
        "kim@xn--bcher-kva.example",
        "victim@kiosk.example",
    ])
    .await;
    fixture.check(ON_A_CUSTOM_DOMAIN).await;
    let is_victims = |row: &Row<'_>| row.2 == Victim || row.0.starts_with("victim+");
    fixture.assert_received_only(ON_A_CUSTOM_DOMAIN, is_victims).await;
    // Only the tenant of the domain can use it.
    for (spelling, ..) in ON_A_CUSTOM_DOMAIN {
        for pro in [None, Some(fixture.app.tenant.pro.as_str())] {
            let answer = fixture.app.create_mailbox(pro, spelling, "pass123").await;
            answer.assert_api_error(400, "invalid_address");
        }
    }
}
