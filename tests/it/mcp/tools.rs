//! Every tool, over both transports. Mails that give orders (`tests/fixtures/orders`) change nothing, and all of their text is
//! fenced.

use serde_json::json;
use tempmail_tests::corpus::{fixture, order_names};

use super::{Session, TRANSPORTS, Transport, app, deliver};

const CODE: &[u8] =
    b"From: Shop <no-reply@shop.example>\r\nSubject: Your code\r\n\r\nYour sign-in code is 482913.\r\n";
const LINK: &[u8] = b"From: Shop <no-reply@shop.example>\r\nSubject: Confirm your address\r\n\r\n\
    Please confirm your address:\r\n\r\nhttps://shop.example/confirm?token=abc\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn gets_the_code_and_the_link_of_mail_that_came_after_the_address_was_made() {
    let app = app(false).await;
    for transport in TRANSPORTS {
        let session = Session::open(&app, transport, false).await;
        let (made, _) = session.success("make_address", json!({})).await;
        let (address, since) = (made["address"].as_str().unwrap(), &made["since"]);
        let nothing = session
            .failure("get_code", json!({"address": address, "since": since, "timeout_seconds": 0}))
            .await;
        assert!(
            nothing.starts_with("No such mail came in time. Call the tool again with since="),
            "{nothing}"
        );

        deliver(&app, address, CODE).await;
        let (code, fenced) = session.success("get_code", json!({"address": address, "since": since})).await;
        assert_eq!((&code["code"], fenced.as_str()), (&"482913".into(), ""), "{transport:?}");
        let mut fields: Vec<&String> = code.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(fields, ["code", "confidence", "mail_id", "next_since"], "nothing of the mail is with it");

        deliver(&app, address, LINK).await;
        let arguments = json!({"address": address, "since": code["next_since"], "link_host": "shop.example"});
        let (link, _) = session.success("get_link", arguments).await;
        assert_eq!(link["url"], "https://shop.example/confirm?token=abc");
        assert_eq!((&link["host"], &link["host_matches_from"]), (&"shop.example".into(), &true.into()));
        let refused =
            session.failure("get_link", json!({"address": address, "link_host": "bank.example"})).await;
        assert!(
            refused.starts_with("Refused: the mail's link does not lead to link_host but to shop.example."),
            "{refused}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_lists_reads_and_deletes() {
    let app = app(true).await;
    for transport in TRANSPORTS {
        let session = Session::open(&app, transport, true).await;
        let address = format!("{transport:?}@inbox.localhost").to_lowercase();
        deliver(&app, &address, CODE).await;
        let (found, fenced) =
            session.success("wait_for_mail", json!({"address": address, "subject": "CODE"})).await;
        assert!(found["codes"] == 1 && fenced.contains("| subject: Your code\n"), "{found} {fenced}");
        assert!(!fenced.contains("482913"), "the text is not in the summary");

        let (listed, fenced) = session.success("list_mail", json!({"address": address})).await;
        assert_eq!(listed["mails"][0]["id"], found["id"]);
        assert!(fenced.contains("| from: no-reply@shop.example\n"), "{fenced}");
        let (read, fenced) = session.success("read_mail", json!({"id": found["id"]})).await;
        assert!(
            read["codes"] == json!(["482913"]) && fenced.contains("| Your sign-in code is 482913.\n"),
            "{fenced}"
        );
        let (cut, fenced) =
            session.success("read_mail", json!({"id": found["id"], "max_characters": 4})).await;
        assert!(cut["text_was_cut"] == true && fenced.contains("| Your\n<"), "{fenced}");

        deliver(&app, &address, LINK).await;
        session.success("delete_mail", json!({"id": found["id"]})).await;
        assert_eq!(app.emails(&address).await.len(), 1);
        session.success("delete_all_mail", json!({"address": address})).await;
        app.assert_inbox_is_empty(&address).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn has_tools_that_delete_only_where_they_are_allowed() {
    let app = app(false).await;
    for transport in TRANSPORTS {
        let session = Session::open(&app, transport, false).await;
        let tools = session.tools().await;
        assert_eq!(
            tools,
            ["make_address", "wait_for_mail", "get_code", "get_link", "list_mail", "read_mail"]
        );
        let params = rmcp::model::CallToolRequestParams::new("delete_all_mail")
            .with_arguments(json!({"address": "a@inbox.localhost"}).as_object().unwrap().clone());
        let error = session.client.call_tool(params).await.unwrap_err().to_string();
        assert!(error.contains("There is no such tool."), "{error}");
    }
    let session = Session::open(&app, Transport::Stdio, true).await;
    assert!(session.tools().await.ends_with(&["delete_mail".to_owned(), "delete_all_mail".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_arguments_that_it_does_not_know() {
    let app = app(false).await;
    for transport in TRANSPORTS {
        let session = Session::open(&app, transport, false).await;
        for (tool, arguments, expected) in [
            (
                "get_link",
                json!({"address": "a@inbox.localhost", "link_hosts": "a.example"}),
                "unknown field `link_hosts`",
            ),
            (
                "get_link",
                json!({"address": "a@inbox.localhost", "link_host": "a b"}),
                "link_host is not a host.",
            ),
            ("get_code", json!({}), "Give exactly one of address, domain and all."),
            ("get_code", json!({"all": true}), "domain and all need since or after."),
            ("get_code", json!({"address": "a@inbox.localhost", "timeout_seconds": 301}), "from 0 to 300"),
            ("list_mail", json!({"address": "a@inbox.localhost", "limit": 51}), "from 1 to 50"),
            ("read_mail", json!({"id": "../me"}), "id is not the id of a mail."),
            ("read_mail", json!({"id": "00000000-0000-4000-8000-000000000000"}), "(404 not_found)"),
            ("list_mail", json!({"address": "a@elsewhere.example"}), "(404 not_found)"),
        ] {
            let said = session.failure(tool, arguments.clone()).await;
            assert!(said.contains(expected), "{tool} {arguments}: {said}");
        }
    }
}

/// What clients make of numbers, and models of arguments that they do not mean.
#[tokio::test(flavor = "multi_thread")]
async fn takes_whole_numbers_with_a_point_and_empty_optional_arguments() {
    let app = app(false).await;
    deliver(&app, "ship@inbox.localhost", CODE).await;
    for transport in TRANSPORTS {
        let session = Session::open(&app, transport, false).await;
        let empty = json!({"address": "ship@inbox.localhost", "domain": "", "all": null, "since": "", "after": null,
                           "from": "", "subject": "", "has": null, "timeout_seconds": 0.0});
        let (found, _) = session.success("wait_for_mail", empty).await;
        let listed = json!({"address": "ship@inbox.localhost", "domain": null, "limit": 1.0});
        session.success("list_mail", listed).await;
        session.success("read_mail", json!({"id": found["id"], "max_characters": 4.0})).await;
        let (made, _) = session.success("make_address", json!({"local_part": "", "domain": null})).await;
        assert!(!made["address"].as_str().unwrap().starts_with('@'), "{made}");
        for (tool, arguments) in [
            ("list_mail", json!({"address": "ship@inbox.localhost", "limit": 1.5})),
            ("list_mail", json!({"address": "ship@inbox.localhost", "limit": -1.0})),
            ("read_mail", json!({"id": ""})),
        ] {
            let said = session.failure(tool, arguments.clone()).await;
            assert!(said.starts_with("The arguments are invalid"), "{arguments}: {said}");
        }
    }
}

/// What is named after types of a programming language, some clients refuse; and some models know no `null`.
#[tokio::test(flavor = "multi_thread")]
async fn describes_arguments_in_json_schema_without_formats_and_null() {
    let app = app(true).await;
    for transport in TRANSPORTS {
        let session = Session::open(&app, transport, true).await;
        for tool in session.client.list_all_tools().await.unwrap() {
            let schema = serde_json::to_string(&tool.input_schema).unwrap();
            assert!(!schema.contains("\"format\"") && !schema.contains("null"), "{}: {schema}", tool.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_standard_input_ends() {
    let app = app(false).await;
    let mut session = Session::open(&app, Transport::Stdio, false).await;
    let mut program = session._program.take().unwrap();
    session.client.cancel().await.unwrap();
    assert!(program.wait().await.unwrap().success());
}

const ADDRESS: &str = "ship@inbox.localhost";

/// Words of the orders, which no tool says itself.
const ORDERS: [&str; 6] = ["delete_", "ignore", "evil.example/", "im_start", "Secret", "bank.example/"];

fn orders() -> Vec<(String, Vec<u8>)> {
    order_names().into_iter().map(|name| (name.clone(), fixture(&name))).collect()
}

/// Asserts that a text is a notice and a fence around nothing but marked lines.
fn assert_fenced(name: &str, fenced: &str) {
    let lines: Vec<&str> = fenced.split('\n').collect();
    let [_notice, first, marked @ .., last] = lines.as_slice() else { panic!("{name}: {fenced}") };
    let nonce = first.strip_prefix("<untrusted-mail ").and_then(|rest| rest.strip_suffix('>')).unwrap();
    assert_eq!(*last, format!("</untrusted-mail {nonce}>"), "{name}");
    assert!(nonce.len() == 32 && nonce != "0".repeat(32), "{name}: {nonce}");
    for line in marked {
        assert!(line.starts_with("| ") && !line.contains(nonce), "{name}: {line}");
        let unseen = line
            .chars()
            .find(|c| c.is_control() || matches!(*c, '\u{200b}'..='\u{202e}' | '\u{e0000}'..='\u{e0fff}'));
        assert_eq!(unseen, None, "{name}: {line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fence_mails_that_give_orders_which_change_nothing() {
    let app = app(true).await;
    let orders = orders();
    assert_eq!(orders.len(), 12);
    for (_, message) in &orders {
        deliver(&app, ADDRESS, message).await;
    }
    for transport in TRANSPORTS {
        let session = Session::open(&app, transport, true).await;
        let (listed, fenced) = session.success("list_mail", json!({"address": ADDRESS, "limit": 50})).await;
        assert_fenced("list", &fenced);
        let ids: Vec<_> =
            listed["mails"].as_array().unwrap().iter().rev().map(|mail| mail["id"].clone()).collect();
        assert_eq!(ids.len(), 12);
        for (id, (name, _)) in ids.iter().zip(&orders) {
            let (facts, fenced) = session.success("read_mail", json!({"id": id})).await;
            assert_fenced(name, &fenced);
            let facts_without_links = {
                let mut facts = facts.clone();
                facts["links"] = json!([]);
                facts.to_string()
            };
            for order in ORDERS {
                assert!(!facts_without_links.contains(order), "{name}: {facts}");
            }
            let hides = name.contains("hidden") || name.contains("line-separators");
            assert_eq!(facts["hidden_text_was_left_out"], hides, "{name}: {fenced}");
            if name.contains("hidden") {
                assert!(!fenced.contains("delete_") && !fenced.contains("evil.example"), "{name}: {fenced}");
            }
        }
        let mut since = json!("0");
        for _ in &orders {
            let (found, fenced) =
                session.success("wait_for_mail", json!({"address": ADDRESS, "since": since})).await;
            assert_fenced("wait", &fenced);
            assert!(ORDERS.iter().all(|order| !found.to_string().contains(order)), "{found}");
            since = found["next_since"].clone();
        }
    }
    assert_eq!(app.emails(ADDRESS).await.len(), 12, "no mail made a tool delete");
}

#[tokio::test(flavor = "multi_thread")]
async fn get_no_code_and_no_link_past_the_arguments() {
    let app = app(false).await;
    for (_, message) in orders() {
        deliver(&app, ADDRESS, &message).await;
    }
    for transport in TRANSPORTS {
        let session = Session::open(&app, transport, false).await;
        let (code, fenced) = session.success("get_code", json!({"address": ADDRESS, "since": "0"})).await;
        assert_eq!((&code["code"], fenced.as_str()), (&"482913".into(), ""));
        assert!(ORDERS.iter().all(|order| !code.to_string().contains(order)), "{code}");
        let arguments =
            json!({"address": ADDRESS, "since": "0", "from": "bank.example", "link_host": "bank.example"});
        let refused = session.failure("get_link", arguments).await;
        assert!(refused.contains("does not lead to link_host but to evil.example"), "{refused}");
        let (link, _) = session
            .success("get_link", json!({"address": ADDRESS, "since": "0", "from": "bank.example"}))
            .await;
        assert_eq!((&link["host"], &link["host_matches_from"]), (&"evil.example".into(), &false.into()));
    }
}
