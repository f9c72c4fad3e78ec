//! The messages of the socket, all JSON texts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tempmail_store::{MessageRow, Summary};
use tokio_tungstenite::tungstenite::Message;
use utoipa::ToSchema;
use uuid::Uuid;

/// Announces that every message stored from now on is pushed.
const AUTH_OK: &str = r#"{"type":"auth_ok"}"#;

/// A message that arrived, as it is pushed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PushedEmail<'a> {
    /// Always `new_email`.
    #[serde(rename = "type")]
    kind: &'static str,
    id: Uuid,
    sender: &'a str,
    from: &'a str,
    #[serde(flatten)]
    #[schema(inline)]
    summary: Summary,
    account_id: Uuid,
    address: &'a str,
}

#[derive(Deserialize)]
struct AuthMessage<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    token: Cow<'a, str>,
}

/// The token of the message that authenticates; `None` where it is another message.
pub(super) fn presented_token(text: &str) -> Option<Cow<'_, str>> {
    let auth: AuthMessage<'_> = serde_json::from_str(text).ok()?;
    (auth.kind == "auth").then_some(auth.token)
}

/// The client is authenticated.
pub(super) fn auth_ok() -> Message {
    Message::text(AUTH_OK)
}

/// A message of a mailbox.
pub(super) fn new_email(account_id: Uuid, row: &MessageRow) -> Message {
    let message = PushedEmail {
        kind: "new_email",
        id: row.id,
        sender: &row.sender,
        from: &row.from_text,
        summary: row.into(),
        account_id,
        address: &row.address,
    };
    Message::text(serde_json::to_string(&message).expect("texts and numbers can be written as JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_token_of_the_auth_message_only() {
        let token = |text| presented_token(text).map(Cow::into_owned);
        assert_eq!(token(r#"{"type":"auth","token":"a.b.c"}"#), Some("a.b.c".into()));
        assert_eq!(token(r#" {"token":"\u0061","x":1,"type":"auth"} "#), Some("a".into()));
        for other in [
            "",
            "auth",
            "[]",
            "{}",
            r#"{"type":"auth"}"#,
            r#"{"type":"auth","token":null}"#,
            r#"{"type":"auth","token":7}"#,
            r#"{"type":"Auth","token":"a"}"#,
            r#"{"token":"a"}"#,
            r#"{"type":"auth","token":"a"}{}"#,
            r#"{"type":"auth","type":"auth","token":"a"}"#,
            r#"{"type":"ping","token":"a"}"#,
        ] {
            assert_eq!(token(other), None, "{other}");
        }
    }
}
