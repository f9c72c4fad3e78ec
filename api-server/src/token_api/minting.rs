//! Minted tokens: a live token makes further ones, each for one address and a short time, so that many callers share it
//! and still wait each for its own mail.

use jiff::SignedDuration;
use serde::Serialize;
use serde_json::{Value, json};
use tempmail_model::address::RecipientAddress;
use tempmail_model::id::new_id;
use tempmail_model::timestamp::timestamp;
use tempmail_model::token::{MINTED_TOKEN_SECONDS, MINTED_TOKEN_SECONDS_MAX, TokenKind};
use tempmail_store::{InboxQuery, MintOutcome, NewMintedToken};
use utoipa::ToSchema;

use super::address::parse_address;
use crate::auth::{LiveCaller, TenantCaller as _};
use crate::http::error::ApiError;
use crate::http::json_body::{BodyError, JsonObject};
use crate::resources::api_token::{TokenRecord, generate, name_schema, not_null, parse_name, whole_number};
use crate::state::AppState;

/// A new live token, or a minted one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CreatedLiveToken {
    #[serde(flatten)]
    pub(super) record: TokenRecord,
    /// The token. This is the only time that it is shown.
    pub(super) token: String,
    /// The address that it is minted for.
    pub(super) address: Option<String>,
    /// A cursor of the moment at which it was minted: mail that comes later comes after it.
    pub(super) since: Option<String>,
}

/// What a minted token is for.
#[derive(Debug)]
pub(super) struct MintRequest {
    address: RecipientAddress,
    lifetime: SignedDuration,
    /// What its record shows; the address without it.
    name: Option<String>,
}

impl MintRequest {
    /// The request in a body, if it names an address.
    ///
    /// # Errors
    /// The address is malformed or can't exist here, a field has the wrong type, or fields do not go together.
    pub(super) fn take_from(state: &AppState, body: &mut JsonObject) -> Result<Option<Self>, ApiError> {
        let seconds = not_null(body.take("expires_in_seconds"));
        let Some(address) = not_null(body.take("address")) else {
            return match seconds {
                None => Ok(None),
                // The token would never expire.
                Some(_) => Err(BodyError::Missing { field: "address" }.into()),
            };
        };
        let Value::String(address) = address else {
            return Err(BodyError::Invalid { field: "address", expected: "a string" }.into());
        };
        let address = parse_address(state.config.address_syntax(), &address)?;
        let lifetime = seconds.map_or(Ok(MINTED_TOKEN_SECONDS), |value| parse_seconds(&value))?;
        for (field, allowed) in [
            ("kind", "`live`, where there is an `address`"),
            ("expires_in_days", "absent, where there is an `address`"),
            ("surfaces", "absent, where there is an `address`"),
        ] {
            match not_null(body.take(field)) {
                None => {}
                Some(Value::String(kind)) if field == "kind" && kind == "live" => {}
                Some(_) => return Err(BodyError::Invalid { field, expected: allowed }.into()),
            }
        }
        let name = match not_null(body.take("name")) {
            None => None,
            Some(Value::String(name)) => Some(parse_name(name)?),
            Some(_) => return Err(BodyError::Invalid { field: "name", expected: "a string" }.into()),
        };
        Ok(Some(Self { address, lifetime: SignedDuration::from_secs(lifetime), name }))
    }
}

/// The body that mints a token.
pub(super) fn schema() -> Value {
    let mut name = name_schema();
    name["type"] = json!(["string", "null"]);
    name["description"] = json!("As of other tokens; the address without it.");
    json!({
        "type": "object",
        "required": ["address"],
        "properties": {
            "address": {"type": "string", "pattern": "^.+@.+$",
                        "description": "The exact address, which the tenant may read now.",
                        "examples": ["hello@inbox.localhost"]},
            "expires_in_seconds": {"type": ["integer", "null"], "minimum": 1, "maximum": MINTED_TOKEN_SECONDS_MAX,
                                   "default": MINTED_TOKEN_SECONDS, "examples": [600]},
            "name": name,
        },
    })
}

/// Mints a token of the caller.
///
/// # Errors
/// [`ApiError::NotFound`] where the caller may not read the address; [`ApiError::TokenLimitReached`]; the caller's token
/// has ended or its tenant is suspended; the store failed.
pub(super) async fn mint(
    state: &AppState,
    caller: LiveCaller,
    request: MintRequest,
) -> Result<CreatedLiveToken, ApiError> {
    let MintRequest { address, lifetime, name } = request;
    state.limits.admit_change(caller.tenant).await?;
    let token = generate(TokenKind::Live)?;
    let now = state.clock.now();
    let (id, expires_at) = (new_id(now), now + lifetime);
    let limit = state.config.limits.minted_tokens;
    let new = NewMintedToken { id, parent: caller.token, token: &token, expires_at, limit };
    let reserved = state.reserved.reservation_of(address.base_local_part());
    let query = InboxQuery { tenant: caller.tenant, address: &address, reserved };
    // Before the position is read: one of a later generation is then a position before it.
    let generation = state.arrivals.generations().current();
    let position = match state.store.acting(caller.actor()).mint_token(query, new, now).await? {
        MintOutcome::Minted(position) => position,
        MintOutcome::Unreadable => return Err(ApiError::NotFound),
        MintOutcome::LimitReached => return Err(ApiError::TokenLimitReached),
        MintOutcome::TenantDisabled => return Err(ApiError::AccountDisabled),
    };
    let generation = state.arrivals.generations().id(generation);
    let record = TokenRecord {
        id,
        name: name.unwrap_or_else(|| address.as_str().to_owned()),
        kind: TokenKind::Live.as_str().to_owned(),
        hint: token.hint().to_owned(),
        created_at: timestamp(now),
        last_used_at: None,
        expires_at: Some(timestamp(expires_at)),
        revoked_at: None,
        surfaces: Vec::new(),
    };
    Ok(CreatedLiveToken {
        record,
        token: token.expose().to_owned(),
        address: Some(address.as_str().to_owned()),
        since: Some(state.cursors.seal(caller.tenant, generation, position)),
    })
}

fn parse_seconds(value: &Value) -> Result<i64, BodyError> {
    whole_number(value)
        .filter(|seconds| (1..=MINTED_TOKEN_SECONDS_MAX).contains(seconds))
        .ok_or(BodyError::Invalid { field: "expires_in_seconds", expected: "an integer from 1 to 3600" })
}
