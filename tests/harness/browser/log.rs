//! What the browser says of a page: its console, and the requests that it makes.

use std::collections::HashMap;

use serde_json::Value;

/// An entry of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleEntry {
    /// `SEVERE`, `WARNING`, `INFO` or `DEBUG`.
    pub level: String,
    /// Where it is from: `console-api`, `javascript`, `network`, `security` and others.
    pub source: String,
    /// What it says.
    pub message: String,
}

impl ConsoleEntry {
    /// Whether a policy refused something, or a script failed. That a request was answered with an error is neither.
    pub fn is_alarm(&self) -> bool {
        let is_policy = ["Content Security Policy", "Trusted Type", "TrustedHTML", "TrustedScript"]
            .iter()
            .any(|policy| self.message.contains(policy));
        is_policy || (self.level == "SEVERE" && self.source != "network")
    }
}

/// The entries of an answer of the log `browser`.
pub(super) fn console_entries(answer: &Value) -> Vec<ConsoleEntry> {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let entries = answer.as_array().into_iter().flatten();
    entries
        .map(|entry| ConsoleEntry {
            level: text(entry, "level"),
            source: text(entry, "source"),
            message: text(entry, "message"),
        })
        .collect()
}

/// A request of a page or of one of its frames.
#[derive(Debug, Clone)]
struct LoggedRequest {
    url: String,
    /// Bytes over the wire of its answer; 0 until it is complete.
    encoded_bytes: f64,
}

/// The requests of a page and its frames, in order.
#[derive(Debug, Clone, Default)]
pub struct NetworkLog {
    requests: Vec<LoggedRequest>,
    /// Positions by the browser's id.
    by_id: HashMap<String, usize>,
}

impl NetworkLog {
    /// The URLs that were requested, but for those that are content themselves.
    pub fn urls(&self) -> Vec<&str> {
        let urls = self.requests.iter().map(|request| request.url.as_str());
        urls.filter(|url| !url.starts_with("data:") && !url.starts_with("blob:")).collect()
    }

    /// The URLs that are not of this origin; a WebSocket of its host is.
    pub fn urls_beyond(&self, origin: &str) -> Vec<&str> {
        let host = authority(origin);
        self.urls().into_iter().filter(|url| authority(url) != host && *url != "about:blank").collect()
    }

    /// Bytes over the wire of all answers, header fields included.
    pub fn encoded_bytes(&self) -> f64 {
        self.requests.iter().map(|request| request.encoded_bytes).sum()
    }

    /// Adds an answer of the log `performance`: events of the DevTools protocol as texts of JSON.
    pub(super) fn extend(&mut self, answer: &Value) {
        for entry in answer.as_array().into_iter().flatten() {
            let text = entry["message"].as_str().unwrap_or_default();
            let Ok(event) = serde_json::from_str::<Value>(text) else { continue };
            self.add(&event["message"]);
        }
    }

    fn add(&mut self, event: &Value) {
        let parameters = &event["params"];
        let Some(id) = parameters["requestId"].as_str() else { return };
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => self.begin(id, &parameters["request"]["url"]),
            "Network.webSocketCreated" => self.begin(id, &parameters["url"]),
            "Network.loadingFinished" => {
                if let Some(&at) = self.by_id.get(id) {
                    self.requests[at].encoded_bytes = parameters["encodedDataLength"].as_f64().unwrap_or(0.0);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, id: &str, url: &Value) {
        self.by_id.insert(id.to_owned(), self.requests.len());
        let url = url.as_str().unwrap_or_default().to_owned();
        self.requests.push(LoggedRequest { url, encoded_bytes: 0.0 });
    }
}

/// Host and port of a URL; empty where it has none.
fn authority(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}
