//! What scripts tell the end of a command by.

use tempmail_tests::{App, CommandOutput};

use super::{failure, mail, mail_as};

#[tokio::test(flavor = "multi_thread")]
async fn is_3_where_nothing_came_in_time() {
    let app = App::start().await;
    let made = mail(&app, &["new", "--json"]).await.json();
    let (address, since) = (made["address"].as_str().unwrap(), made["since"].as_str().unwrap());
    for command in ["wait", "code", "link"] {
        let nothing = mail(&app, &[command, address, "--since", since, "--timeout", "0", "--json"]).await;
        let (code, message, printed) = failure(&nothing);
        assert_eq!(code, 3, "{command}");
        assert!(message.starts_with("no such mail came in time; no other mail came either: "), "{message}");
        assert_eq!(printed["message"], "no such mail came in time");
        assert_eq!(
            (&printed["error"], &printed["instead"]),
            (&"nothing_in_time".into(), &serde_json::json!([]))
        );
        assert!(printed["next_since"].as_str().is_some_and(|cursor| !cursor.is_empty()), "{printed}");
    }
    let nothing = mail(&app, &["code", address, "--timeout", "1"]).await;
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(3), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn is_4_where_the_server_refuses() {
    let app = App::start().await;
    let unknown = format!("tm_live_{}", "0".repeat(64));
    let refused = mail_as(&app, &unknown, &["code", "a@inbox.localhost", "--json"]).await;
    let (code, message, printed) = failure(&refused);
    assert_eq!((code, message), (4, "the token is not accepted (401 invalid_token)"));
    assert_eq!(printed, serde_json::json!({"error": "invalid_token", "message": message}));
    for (arguments, expected) in [
        (&["list", "a@elsewhere.example"][..], "not_found"),
        (&["new", "--domain", "elsewhere.example"], "not_found"),
        (&["list", "malformed"], "invalid_request"),
        (&["wait", "a@inbox.localhost", "--since", "forged", "--timeout", "0"], "invalid_request"),
        (&["read", "00000000-0000-4000-8000-000000000000"], "not_found"),
        (&["delete", "00000000-0000-4000-8000-000000000000"], "not_found"),
    ] {
        let refused = mail(&app, arguments).await;
        let (code, message, _) = failure(&refused);
        assert!(code == 4 && message.contains(expected), "{arguments:?}: {message}");
    }
}

/// Runs a command whose server is at a port at which nothing listens.
async fn nowhere(arguments: &[&str]) -> CommandOutput {
    let token = format!("tm_live_{}", "0".repeat(64));
    let environment =
        [("TEMPMAIL_CLIENT_URL", "http://127.0.0.1:1"), ("TEMPMAIL_CLIENT_TOKEN", token.as_str())];
    CommandOutput::run(arguments, &environment).await
}

#[tokio::test]
async fn is_5_where_no_tempmail_is_reached() {
    for arguments in [
        &["mail", "new", "--json"][..],
        &["mail", "code", "a@inbox.localhost", "--json"],
        &["mail", "list", "a@inbox.localhost", "--json"],
    ] {
        let refused = nowhere(arguments).await;
        let (code, message, printed) = failure(&refused);
        assert!(code == 5 && message.starts_with("the server can't be reached"), "{message}");
        assert_eq!(printed["error"], "unreachable");
    }
}

#[tokio::test]
async fn is_2_for_arguments_that_contradict_each_other() {
    for arguments in [
        &["mail", "code"][..],
        &["mail", "code", "a@b.example", "--all"],
        &["mail", "code", "--domain", "b.example", "--all"],
        &["mail", "wait", "a@b.example", "--full"],
        &["mail", "wait", "a@b.example", "--timeout", "86401"],
        &["mail", "wait", "a@b.example", "--has", "money"],
        &["mail", "link", "a@b.example", "--kind", "track"],
        &["mail", "list", "a@b.example", "--limit", "51"],
        &["mail", "read", "not-an-id"],
        &["mail", "delete"],
        &["mail", "delete", "00000000-0000-4000-8000-000000000000", "--inbox", "a@b.example"],
    ] {
        nowhere(arguments).await.usage_error();
    }
    for (arguments, expected) in [
        (&["mail", "code", "--all"][..], "--domain and --all need --since or --after"),
        (&["mail", "link", "a@b.example", "--link-host", "a b"], "--link-host \"a b\" is not a host"),
        (&["mail", "list", ".."], "\"..\" is neither an address nor a domain"),
    ] {
        let refused = nowhere(arguments).await;
        let (code, message, _) = failure(&refused);
        assert!(code == 2 && message.starts_with(expected), "{message}");
    }
}
