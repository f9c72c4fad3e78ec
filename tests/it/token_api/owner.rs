//! Owners of addresses: only the owner reads its mail; to others the inbox does not exist.

use tempmail_tests::http::percent;
use tempmail_tests::{App, send_mail, smtp};

use super::subjects;

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_a_free_mailbox() {
    let app = App::start().await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    app.deliver("free@inbox.localhost", "private", "").await;
    for address in ["free@inbox.localhost", "free+tag@inbox.localhost"] {
        app.get(&format!("/v1/inbox/{}", percent(address))).await.assert_v1_error(404, "not_found");
        app.delete(&format!("/v1/inbox/{}", percent(address))).await.assert_v1_error(404, "not_found");
    }
    let messages = app.messages(&free).await;
    let id = messages[0]["id"].as_str().unwrap();
    app.get(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    app.get(&format!("/v1/email/{id}/raw")).await.assert_v1_error(404, "not_found");
    app.delete(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn lets_the_tenant_read_reserved_names_of_a_custom_domain() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    for name in ["admin", "postmaster", "abuse", "security"] {
        app.deliver(&format!("{name}@ships.example"), name, "").await;
        assert_eq!(app.emails(&format!("{name}@ships.example")).await[0]["subject"], name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_a_lost_domain_and_its_mail() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    app.deliver("a@ships.example", "mine", "").await;
    let id = app.emails("a@ships.example").await[0]["id"].as_str().unwrap().to_owned();
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.example").await;
    app.deliver("box@ships.example", "mine too", "").await;

    app.end_verification(domain).await;
    app.get("/v1/inbox/a@ships.example").await.assert_v1_error(404, "not_found");
    app.get(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    app.get("/v1/inbox/box@ships.example").await.assert_v1_error(404, "not_found");
    app.get_mailbox(&mailbox, "/api/messages").await.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_without_a_mailbox_where_shared_inboxes_are_off() {
    let app = App::start().await;
    app.system_domain("closed.localhost", false).await;
    app.get("/v1/inbox/a@closed.localhost").await.assert_v1_error(404, "not_found");
    app.mailbox(Some(&app.tenant.pro), "box@closed.localhost").await;
    app.deliver("box@closed.localhost", "kept", "").await;
    assert_eq!(app.emails("box@closed.localhost").await[0]["subject"], "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn lets_only_the_platform_read_postmaster_and_abuse() {
    let app = App::start().await;
    for name in ["admin", "Admin+x", "postmaster", "abuse", "abuse+x", "mailer-daemon", "root"] {
        let path = format!("/v1/inbox/{}@inbox.localhost", percent(name));
        app.get(&path).await.assert_v1_error(404, "not_found");
        app.delete(&path).await.assert_v1_error(404, "not_found");
    }
    let platform = app.platform_token().await;
    app.deliver("postmaster@inbox.localhost", "to postmaster", "").await;
    app.deliver("Abuse@inbox.localhost", "to abuse", "").await;
    let emails = app.emails_as(&platform, "postmaster@inbox.localhost").await;
    assert_eq!(emails[0]["subject"], "to postmaster");
    assert_eq!(app.emails_as(&platform, "abuse@inbox.localhost").await[0]["subject"], "to abuse");
    let id = emails[0]["id"].as_str().unwrap();
    app.get(&format!("/v1/email/{id}")).await.assert_v1_error(404, "not_found");
    assert_eq!(app.get_as(&platform, &format!("/v1/email/{id}")).await.status, 200);
    app.get_as(&platform, "/v1/inbox/admin@inbox.localhost").await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_mail_of_a_tag_or_of_the_whole_mailbox() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    app.deliver("box@inbox.localhost", "plain", "").await;
    app.deliver("box+one@inbox.localhost", "one", "").await;
    app.deliver("BOX+Two@inbox.localhost", "two", "").await;
    let all = app.get("/v1/inbox/box@inbox.localhost").await.expect(200);
    assert_eq!(subjects(&all["emails"]), ["two", "one", "plain"]);
    assert_eq!(all["emails"][0]["address"], "box+two@inbox.localhost");
    for (path, expected) in [
        ("/v1/inbox/box+one@inbox.localhost", "one"),
        ("/v1/inbox/box%2Bone@inbox.localhost", "one"),
        ("/v1/inbox/box%2BTWO@inbox.localhost", "two"),
    ] {
        let tag = app.get(path).await.expect(200);
        assert_eq!(subjects(&tag["emails"]), [expected], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_wake_a_wait_on_a_tag_for_another_tag() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let blocked = app.start_long_poll(&app.tenant.live, "/v1/inbox/box%2Bone@inbox.localhost").await;
    app.deliver("box+two@inbox.localhost", "two", "").await;
    app.deliver("box+one@inbox.localhost", "one", "").await;
    assert_eq!(subjects(&blocked.await.unwrap().expect(200)["emails"]), ["one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn treats_each_exact_address_without_a_mailbox_as_an_inbox() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    for domain in ["inbox.localhost", "ships.example"] {
        app.deliver(&format!("name@{domain}"), "plain", "").await;
        app.deliver(&format!("name+tag@{domain}"), "tagged", "").await;
        let plain = app.get(&format!("/v1/inbox/name@{domain}")).await.expect(200);
        assert_eq!(subjects(&plain["emails"]), ["plain"]);
        let tagged = app.get(&format!("/v1/inbox/name%2Btag@{domain}")).await.expect(200);
        assert_eq!(subjects(&tagged["emails"]), ["tagged"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hides_mail_from_before_the_mailbox_from_everyone() {
    let app = App::start().await;
    app.deliver("late@inbox.localhost", "before", "").await;
    let before = app.emails("late@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();
    let mailbox = app.mailbox(Some(&app.tenant.pro), "late@inbox.localhost").await;
    assert!(app.messages(&mailbox).await.is_empty());
    app.assert_inbox_is_empty("late@inbox.localhost").await;
    let id = format!("/api/messages/{before}");
    app.get_mailbox(&mailbox, &id).await.assert_api_error(404, "not_found");
    app.get(&format!("/v1/email/{before}")).await.assert_v1_error(404, "not_found");
    let other = app.another_tenant("lighthouse").await;
    app.get_as(&other.live, &format!("/v1/email/{before}")).await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_non_ascii_local_part_on_a_custom_domain() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let message = smtp::message("a@client.example", "dvě", "");
    let mut client = tempmail_tests::SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example> SMTPUTF8").await;
    client.expect_positive("RCPT TO:<loď@ships.example>").await;
    client.expect_positive("DATA").await;
    client.send(smtp::dot_stuffed(&message)).await;
    assert_eq!(client.reply().await.code, 250);
    let decomposed = percent("lod\u{30c}@ships.example");
    let answer = app.get(&format!("/v1/inbox/{decomposed}")).await.expect(200);
    assert_eq!(answer["emails"][0]["address"], "loď@ships.example");
    let reply = send_mail(app.smtp(), "a@client.example", "plain@ships.example", &message).await;
    assert_eq!(reply.code, 250, "8-bit header fields are accepted unchanged");
}
