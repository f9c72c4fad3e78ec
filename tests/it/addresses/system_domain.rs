//! Addresses of a system domain.

use super::fixture::Inbox::{Malformed, NotFound, Own, Victim};
use super::fixture::{InboxFixture, Row};

/// The victims are victim@inbox.localhost and kim@inbox.localhost.
const ON_A_SYSTEM_DOMAIN: &[Row<'_>] = &[
    // The address itself.
    ("victim@inbox.localhost", "250 2.1.5", Victim, NotFound, 409, 200),
    ("VICTIM@Inbox.Localhost", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@inbox.localhost.", "250 2.1.5", Victim, NotFound, 409, 200),
    ("\"victim\"@inbox.localhost", "250 2.1.5", Victim, NotFound, 409, 200),
    ("\"VIC\\tim\"@inbox.localhost", "250 2.1.5", Victim, NotFound, 409, 200),
    ("@relay.example:victim@inbox.localhost", "250 2.1.5", Victim, NotFound, 409, 200),
    ("@a.example,@b.example:victim@inbox.localhost", "250 2.1.5", Victim, NotFound, 409, 200),
    // Domains are compared as A-labels.
    ("victim@\u{ff49}nbox.localhost", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@inbox\u{3002}localhost", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@inbox.local\u{ad}host", "250 2.1.5", Victim, NotFound, 409, 200),
    ("victim@INBO\u{ff38}.LOCALHOST", "250 2.1.5", Victim, NotFound, 409, 200),
    // Tags: the mailbox's mail, and each shows its own alone.
    ("victim+tag@inbox.localhost", "250 2.1.5", Own, NotFound, 400, 401),
    ("\"victim+tag\"@inbox.localhost", "250 2.1.5", Own, NotFound, 400, 401),
    ("VICTIM+Two@inbox.localhost", "250 2.1.5", Own, NotFound, 400, 401),
    ("victim+a+b@inbox.localhost", "250 2.1.5", Own, NotFound, 400, 401),
    ("victim+@inbox.localhost", "250 2.1.5", Own, NotFound, 400, 401),
    // Other addresses, which are shared inboxes.
    ("+victim@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
    ("victim-@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
    ("vic-tim@inbox.localhost", "250 2.1.5", Own, Own, 201, 401),
    ("v.i_c-t.1.m@inbox.localhost", "250 2.1.5", Own, Own, 201, 401),
    ("victim%elsewhere.example@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
    ("elsewhere.example!victim@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
    ("%76ictim@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
    ("victim/x@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
    ("'victim'@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
    ("victim=40inbox.localhost@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
    (
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx@inbox.localhost",
        "250 2.1.5",
        Own,
        Own,
        201,
        401,
    ),
    // Outside ASCII, which no local part of a system domain is.
    ("\u{212a}im@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("\"\u{212a}im\"@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("\u{ff56}ictim@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("vict\u{131}m@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("v\u{456}ctim@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("victi\u{301}m@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("vic\u{200b}tim@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("\u{202e}mitciv@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("victim+t\u{e4}g@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    // Quotes that are needed.
    ("\"vic tim\"@inbox.localhost", "553 5.1.3", NotFound, NotFound, 400, 401),
    ("\"victim@inbox.localhost\"@inbox.localhost", "553 5.1.3", NotFound, NotFound, 400, 401),
    ("\"victim\\\"\"@inbox.localhost", "553 5.1.3", NotFound, NotFound, 400, 401),
    ("\"\"@inbox.localhost", "553 5.1.3", NotFound, NotFound, 400, 401),
    ("\".victim\"@inbox.localhost", "553 5.1.3", NotFound, NotFound, 400, 401),
    // No addresses.
    ("victim", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("@", "553 5.1.3", Malformed, Malformed, 400, 401),
    (".", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("..", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("@:victim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("@relay.example victim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@inbox.localhost@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    (" victim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@inbox.localhost ", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("vic tim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim\u{a0}@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    (".victim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim.@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("vic..tim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@.inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@inbox..localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@inbox.localhost..", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@-inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@in_box.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim@xn--inb\u{f6}x.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim,other@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("victim(x)@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("mailto:victim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("vic\\tim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("\"victim@inbox.localhost", "501 5.5.4", Malformed, Malformed, 400, 401),
    ("\"vic\"tim@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("<victim@inbox.localhost>", "501 5.5.4", Malformed, Malformed, 400, 401),
    ("victim\0@inbox.localhost", "500 5.5.2", Malformed, Malformed, 400, 401),
    ("victim@inbox.localhost\0", "500 5.5.2", Malformed, Malformed, 400, 401),
    ("victim\t@inbox.localhost", "500 5.5.2", Malformed, Malformed, 400, 401),
    ("victim\u{85}@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    (
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx@inbox.localhost",
        "553 5.1.3",
        Malformed,
        Malformed,
        400,
        401,
    ),
    (
        "victim@xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.localhost",
        "553 5.1.3",
        Malformed,
        Malformed,
        400,
        401,
    ),
    // Domains that are not here.
    (
        "victim@xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.localhost",
        "550 5.7.1",
        NotFound,
        NotFound,
        400,
        401,
    ),
    ("victim@elsewhere.example", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@localhost", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@sub.inbox.localhost", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@inbox.localhost.elsewhere.example", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@inb\u{43e}x.localhost", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@127.0.0.1", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@[127.0.0.1]", "550 5.7.1", NotFound, NotFound, 400, 401),
    ("victim@[IPv6:::1]", "550 5.7.1", NotFound, NotFound, 400, 401),
];

#[tokio::test(flavor = "multi_thread")]
async fn decides_every_spelling_of_an_address_the_same_on_every_surface() {
    let fixture = InboxFixture::start(&["victim@inbox.localhost", "kim@inbox.localhost"]).await;
    fixture.check(ON_A_SYSTEM_DOMAIN).await;
    // Tags belong to the mailbox.
    let is_victims = |row: &Row<'_>| row.1 == "250 2.1.5" && row.3 == NotFound;
    fixture.assert_received_only(ON_A_SYSTEM_DOMAIN, is_victims).await;
}
