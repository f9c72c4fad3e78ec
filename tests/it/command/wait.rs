//! `tempmail mail new`, `wait`, `code` and `link`

use futures_util::future::join_all;
use tempmail_tests::{App, CommandOutput, send_mail};

use super::{failure, mail};

const CODE: &str = "Your sign-in code is 482913. It expires in 10 minutes.\r\n";
const LINK: &str = "Please confirm your address:\r\n\r\nhttps://shop.example/confirm?token=abc\r\n";

async fn deliver(app: &App, address: &str, subject: &str, text: &str) {
    let message = format!("From: Shop <no-reply@shop.example>\r\nSubject: {subject}\r\n\r\n{text}");
    let reply = send_mail(app.smtp(), "no-reply@shop.example", address, message.as_bytes()).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}

/// What `new` printed.
fn address_and_cursor(made: &CommandOutput) -> (String, String) {
    let (address, since) = made.success().split_once(' ').expect("address and cursor");
    (address.to_owned(), since.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_the_code_of_the_mail_that_came_after_new() {
    let app = App::start().await;
    deliver(&app, "ship@inbox.localhost", "Your code", "Your sign-in code is 111111.\r\n").await;
    let made = mail(&app, &["new", "--local-part", "ship"]).await;
    let (address, since) = address_and_cursor(&made);
    assert_eq!(address, "ship@inbox.localhost");
    let old = mail(&app, &["code", &address, "--since", &since, "--timeout", "0"]).await;
    assert_eq!(failure(&old).0, 3, "what was there before is no answer");
    deliver(&app, &address, "Your code", CODE).await;
    let code = mail(&app, &["code", &address, "--since", &since]).await;
    assert_eq!((code.code, code.stdout.as_str(), code.stderr.as_str()), (Some(0), "482913\n", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn makes_random_addresses_on_a_chosen_domain() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let (one, _) = address_and_cursor(&mail(&app, &["new"]).await);
    let (two, _) = address_and_cursor(&mail(&app, &["new"]).await);
    assert!(
        one != two && one.ends_with("@inbox.localhost") && two.ends_with("@inbox.localhost"),
        "{one} {two}"
    );
    let (own, _) = address_and_cursor(&mail(&app, &["new", "--domain", "ships.example"]).await);
    assert!(own.ends_with("@ships.example") && own.len() == 20 + "@ships.example".len(), "{own}");
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_the_link_of_a_kind_and_refuses_other_hosts() {
    let app = App::start().await;
    let (address, since) = address_and_cursor(&mail(&app, &["new"]).await);
    deliver(&app, &address, "Confirm your address", LINK).await;
    let url = "https://shop.example/confirm?token=abc\n";
    for arguments in [
        &[][..],
        &["--kind", "confirm"],
        &["--link-host", "SHOP.example"],
        &["--link-host", "other.example", "--link-host", "shop.example"],
    ] {
        let all: Vec<&str> =
            ["link", &address, "--since", &since].into_iter().chain(arguments.iter().copied()).collect();
        assert_eq!(mail(&app, &all).await.success(), url.trim_end(), "{arguments:?}");
    }
    let other = mail(&app, &["link", &address, "--kind", "unlock", "--timeout", "0"]).await;
    assert_eq!(failure(&other).0, 3);
    let refused = mail(&app, &["link", &address, "--link-host", "bank.example", "--json"]).await;
    let (code, message, printed) = failure(&refused);
    assert_eq!((code, message), (4, "the mail's link leads to another host: shop.example"));
    assert_eq!((&printed["error"], &printed["hosts"][0]), (&"other_host".into(), &"shop.example".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn tells_what_came_instead_and_why_it_was_not_taken() {
    let app = App::start().await;
    let (address, since) = address_and_cursor(&mail(&app, &["new"]).await);
    deliver(&app, &address, "Welcome", "Have a look around.\r\n").await;
    deliver(&app, &address, "Confirm your address", LINK).await;
    let wait = async |command: &[&str]| {
        let all: Vec<&str> =
            command.iter().chain(&[&*address, "--since", &since, "--timeout", "0"]).copied().collect();
        mail(&app, &all).await
    };
    let output = wait(&["code"]).await;
    let (code, message, _) = failure(&output);
    let lines: Vec<&str> = message.lines().collect();
    let [first, welcome, confirm] = lines.as_slice() else { panic!("{message}") };
    assert_eq!((code, *first), (3, "no such mail came in time; this came instead:"));
    for (line, subject) in [(welcome, "Welcome"), (confirm, "Confirm your address")] {
        let end = format!(" \"{subject}\" from no-reply@shop.example to {address}: no code was found in it");
        assert!(line.ends_with(&end), "{message}");
    }

    for (command, reasons) in [
        (&["code"][..], ["no code was found in it"; 2]),
        (&["link", "--kind", "unlock"], ["no link to act on was found in it", "its link is of another kind"]),
        (
            &["link", "--subject", "Welcome"],
            ["no link to act on was found in it", "it is not what was asked for"],
        ),
        (&["wait", "--subject", "code"], ["it is not what was asked for"; 2]),
    ] {
        let all: Vec<&str> = command.iter().chain(&["--json"]).copied().collect();
        let output = wait(&all).await;
        let (_, _, printed) = failure(&output);
        for (mail, (subject, reason)) in printed["instead"]
            .as_array()
            .unwrap()
            .iter()
            .zip(["Welcome", "Confirm your address"].into_iter().zip(reasons))
        {
            assert_eq!((&mail["subject"], &mail["reason"]), (&subject.into(), &reason.into()), "{command:?}");
        }
        assert_eq!(printed["instead"].as_array().unwrap().len(), 2, "{printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_what_json_has_for_programs() {
    let app = App::start().await;
    let (address, since) = address_and_cursor(&mail(&app, &["new"]).await);
    deliver(&app, &address, "Your code", CODE).await;
    let code = mail(&app, &["code", &address, "--json"]).await.json();
    assert_eq!((&code["code"], &code["email"]["address"]), (&"482913".into(), &address.as_str().into()));
    let found = mail(&app, &["wait", &address, "--since", &since, "--json", "--full", "--subject", "CODE"])
        .await
        .json();
    assert_eq!(found["codes"][0]["code"], "482913");
    assert!(found["email"]["text_body"].as_str().unwrap().contains("482913"), "{found}");
    let next = found["next_since"].as_str().unwrap();
    let none = mail(&app, &["wait", &address, "--since", next, "--timeout", "0"]).await;
    assert_eq!(failure(&none).0, 3, "the cursor is behind the mail");
    let text = mail(&app, &["wait", &address]).await;
    let lines: Vec<&str> = text.success().lines().collect();
    assert!(
        lines.contains(&"from      no-reply@shop.example") && lines.contains(&"code      482913"),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn several_waits_share_one_token() {
    let app = App::start().await;
    let made = join_all((0..4).map(|_| mail(&app, &["new"]))).await;
    let addresses: Vec<_> = made.iter().map(address_and_cursor).collect();
    let deliver_all = async {
        for (address, _) in &addresses {
            // After the waits began, so that they are open at the same time.
            tempmail_tests::wait::eventually("all wait", || async {
                let waiting = app.count("SELECT count(*) FROM minted_token").await;
                (waiting >= 3).then_some(())
            })
            .await;
            let number = addresses.iter().position(|(other, _)| other == address).unwrap();
            deliver(&app, address, "Your code", &format!("Your sign-in code is 48291{number}.\r\n")).await;
        }
    };
    let waits = join_all(addresses.iter().map(|(address, since)| {
        let arguments = ["code", address.as_str(), "--since", since.as_str()].map(str::to_owned);
        let app = &app;
        async move { mail(app, &arguments.each_ref().map(String::as_str)).await }
    }));
    let (codes, ()) = tokio::join!(waits, deliver_all);
    for (number, code) in codes.iter().enumerate() {
        assert_eq!(code.success(), format!("48291{number}"));
    }
}
