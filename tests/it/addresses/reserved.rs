//! Reserved addresses of a system domain.

use reqwest::Method;
use tempmail_tests::http::percent;
use tempmail_tests::{App, SmtpClient};

use super::fixture::Inbox::{Malformed, NotFound, Own};
use super::fixture::{InboxFixture, Row};

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
