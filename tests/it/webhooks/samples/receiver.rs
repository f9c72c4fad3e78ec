//! The Rust sample of `docs/webhooks.md`: what follows the attribute is the same there.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it is a program of its own")]

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, io};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use tokio::net::TcpListener;

struct Receiver {
    secret: String,
    seen: Mutex<HashSet<String>>, // in production: a unique key in your database
}

/// The event, if the request is genuine.
fn verified(secret: &str, headers: &HeaderMap, body: &[u8]) -> Option<Value> {
    let timestamp = headers.get("x-webhook-timestamp")?.to_str().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    if timestamp.parse::<u64>().ok()?.abs_diff(now) > 300 {
        return None;
    }
    let given = headers.get("x-webhook-signature")?.to_str().ok()?.strip_prefix("sha256=")?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(format!("{timestamp}.").as_bytes());
    mac.update(body);
    mac.verify_slice(&from_hex(given)?).ok()?; // in constant time
    serde_json::from_slice(body).ok()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = |at| text.get(at..at + 2);
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(digits(at)?, 16).ok()).collect()
}

fn handle(event: &Value) {
    println!("{} {} {}", event["id"], event["data"]["address"], event["data"]["subject"]);
}

// `Bytes`: the raw bytes.
async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let Some(event) = verified(&receiver.secret, &headers, &body) else {
        return StatusCode::UNAUTHORIZED;
    };
    let mut seen = receiver.seen.lock().expect("nothing panics under the lock");
    if !seen.contains(event["id"].as_str().unwrap_or_default()) {
        handle(&event);
        seen.insert(event["id"].as_str().unwrap_or_default().to_owned());
    }
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let secret = env::var("WEBHOOK_SECRET").expect("WEBHOOK_SECRET is set");
    let port = env::var("PORT").unwrap_or_else(|_| "8000".to_owned());
    let receiver = Arc::new(Receiver { secret, seen: Mutex::default() });
    let router = Router::new().fallback(post(receive)).with_state(receiver);
    axum::serve(TcpListener::bind(format!("127.0.0.1:{port}")).await?, router).await
}
