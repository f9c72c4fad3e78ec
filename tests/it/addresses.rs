//! One address in every spelling, on every surface that takes one. A spelling either means the
//! victim's address or it does not, everywhere the same; none reaches an inbox of somebody else
//! or a reserved one.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use tempmail_tests::app::Mailbox;
use tempmail_tests::http::percent;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, Response, SmtpClient, Tenant, smtp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What `GET /v1/inbox/…` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inbox {
    /// The mail of the victim.
    Victim,
    /// Mail to this spelling, and none of the victim.
    Own,
    /// 404.
    NotFound,
    /// 400.
    Malformed,
}
use Inbox::{Malformed, NotFound, Own, Victim};

/// A spelling, and the answers to: RCPT, `GET /v1/inbox` by the owner of the victim's mailbox and
/// by a stranger, `POST /api/accounts` by the owner, `POST /api/token` with the victim's password.
type Row<'a> = (&'a str, &'a str, Inbox, Inbox, u16, u16);

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

/// The victims are victim@ and kim@ at b\u{fc}cher.example, and victim@kiosk.example. To a
/// stranger none of it is here.
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

/// Reserved names of a system domain: nobody creates or reads them. Mail to `postmaster` and
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
    // What only looks like them is as good as any other.
    ("administrators@inbox.localhost", "250 2.1.5", Own, Own, 201, 401),
    ("ad.min@inbox.localhost", "250 2.1.5", Own, Own, 201, 401),
    ("x+admin@inbox.localhost", "250 2.1.5", Own, Own, 400, 401),
];

/// A tenant with mailboxes, of which each has a mail called `secret`, and a stranger.
struct Scene {
    app: App,
    owner: Tenant,
    victims: Vec<Mailbox>,
}

impl Scene {
    async fn set(victims: &[&str]) -> Self {
        let app = App::start().await;
        let owner = app.another_tenant("lighthouse").await;
        app.custom_domain(&owner, "xn--bcher-kva.example").await;
        app.custom_domain(&owner, "kiosk.example").await;
        let mut made = Vec::new();
        for address in victims {
            made.push(app.mailbox(Some(&owner.pro), address).await);
            app.deliver(address, "secret", "").await;
        }
        Self { app, owner, victims: made }
    }

    /// Asks every surface about every spelling.
    async fn expect(&self, rows: &[Row<'_>]) {
        for (spelling, rcpt, ..) in rows {
            assert_eq!(&self.mail(spelling).await, rcpt, "RCPT of {spelling:?}");
        }
        for (spelling, _, by_owner, by_stranger, ..) in rows {
            let path = format!("/v1/inbox/{}", percent(spelling));
            for (live, expected) in [(&self.owner.live, by_owner), (&self.app.tenant.live, by_stranger)] {
                let (status, body) = raw_get(&self.app, &format!("{path}?limit=50"), live).await;
                assert_eq!(shown(status, &body, spelling), *expected, "{path}: {body}");
            }
        }
        for (spelling, .., sign_in) in rows {
            let answer = self.sign_in(spelling).await;
            assert_eq!(answer.status, *sign_in, "signing in to {spelling:?}: {}", answer.text());
            if answer.status == 401 {
                answer.assert_api_error(401, "invalid_credentials");
            }
        }
        // At last, since a mailbox changes whose an address is.
        for (spelling, .., create, _) in rows {
            let answer = self.app.create_mailbox(Some(&self.owner.pro), spelling, "pass123").await;
            assert_eq!(answer.status, *create, "creating {spelling:?}: {}", answer.text());
            match create {
                400 => answer.assert_api_error(400, "invalid_address"),
                409 => answer.assert_api_error(409, "address_taken"),
                _ => {}
            }
        }
    }

    /// Sends a mail called as the spelling; the answer to RCPT.
    async fn mail(&self, spelling: &str) -> String {
        let mut client = SmtpClient::connect_with_ehlo(self.app.smtp()).await;
        client.expect_positive("MAIL FROM:<a@client.example> SMTPUTF8").await;
        let rcpt = client.command(&format!("RCPT TO:<{spelling}>")).await;
        if rcpt.is_positive() {
            client.expect_positive("DATA").await;
            let message = smtp::message("a@client.example", &subject(spelling), "");
            client.send(smtp::dot_stuffed(&message)).await;
            assert_eq!(client.reply().await.code, 250, "{spelling}");
        }
        rcpt.status()
    }

    async fn sign_in(&self, spelling: &str) -> Response {
        let body = json!({ "address": spelling, "password": self.victims[0].password });
        self.app.request(Method::POST, "/api/token").json(&body).send().await
    }

    /// The mailboxes got the mail that was meant for them, and no other.
    async fn got_only(&self, rows: &[Row<'_>], meant: impl Fn(&Row<'_>) -> bool) {
        let expected: BTreeSet<String> = rows
            .iter()
            .filter(|row| meant(row))
            .map(|(spelling, ..)| subject(spelling))
            .chain(["secret".to_owned()])
            .collect();
        let mut got = BTreeSet::new();
        for victim in &self.victims {
            let messages = self.app.messages(victim).await;
            got.extend(messages.iter().map(|message| message["subject"].as_str().unwrap().to_owned()));
        }
        assert_eq!(got, expected);
    }
}

/// A subject that tells the spelling, in ASCII.
fn subject(spelling: &str) -> String {
    format!("to {}", spelling.escape_default())
}

/// What an answer to `GET /v1/inbox/…` shows.
fn shown(status: u16, body: &str, spelling: &str) -> Inbox {
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    match status {
        200 => {
            let emails = body["emails"].as_array().unwrap();
            let subjects: Vec<&str> = emails.iter().filter_map(|email| email["subject"].as_str()).collect();
            if subjects.contains(&"secret") {
                return Victim;
            }
            assert!(subjects.contains(&subject(spelling).as_str()), "{subjects:?}");
            Own
        }
        404 if body == json!({ "error": "not_found" }) => NotFound,
        400 if body == json!({ "error": "invalid_request" }) => Malformed,
        _ => panic!("{status} {body}"),
    }
}

/// A request whose target is sent as it is; clients would tidy it up.
async fn raw_get(app: &App, target: &str, live: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(app.http()).await.unwrap();
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nx-api-token: {live}\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within_deadline("an answer", connection.read_to_string(&mut answer)).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn spellings_of_an_address_of_a_system_domain() {
    let scene = Scene::set(&["victim@inbox.localhost", "kim@inbox.localhost"]).await;
    scene.expect(ON_A_SYSTEM_DOMAIN).await;
    // Tags are the mailbox's, too.
    let meant = |row: &Row<'_>| row.1 == "250 2.1.5" && row.3 == NotFound;
    scene.got_only(ON_A_SYSTEM_DOMAIN, meant).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spellings_of_an_address_of_a_custom_domain() {
    let scene =
        Scene::set(&["victim@xn--bcher-kva.example", "kim@xn--bcher-kva.example", "victim@kiosk.example"])
            .await;
    scene.expect(ON_A_CUSTOM_DOMAIN).await;
    let meant = |row: &Row<'_>| row.2 == Victim || row.0.starts_with("victim+");
    scene.got_only(ON_A_CUSTOM_DOMAIN, meant).await;
    // The domain is not there for anybody else.
    for (spelling, ..) in ON_A_CUSTOM_DOMAIN {
        for pro in [None, Some(scene.app.tenant.pro.as_str())] {
            let answer = scene.app.create_mailbox(pro, spelling, "pass123").await;
            answer.assert_api_error(400, "invalid_address");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spellings_of_reserved_names() {
    let scene = Scene::set(&["victim@inbox.localhost"]).await;
    // Which domain is the default one is known after a moment; until then it is deferred.
    tempmail_tests::wait::eventually("postmaster is known", || async {
        (scene.mail("postmaster").await == "250 2.1.5").then_some(())
    })
    .await;
    scene.expect(RESERVED).await;
    scene.got_only(RESERVED, |_| false).await;
    // Without a domain it is an address of SMTP alone.
    let app = &scene.app;
    app.get("/v1/inbox/postmaster").await.assert_v1_error(400, "invalid_request");
    app.create_mailbox(None, "postmaster", "pass123").await.assert_api_error(400, "invalid_address");
    let platform = app.platform_token().await;
    let emails = app.emails_as(&platform, "postmaster@inbox.localhost").await;
    assert_eq!(emails.len(), 3, "without a domain, plain and quoted: {emails:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reserved_name_of_the_configuration_is_closed() {
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

/// The rest of the target behind `/v1/inbox/`, and what the owner and a stranger are shown.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_a_url_is_decoded_once_and_nothing_is_tidied_up() {
    let scene = Scene::set(&["victim@inbox.localhost"]).await;
    for shared in [
        "%76ictim@inbox.localhost",
        "victim%2Btag@inbox.localhost",
        "victim%@inbox.localhost",
        "victim/@inbox.localhost",
    ] {
        assert_eq!(scene.mail(shared).await, "250 2.1.5");
    }
    assert_eq!(scene.mail("victim+tag@inbox.localhost").await, "250 2.1.5");
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
        for (live, expected) in [(&scene.owner.live, by_owner), (&scene.app.tenant.live, by_stranger)] {
            let (status, body) = raw_get(&scene.app, &format!("/v1/inbox/{target}"), live).await;
            assert_eq!(shown(status, &body, means), expected, "{target}: {body}");
        }
    }
}
