//! The body of `POST /v1/wait`.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tempmail_model::address::normalize_domain;
use tempmail_model::limits::{MAIL_WAIT_SECONDS, MAIL_WAIT_SECONDS_MAX, MATCH_TEXT_MAX};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::error::ApiError;
use crate::http::json_body::{BodyError, JsonObject};
use crate::message::WantedEmail;
use crate::realtime::cursor::open_since;
use crate::realtime::filter::Filter;
use crate::realtime::mail_wait::MailWaitQuery;
use crate::realtime::scope::Scope;
use crate::state::AppState;
use crate::token_api::address::parse_address;

/// A mail wait that was requested.
pub(super) struct MailWaitRequest {
    pub(super) scope: Scope,
    pub(super) query: Box<MailWaitQuery>,
}

/// What a mail may have, as `match.has` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(as = EmailFeature, rename_all = "lowercase")]
pub(super) enum Feature {
    /// A one-time code.
    Code,
    /// An action link.
    Link,
    /// An element of `attachments`.
    Attachment,
}

/// The schema of the body.
pub(super) fn schema() -> Value {
    let text = |description: &str| {
        json!({"type": ["string", "null"], "maxLength": MATCH_TEXT_MAX,
               "description": format!("{description}, ignoring case.")})
    };
    json!({
        "type": "object",
        "description": "Exactly one of `address`, `domain` and `all`.",
        "required": [],
        "properties": {
            "address": {"type": ["string", "null"], "description": "The exact address, as in `/v1/inbox/{address}`."},
            "domain": {"type": ["string", "null"], "description": "A verified custom domain of the tenant."},
            "all": {"type": ["boolean", "null"], "description": "Everything that the tenant owns, as `/v1/me`."},
            "since": {"type": ["string", "null"], "minLength": 1,
                      "description": "Cursor: only mail after it. `0`: all unexpired mail, the oldest first."},
            "after": {"type": ["string", "null"], "format": "date-time",
                      "description": "Only mail that was accepted after this time, to the millisecond."},
            "match": {
                "type": ["object", "null"],
                "description": "What the mail must have, all of it.",
                "properties": {
                    "from": text("Part of the From header"),
                    "to": text("Part of the recipient's address"),
                    "subject": text("Part of the subject"),
                    "text": text("Part of the first 256 KiB of its text, or of its HTML as it is shown; white space \
                                  counts as one space"),
                    "has": {
                        "description": "What it has, all of it: a one-time code, an action link, an element of `attachments`. \
                                        One alone may be given without the list.",
                        "type": ["array", "null"],
                        "items": {"$ref": format!("#/components/schemas/{}", Feature::name())},
                    },
                },
            },
            "timeout": {"type": ["integer", "null"], "minimum": 0, "maximum": MAIL_WAIT_SECONDS_MAX,
                        "default": MAIL_WAIT_SECONDS,
                        "description": "Seconds to wait at most; 0 looks once and never waits."},
            "full": {"type": ["boolean", "null"], "default": false,
                     "description": "Whether `email` is the whole message, as in `GET /v1/email/{id}`."},
        },
        "examples": [{"address": "full@inbox.localhost", "match": {"subject": ""}, "timeout": 60, "full": false}],
    })
}

impl MailWaitRequest {
    /// The wait that a tenant requests.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`] names the field that is wrong; [`ApiError::NotFound`] where the address can't exist
    /// here.
    pub(super) fn parse(state: &AppState, tenant: Uuid, mut body: JsonObject) -> Result<Self, ApiError> {
        let scope = parse_scope(state, &mut body)?;
        let since = text(&mut body, "since")?.map(|since| open_since(state, tenant, &since)).transpose()?;
        let after = body.optional("after").map(|value| parse_time(&value)).transpose()?;
        if since.is_none() && after.is_none() && !matches!(scope, Scope::Address(_)) {
            return Err(ApiError::InvalidRequest("`domain` and `all` need `since` or `after`.".into()));
        }
        let mut wanted = body.optional_object("match")?;
        let filter = Filter::new(
            match_text(&mut wanted, "from", "match.from")?.as_deref(),
            match_text(&mut wanted, "subject", "match.subject")?.as_deref(),
        )
        .to(match_text(&mut wanted, "to", "match.to")?.as_deref());
        let mut email = WantedEmail::default();
        email.full = flag(&mut body, "full")?;
        if let Some(text) = match_text(&mut wanted, "text", "match.text")? {
            email.require_text(&text);
        }
        for feature in parse_features(wanted.optional("has"))? {
            match feature {
                Feature::Code => email.has_code = true,
                Feature::Link => email.has_link = true,
                Feature::Attachment => email.has_attachment = true,
            }
        }
        let timeout = body.optional("timeout").map(|value| parse_seconds(&value)).transpose()?;
        let timeout = Duration::from_secs(timeout.unwrap_or(MAIL_WAIT_SECONDS));
        let query = MailWaitQuery { since, after, filter, wanted: Arc::new(email), timeout };
        Ok(Self { scope, query: Box::new(query) })
    }
}

impl Feature {
    const ALL: [Self; 3] = [Self::Code, Self::Link, Self::Attachment];

    fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Link => "link",
            Self::Attachment => "attachment",
        }
    }
}

fn parse_scope(state: &AppState, body: &mut JsonObject) -> Result<Scope, ApiError> {
    let (address, domain, all) = (text(body, "address")?, text(body, "domain")?, flag(body, "all")?);
    match (address, domain, all) {
        (Some(address), None, false) => {
            let address = parse_address(state.config.address_syntax(), &address)?;
            Ok(Scope::Address(Arc::new(address)))
        }
        (None, Some(domain), false) => normalize_domain(&domain)
            .map(Scope::Domain)
            .map_err(|_malformed| ApiError::InvalidRequest("`domain` is malformed.".into())),
        (None, None, true) => Ok(Scope::Owned),
        _ => Err(ApiError::InvalidRequest(
            "Exactly one of `address`, `domain` and `all` must be given.".into(),
        )),
    }
}

/// A text that may be missing or `null`.
fn text(body: &mut JsonObject, field: &'static str) -> Result<Option<String>, BodyError> {
    match body.optional(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(BodyError::Invalid { field, expected: "a string" }),
    }
}

/// A boolean that may be missing or `null`, which is `false`.
fn flag(body: &mut JsonObject, field: &'static str) -> Result<bool, BodyError> {
    match body.optional(field) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(BodyError::Invalid { field, expected: "true or false" }),
    }
}

/// A field of `match`.
fn match_text(
    wanted: &mut JsonObject,
    field: &'static str,
    path: &'static str,
) -> Result<Option<String>, BodyError> {
    match wanted.optional(field) {
        None => Ok(None),
        Some(Value::String(text)) if text.chars().count() <= MATCH_TEXT_MAX => Ok(Some(text)),
        Some(_) => Err(BodyError::Invalid { field: path, expected: "a string of at most 256 characters" }),
    }
}

/// `match.has`: a word, or a list of words.
fn parse_features(value: Option<Value>) -> Result<Vec<Feature>, BodyError> {
    let words = match value {
        None => Vec::new(),
        Some(Value::Array(words)) => words,
        Some(word) => vec![word],
    };
    let feature =
        |word: Value| Feature::ALL.into_iter().find(|feature| word.as_str() == Some(feature.as_str()));
    words
        .into_iter()
        .map(|word| {
            feature(word).ok_or(BodyError::Invalid {
                field: "match.has",
                expected: "`code`, `link` or `attachment`, or a list of these",
            })
        })
        .collect()
}

fn parse_time(value: &Value) -> Result<Timestamp, BodyError> {
    let time = value.as_str().and_then(|text| text.parse().ok());
    time.ok_or(BodyError::Invalid {
        field: "after",
        expected: "a time by RFC 3339, such as 2026-11-21T10:00:00Z",
    })
}

fn parse_seconds(value: &Value) -> Result<u64, BodyError> {
    // In JSON, 30.0 is an integer, too.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is cut off is beyond the bounds"
    )]
    let whole =
        || value.as_f64().filter(|seconds| seconds.fract() == 0.0 && *seconds >= 0.0).map(|s| s as u64);
    value
        .as_u64()
        .or_else(whole)
        .filter(|seconds| *seconds <= MAIL_WAIT_SECONDS_MAX)
        .ok_or(BodyError::Invalid { field: "timeout", expected: "an integer from 0 to 300" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_whole_seconds_up_to_300() {
        for (value, expected) in [(json!(0), 0), (json!(300), 300), (json!(30.0), 30), (json!(-0.0), 0)] {
            assert_eq!(parse_seconds(&value), Ok(expected), "{value}");
        }
        for wrong in [json!(-1), json!(301), json!(1.5), json!("5"), json!(true), json!(1e300), json!(-1e300)]
        {
            assert!(parse_seconds(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn accepts_times_with_an_offset() {
        let time: Timestamp = "2026-11-21T10:00:00.123Z".parse().unwrap();
        for text in ["2026-11-21T10:00:00.123Z", "2026-11-21T11:00:00.123+01:00", "2026-11-21T10:00:00.123z"]
        {
            assert_eq!(parse_time(&json!(text)), Ok(time), "{text}");
        }
        for wrong in
            [json!("2026-11-21"), json!("10:00"), json!("yesterday"), json!(1_700_000_000), json!("")]
        {
            assert!(parse_time(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn accepts_a_word_or_a_list_of_words() {
        for value in [json!("attachment"), json!(["attachment", "attachment"])] {
            assert!(parse_features(Some(value)).unwrap().iter().all(|f| *f == Feature::Attachment));
        }
        let both = parse_features(Some(json!(["link", "code"])));
        assert_eq!(both, Ok(vec![Feature::Link, Feature::Code]));
        assert_eq!(parse_features(Some(json!([]))), Ok(vec![]));
        for wrong in
            [json!("picture"), json!(["attachment", 7]), json!({}), json!(true), json!([["attachment"]])]
        {
            assert!(parse_features(Some(wrong.clone())).is_err(), "{wrong}");
        }
    }
}
