//! Two tenants and a shared inbox: what each token, and each that it minted, may do with the mail of each address.

use reqwest::Method;
use tempmail_model::id::{id_time, new_id};
use tempmail_tests::http::percent;
use tempmail_tests::{App, EventStream, Response};

/// The addresses: a mailbox of A and one of its tags, an address under a custom domain of A, a mailbox of B, and the shared
/// inbox.
const ADDRESSES: [&str; 5] =
    ["quay@inbox.localhost", "quay+tag@inbox.localhost", "any@quay.example", "lamp@inbox.localhost", SHARED];
const SHARED: &str = "shared@inbox.localhost";

/// A token, and the addresses whose inboxes it may use and whose messages it may read.
struct Reader {
    name: String,
    token: String,
    inboxes: Vec<&'static str>,
    messages: Vec<&'static str>,
}

/// The live tokens of both tenants, and one that each minted for each address that it may read.
async fn readers(app: &App, b: &str) -> Vec<Reader> {
    let of_a = vec![ADDRESSES[0], ADDRESSES[1], ADDRESSES[2], SHARED];
    let of_b = vec![ADDRESSES[3], SHARED];
    let mut readers = Vec::new();
    for (tenant, token, readable) in [("A", app.tenant.live.as_str(), of_a), ("B", b, of_b)] {
        for address in &readable {
            // An inbox with a mailbox shows all of its tags.
            let messages =
                if *address == ADDRESSES[0] { vec![ADDRESSES[0], ADDRESSES[1]] } else { vec![*address] };
            readers.push(Reader {
                name: format!("a token of {tenant} for {address}"),
                token: app.mint(token, address).await.token,
                inboxes: vec![*address],
                messages,
            });
        }
        readers.push(Reader {
            name: format!("a live token of {tenant}"),
            token: token.to_owned(),
            inboxes: readable.clone(),
            messages: readable,
        });
    }
    readers
}

/// The answer to a request for a stream; `None` where it is opened.
async fn stream_refusal(app: &App, token: &str, address: &str) -> Option<Response> {
    let path = format!("/v1/sse/addr?address={}", percent(address));
    EventStream::try_open(app.request(Method::GET, &path).live(token)).await.expect("an answer").err()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_token_reads_its_own_addresses_and_sees_no_other() {
    let app = App::start().await;
    let b = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&app.tenant.pro), ADDRESSES[0]).await;
    app.custom_domain(&app.tenant, "quay.example").await;
    app.mailbox(Some(&b.pro), ADDRESSES[3]).await;
    for address in ADDRESSES {
        app.deliver(address, &format!("to {address}"), "").await;
    }
    let ids: Vec<(String, String)> =
        sqlx::query_as("SELECT address, id::text FROM message").fetch_all(&app.pool).await.unwrap();

    for Reader { name, token, inboxes, messages } in &readers(&app, &b.live).await {
        let get = async |path: &str| app.get_as(token, path).await;
        let unserved = get("/v1/inbox/any@elsewhere.example").await;
        for address in ADDRESSES {
            let name = format!("{name} at {address}");
            let waited = get(&format!("/v1/inbox/{}", percent(address))).await;
            let streamed = stream_refusal(&app, token, address).await;
            if inboxes.contains(&address) {
                assert_eq!(waited.status, 200, "{name}: {}", waited.text());
                assert!(streamed.is_none(), "{name}: {streamed:?}");
                continue;
            }
            waited.assert_v1_error(404, "not_found");
            assert_eq!(waited.appearance(), unserved.appearance(), "{name}");
            streamed.expect(&name).assert_v1_error(404, "not_found");
            let cleared = app.request(Method::DELETE, &format!("/v1/inbox/{}", percent(address)));
            cleared.live(token).send().await.assert_v1_error(404, "not_found");
        }
        for (address, id) in &ids {
            let name = format!("{name} with a message to {address}");
            let unknown = new_id(id_time(id.parse().unwrap()).unwrap());
            for rest in ["", "/raw", "/attachments/0"] {
                let read = get(&format!("/v1/email/{id}{rest}")).await;
                let is_there = messages.contains(&address.as_str());
                if is_there && rest != "/attachments/0" {
                    assert_eq!(read.status, 200, "{name}: {}", read.text());
                    continue;
                }
                read.assert_v1_error(404, "not_found");
                let unknown = get(&format!("/v1/email/{unknown}{rest}")).await;
                assert_eq!(read.appearance(), unknown.appearance(), "{name}");
            }
            if !messages.contains(&address.as_str()) {
                let deleted =
                    app.request(Method::DELETE, &format!("/v1/email/{id}")).live(token).send().await;
                deleted.assert_v1_error(404, "not_found");
            }
        }
    }
    assert_eq!(app.count("SELECT count(*) FROM message").await, 5, "nothing was deleted");
}
