//! One address in every spelling, on every surface that takes one. A spelling either means the victim's address or it does
//! not, the same everywhere; none reaches the inbox of another owner or a reserved one.

mod fixture;

use reqwest::Method;
use tempmail_tests::http::percent;
use tempmail_tests::{App, SmtpClient};

use self::fixture::Inbox::{Malformed, NotFound, Own, Victim};
use self::fixture::{InboxFixture, Row, answer_of, raw_get};

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
async fn decides_every_spelling_of_an_address_of_a_system_domain_the_same_on_every_surface() {
    let fixture = InboxFixture::start(&["victim@inbox.localhost", "kim@inbox.localhost"]).await;
    fixture.check(ON_A_SYSTEM_DOMAIN).await;
    // Tags belong to the mailbox.
    let is_victims = |row: &Row<'_>| row.1 == "250 2.1.5" && row.3 == NotFound;
    fixture.assert_received_only(ON_A_SYSTEM_DOMAIN, is_victims).await;
}

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
async fn decides_every_spelling_of_an_address_of_a_custom_domain_the_same_on_every_surface() {
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

/// Reserved names of a system domain, which can't be created or read. Mail to `postmaster` and
/// `abuse` is the platform's.
const RESERVED: &[Row<'_>] = &[
    ("admin@inbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("ADMIN@inbox.localhost.", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("\"admin\"@inbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("\"ad\\min\"@inbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("@relay.example:admin@inbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("admin@\u{ff49}nbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("admin+x@inbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("Admin+x+y@inbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("admin+@inbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("mailer-daemon@inbox.localhost", "550 5.1.1", NotFound, NotFound, 400, 401),
    ("mar\u{212a}eting@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("\u{430}dmin@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("\u{ff41}dmin@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("adm\u{131}n@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("\"vic tim\"+admin@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("admin..x@inbox.localhost", "553 5.1.3", Malformed, Malformed, 400, 401),
    ("postmaster@inbox.localhost", "250 2.1.5", NotFound, NotFound, 400, 401),
    ("PostMaster+x@inbox.localhost", "250 2.1.5", NotFound, NotFound, 400, 401),
    ("\"postmaster\"@inbox.localhost.", "250 2.1.5", NotFound, NotFound, 400, 401),
    ("abuse@inbox.localhost", "250 2.1.5", NotFound, NotFound, 400, 401),
    ("p\u{43e}stmaster@inbox.localhost", "553 5.6.7", NotFound, NotFound, 400, 401),
    ("postmaster@elsewhere.example", "550 5.7.1", NotFound, NotFound, 400, 401),
    // Names that only look similar are not reserved.
    ("administrators@inbox.localhost", "250 2.1.5", Own, Own, 201, 401),
    ("ad.min@inbox.localhost", "250 2.1.5", Own, Own, 201, 401),
    ("x+admin@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
];

#[tokio::test(flavor = "multi_thread")]
async fn refuses_every_spelling_of_a_reserved_name() {
    let fixture = InboxFixture::start(&["victim@inbox.localhost"]).await;
    // Deferred until the default domain is known.
    tempmail_tests::wait::eventually("postmaster is known", || async {
        (fixture.mail("postmaster").await == "250 2.1.5").then_some(())
    })
    .await;
    fixture.check(RESERVED).await;
    fixture.assert_received_only(RESERVED, |_| false).await;
    // Without a domain it is an address in SMTP only.
    let app = &fixture.app;
    app.get("/v1/inbox/postmaster").await.assert_v1_error(400, "invalid_request");
    app.create_mailbox(None, "postmaster", "pass123").await.assert_api_error(400, "invalid_address");
    let platform = app.platform_token().await;
    let emails = app.emails_as(&platform, "postmaster@inbox.localhost").await;
    assert_eq!(emails.len(), 3, "without a domain, plain and quoted: {emails:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_every_reserved_name_of_the_configuration() {
    let app = App::start().await;
    let config = app.request(Method::GET, "/v1/config").send().await.expect(200);
    for name in config["local_part_rules"]["reserved"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        for address in
            [format!("{name}@inbox.localhost"), format!("{}+x@inbox.localhost", name.to_uppercase())]
        {
            app.get(&format!("/v1/inbox/{}", percent(&address))).await.assert_v1_error(404, "not_found");
            let created = app.create_mailbox(Some(&app.tenant.pro), &address, "pass123").await;
            created.assert_api_error(400, "invalid_address");
            let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
            client.expect_positive("MAIL FROM:<a@client.example>").await;
            let kept = matches!(name, "postmaster" | "abuse");
            let expected = if kept { "250 2.1.5" } else { "550 5.1.1" };
            assert_eq!(client.command(&format!("RCPT TO:<{address}>")).await.status(), expected, "{address}");
        }
    }
}

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
