//! Commands of chromedriver that WebDriver does not have.

use fantoccini::wd::WebDriverCompatibleCommand;
use reqwest::Method;
use serde_json::{Value, json};
use url::{ParseError, Url};

/// A command of the Chrome DevTools Protocol.
#[derive(Debug)]
pub(super) struct Cdp {
    pub(super) method: String,
    pub(super) parameters: Value,
}

impl WebDriverCompatibleCommand for Cdp {
    fn endpoint(&self, base_url: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        of_session(base_url, session, "goog/cdp/execute")
    }

    fn method_and_body(&self, _url: &Url) -> (Method, Option<String>) {
        let body = json!({ "cmd": self.method, "params": self.parameters });
        (Method::POST, Some(body.to_string()))
    }
}

/// Reads what a log has since it was last read: `browser` or `performance`.
#[derive(Debug)]
pub(super) struct Log(pub(super) &'static str);

impl WebDriverCompatibleCommand for Log {
    fn endpoint(&self, base_url: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        of_session(base_url, session, "se/log")
    }

    fn method_and_body(&self, _url: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "type": self.0 }).to_string()))
    }
}

fn of_session(base_url: &Url, session: Option<&str>, command: &str) -> Result<Url, ParseError> {
    base_url.join(&format!("session/{}/{command}", session.unwrap_or_default()))
}
