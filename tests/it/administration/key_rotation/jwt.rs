//! `jwt.keys`: mailbox JWTs and Pro sessions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::app::{Mailbox, random_key};
use tempmail_tests::{Feed, Fleet, KeyFile, Response};

use super::roll;

const BOX: &str = "name@inbox.localhost";

/// A JWT, and where it is a credential.
struct IssuedJwt {
    jwt: String,
    path: &'static str,
}

impl IssuedJwt {
    fn new(path: &'static str, signed_in: &Value) -> Self {
        Self { jwt: signed_in["token"].as_str().expect("a JWT").to_owned(), path }
    }

    /// Name of the key that signed it.
    fn kid(&self) -> String {
        let header = self.jwt.split('.').next().expect("a JWT has a header");
        let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
        header["kid"].as_str().expect("a JWT names its key").to_owned()
    }

    async fn present(&self, fleet: &Fleet, api: usize) -> Response {
        fleet.request(api, Method::GET, self.path).bearer(&self.jwt).send().await
    }
}

/// Signs in to the mailbox, and exchanges the Pro token, at an `api` process.
async fn sign_in(fleet: &Fleet, api: usize, mailbox: &Mailbox) -> [IssuedJwt; 2] {
    let password = json!({ "address": mailbox.address, "password": mailbox.password });
    let token = json!({ "token": fleet.tenant.pro });
    let post = async |path: &str, body: &Value| {
        fleet.request(api, Method::POST, path).json(body).send().await.expect(200)
    };
    [
        IssuedJwt::new("/api/me", &post("/api/token", &password).await),
        IssuedJwt::new("/pro/api/accounts", &post("/pro/api/session", &token).await),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_process_accepts_every_jwt_until_its_key_is_removed() {
    let (old, new) = (random_key("old"), random_key("new"));
    let keys = KeyFile::new(&[&old]);
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).jwt_keys(&keys).start().await;
    let mailbox = fleet.mailbox(None, BOX).await;
    let mut socket = fleet.follow(0, &mailbox.jwt, Feed::WebSocket);
    socket.ready().await;
    let (mut issued, mut delivered) = (Vec::new(), 0);

    // First every process learns the new key, then every process signs with it.
    for ring in [[&old, &new], [&new, &old]] {
        keys.write(&ring);
        for rolled in 0..2 {
            roll(fleet.api(rolled)).await;
            socket.switch_to(fleet.http(rolled));
            for api in 0..2 {
                issued.extend(sign_in(&fleet, api, &mailbox).await);
            }
            for jwt in &issued {
                for api in 0..2 {
                    let status = jwt.present(&fleet, api).await.status;
                    assert_eq!(status, 200, "a JWT of {} at {api}, after {rolled} of {ring:?}", jwt.kid());
                }
            }
            fleet.deliver(0, BOX, "across the rollout").await;
            delivered += 1;
            socket.wait_for(delivered).await;
        }
    }

    keys.write(&[&new]);
    for api in 0..2 {
        roll(fleet.api(api)).await;
    }
    let mut ended = 0;
    for jwt in &issued {
        for api in 0..2 {
            let answer = jwt.present(&fleet, api).await;
            if jwt.kid() == "old" {
                answer.assert_api_error(401, "invalid_token");
                ended += 1;
            } else {
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        }
    }
    assert!((1..2 * issued.len()).contains(&ended), "both keys signed: {ended}");
    assert_eq!(socket.refused().await, "invalid_token");
    socket.stop().await;
    for api in 0..2 {
        for jwt in sign_in(&fleet, api, &mailbox).await {
            assert_eq!(jwt.present(&fleet, 1 - api).await.status, 200);
        }
    }
}

/// Why there are two rollouts.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_rejects_a_jwt_of_a_key_that_it_does_not_have_yet() {
    let (old, new) = (random_key("old"), random_key("new"));
    let keys = KeyFile::new(&[&old]);
    let fleet = Fleet::builder().apis(2).ingests(0).workers(0).jwt_keys(&keys).start().await;
    let mailbox = fleet.mailbox(None, BOX).await;
    keys.write(&[&new, &old]);
    roll(fleet.api(0)).await;
    for jwt in sign_in(&fleet, 0, &mailbox).await {
        assert_eq!(jwt.present(&fleet, 0).await.status, 200);
        jwt.present(&fleet, 1).await.assert_api_error(401, "invalid_token");
    }
}
