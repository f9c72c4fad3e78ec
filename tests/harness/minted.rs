//! Minted tokens, as the interface mints them.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::app::App;
use crate::fleet::Fleet;
use crate::http::{Request, Response};

/// A minted token.
#[derive(Debug, Clone)]
pub struct MintedToken {
    /// Its id.
    pub id: Uuid,
    /// The token.
    pub token: String,
    /// A cursor of the moment at which it was minted.
    pub since: String,
}

impl MintedToken {
    async fn mint(request: Request, live: &str, body: &Value) -> Self {
        let minted = request.live(live).json(body).send().await.expect(201);
        let text =
            |key: &str| minted[key].as_str().unwrap_or_else(|| panic!("{minted} has no {key}")).to_owned();
        Self { id: text("id").parse().expect("an id is a UUID"), token: text("token"), since: text("since") }
    }
}

impl App {
    /// A token that `live` mints for an address.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn mint(&self, live: &str, address: &str) -> MintedToken {
        let request = self.request(Method::POST, "/v1/tokens");
        MintedToken::mint(request, live, &json!({ "address": address })).await
    }
}

impl App {
    /// Starts a long-poll of a minted token, and returns once the server holds it.
    ///
    /// # Panics
    /// It returns at once.
    pub async fn start_minted_long_poll(&self, token: &str, path: &str) -> JoinHandle<Response> {
        // One of two requests takes the only wait of the token, and refuses the other.
        let [mut one, mut other] =
            [0, 1].map(|_| tokio::spawn(self.request(Method::GET, path).live(token).send()));
        let (refused, held) = tokio::select! {
            refused = &mut one => (refused, other),
            refused = &mut other => (refused, one),
        };
        refused.expect("a request does not panic").assert_v1_error(429, "token_busy");
        held
    }
}

impl Fleet {
    /// A token that `live` mints for an address, for an hour.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn mint(&self, live: &str, address: &str) -> MintedToken {
        let request = self.request(0, Method::POST, "/v1/tokens");
        MintedToken::mint(request, live, &json!({ "address": address, "expires_in_seconds": 3600 })).await
    }
}
