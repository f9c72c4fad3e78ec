//! Mails that give orders (`tests/fixtures/orders`): they change nothing, and all of their text is fenced.

use serde_json::json;
use tempmail_tests::corpus::{fixture, order_names};

use super::{Session, TRANSPORTS, app, deliver};

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
async fn are_fenced_and_change_nothing() {
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
