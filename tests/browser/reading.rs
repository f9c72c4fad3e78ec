//! A message: its views, attachments, images and links, and what its sender hides.

use tempmail_tests::browser::{button, containing, css, tab};
use tempmail_tests::{Browser, Receiver};

use crate::mail::{with_attachment, with_html};
use crate::{
    assert_no_alarm, deliver_as_is, go_to, html_of, newest_id, row, service, sign_in_to, take_address,
    wait_until_live,
};

const FRAME: &str = ".mail-frame";

#[tokio::test(flavor = "multi_thread")]
async fn shows_html_text_headers_and_source() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    deliver_as_is(&app, &address, &with_attachment("<h1>The <b>analytical</b> engine</h1>")).await;
    browser.click(row("The engine")).await;
    browser.wait_for_text_in_frame(css(FRAME), "The analytical engine").await;
    browser.wait_for_text("Ada Lovelace").await;
    browser.click(tab("Text")).await;
    browser.wait_for_text("The plain engine:").await;
    browser.wait_for(containing("a[href='https://client.example/plain'][rel~=noopener]", "plain")).await;
    browser.click(tab("Headers")).await;
    browser.wait_for(containing(".headers td", "multipart/mixed; boundary=m")).await;
    browser.click(tab("Source")).await;
    browser.wait_for(containing("pre.source", "filename=\"report.pdf\"")).await;
    browser.wait_until_gone(row("unread")).await;
    assert_no_alarm(&browser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_attachments_and_the_source_as_they_are() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    deliver_as_is(&app, &mailbox.address, &with_attachment("<p>x</p>")).await;
    sign_in_to(&browser, &app, &mailbox).await;
    browser.click(row("The engine")).await;
    browser.wait_for_text("1 attachment").await;
    browser.click(button("Download report.pdf")).await;
    assert_eq!(browser.downloaded("report.pdf").await, b"%PDF-report");
    let id = newest_id(&app, &mailbox).await;
    browser.click(button("Download this message as an .eml file")).await;
    let source = app.get_mailbox(&mailbox, &format!("/api/messages/{id}/raw")).await;
    assert_eq!(browser.downloaded(&format!("{id}.eml")).await, source.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_remote_images_only_when_asked_and_says_from_where() {
    let canary = Receiver::start().await;
    let app = service().await;
    let browser = Browser::start_with_canary(canary.address()).await;
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    let html = "<p>Look:</p><img src=\"https://pixel.canary.example/opened.png?who=you\">";
    deliver_as_is(&app, &address, &with_html("Pictures", html)).await;
    browser.click(row("Pictures")).await;
    browser.wait_for_text("Images from pixel.canary.example are blocked.").await;
    browser.wait_for_text_in_frame(css(FRAME), "Look:").await;
    assert_eq!(canary.connection_count(), 0);

    browser.click(button("Show images from pixel.canary.example")).await;
    browser.wait_for_text("Images from pixel.canary.example are shown.").await;
    let requests = canary.wait_for_requests(1).await;
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].uri.path_and_query().unwrap(), "/opened.png?who=you");
    for absent in ["cookie", "referer", "origin", "authorization"] {
        assert!(requests[0].headers.get(absent).is_none(), "{absent}: {:?}", requests[0].headers);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn says_where_links_go() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    let html = "<a href=\"https://evil.example/login\">https://bank.example</a> \
                <a href=\"https://\u{440}\u{430}\u{443}\u{440}\u{430}l.example/\">pay</a>";
    deliver_as_is(&app, &address, &with_html("Links", html)).await;
    browser.click(row("Links")).await;
    browser.wait_for_text("2 links: where they go").await;
    browser.wait_for_text("1 is misleading").await;
    browser.wait_for(containing(".links li", "evil.example")).await;
    browser.wait_for(containing(".links .caution", "says another host")).await;
    browser.wait_for(containing(".links .ascii-host", "xn--")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_links_of_a_text_where_their_addresses_end() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    let mail = "From: ada@client.example\r\nSubject: Links\r\nMIME-Version: 1.0\r\n\
                Content-Type: text/plain; charset=utf-8\r\n\r\n\
                https://a.example/?t=1（24h以内） https://b.example/?t=2(expires soon\r\n\
                (https://c.example/d_(e)).\r\n";
    deliver_as_is(&app, &address, mail.as_bytes()).await;
    browser.click(row("Links")).await;
    for href in ["https://a.example/?t=1", "https://b.example/?t=2", "https://c.example/d_(e)"] {
        browser.wait_for(css(&format!(".mail-text a[href='{href}']"))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_hidden_characters_and_shows_none_that_reorders_others() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    // The service takes RLO (U+202E) out of lines; ZWSP (U+200B) has its uses, and is shown by name.
    let mail = "From: =?utf-8?Q?you=40bank.example_=E2=80=8B?= <ada@client.example>\r\n\
                Subject: =?utf-8?Q?In=E2=80=8Bvoice_=E2=80=AEfdp.exe?=\r\nMIME-Version: 1.0\r\n\
                Content-Type: multipart/mixed; boundary=m\r\n\r\n\
                --m\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nPay \u{202e}001 now\r\n\
                --m\r\nContent-Type: application/pdf\r\n\
                Content-Disposition: attachment; filename*=utf-8''in%E2%80%8Bvoice%E2%80%AEfdp.exe\r\n\r\n\
                x\r\n--m--\r\n";
    deliver_as_is(&app, &address, mail.as_bytes()).await;
    browser.click(row("ZWSP")).await;
    browser.wait_for(containing(".reader-subject", "ZWSP")).await;
    browser.wait_for(containing(".reader-subject", "fdp.exe")).await;
    browser.wait_for(containing(".attachment-file", "ZWSP")).await;
    browser.wait_for(containing(".mail-text", "RLO")).await;
    browser.wait_for_text("The subject or the sender has hidden characters.").await;
    browser.wait_for_text("looks like another address than the one that the mail is from").await;
    browser.wait_for_text("The name has hidden characters").await;
    let source = html_of(&browser).await;
    assert!(!source.contains('\u{202e}'));
}

#[tokio::test(flavor = "multi_thread")]
async fn says_that_a_message_is_gone() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    app.deliver(&mailbox.address, "Here for now", "").await;
    sign_in_to(&browser, &app, &mailbox).await;
    browser.wait_for(row("Here for now")).await;
    let id = newest_id(&app, &mailbox).await;
    let path = format!("/api/messages/{id}");
    let deleted = app.request(reqwest::Method::DELETE, &path).bearer(&mailbox.jwt).send().await;
    assert_eq!(deleted.status, 204);
    go_to(&browser, &format!("#/message/{id}")).await;
    browser.wait_for_text("This does not exist any more.").await;
    browser.wait_until_gone(row("Here for now")).await;
}
