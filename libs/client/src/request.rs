//! Which mail a request is about.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

/// Whose mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// That of one address.
    Address(String),
    /// That of every address under a verified domain of the tenant.
    Domain(String),
    /// That of everything the tenant owns, which no shared inbox is.
    All,
}

/// What a mail may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// A one-time code.
    Code,
    /// A link that completes what the mail is about.
    Link,
    /// An attachment.
    Attachment,
}

/// What a mail must be like. All of it holds; texts are found anywhere, whatever their case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MailMatch {
    /// In the From header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// In the recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// In the Subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// In the text as it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub has: Vec<Feature>,
}

/// Which mail is waited for: the oldest one after `since` and `after`. With neither, at an address the newest one
/// that is there, or the first that comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitRequest {
    /// Whose mail.
    pub scope: Scope,
    /// After this cursor; `0` is before the oldest mail.
    pub since: Option<String>,
    /// Accepted after this time.
    pub after: Option<Timestamp>,
    /// What it must be like.
    pub matching: MailMatch,
    /// Whether the whole mail is the answer, not its summary.
    pub full: bool,
}

impl WaitRequest {
    /// Waits for any mail of a scope.
    pub fn new(scope: Scope) -> Self {
        Self { scope, since: None, after: None, matching: MailMatch::default(), full: false }
    }

    /// The same, for mail that also has something.
    #[must_use]
    pub(crate) fn with(mut self, feature: Feature) -> Self {
        if !self.matching.has.contains(&feature) {
            self.matching.has.push(feature);
        }
        self
    }

    /// The body of `POST /v1/wait`.
    pub(crate) fn body(&self, timeout_seconds: u64) -> Value {
        let mut body = match &self.scope {
            Scope::Address(address) => json!({ "address": address }),
            Scope::Domain(domain) => json!({ "domain": domain }),
            Scope::All => json!({ "all": true }),
        };
        body["timeout"] = timeout_seconds.into();
        if self.matching != MailMatch::default() {
            body["match"] = json!(self.matching);
        }
        if let Some(since) = &self.since {
            body["since"] = json!(since);
        }
        if let Some(after) = self.after {
            body["after"] = json!(after.to_string());
        }
        if self.full {
            body["full"] = true.into();
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_is_set_and_nothing_else() {
        let mut request = WaitRequest::new(Scope::Address("a@b.example".into()));
        assert_eq!(request.body(60), json!({"address": "a@b.example", "timeout": 60}));
        request.since = Some("0".into());
        request.after = Some("2026-11-24T10:00:00Z".parse().unwrap());
        request.matching.subject = Some("code".into());
        request.full = true;
        let expected = json!({"address": "a@b.example", "timeout": 0, "since": "0", "after": "2026-11-24T10:00:00Z",
                              "match": {"subject": "code", "has": ["code"]}, "full": true});
        assert_eq!(request.with(Feature::Code).with(Feature::Code).body(0), expected);
        assert_eq!(WaitRequest::new(Scope::All).body(1), json!({"all": true, "timeout": 1}));
    }
}
