//! `POST /v1/wait`: waits for one mail that matches.

mod request;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use self::request::MailWaitRequest;
use super::wait::{WaitPermits, no_mail};
use crate::auth::{LiveCaller, MailCaller};
use crate::http::client::Client;
use crate::http::connection::EndsWithInput;
use crate::http::error::{ApiError, V1Error, code};
use crate::http::json_body::JsonObject;
use crate::message::{Email, EmailSummary, FoundEmail};
use crate::openapi::{Credential, Operation, Routes};
use crate::realtime::mail_wait::{self, MailWaitOutcome};
use crate::state::AppState;

/// The route of `/v1/wait`.
pub(super) fn routes() -> Routes<AppState> {
    let operation = Operation::new("waitForEmail", Credential::Live, "Wait for one mail that matches")
        .description(
            "Waits on one of `address`, `domain` (a verified custom domain of the tenant) and `all` (everything that \
             it owns). With `since` or `after` the answer is the oldest match after both, so the same request has the \
             same answer. With neither it is the newest match that there is at `address`, or else the first that \
             comes; `domain` and `all` need one of them. Like a long-poll it is the one wait of the token. `204` also \
             comes early, after 10000 messages, or 200 whose contents were looked at: continue from `X-Next-Since`.",
        )
        .body(request::schema())
        .about::<request::Feature>()
        .about::<EmailSummary>()
        .about::<Email<'_>>()
        .json::<FoundEmail<'_>>(200, "The mail.")
        .empty(204, "No mail that matches within `timeout`: send the request again, with the cursor as `since`.")
        .header("X-Next-Since", "The cursor to continue from.")
        .fails(&[code::NOT_FOUND, code::TOKEN_BUSY, code::ADDR_BUSY]);
    Routes::new().post("/v1/wait", operation, wait_for_email)
}

pub(super) async fn wait_for_email(
    State(state): State<AppState>,
    _: EndsWithInput,
    Extension(client): Extension<Client>,
    caller: MailCaller,
    body: JsonObject,
) -> Result<Response, V1Error> {
    let request = MailWaitRequest::parse(&state, caller.tenant(), body)?;
    let caller = request.scope.admit(caller)?;
    Ok(wait(&state, client, caller, request).await?)
}

async fn wait(
    state: &AppState,
    client: Client,
    caller: LiveCaller,
    request: MailWaitRequest,
) -> Result<Response, ApiError> {
    let MailWaitRequest { scope, query } = request;
    let permits = WaitPermits::acquire(state, caller, &scope).await?;
    let outcome = mail_wait::wait(state, client, caller.into(), scope, query).await;
    // Released before the answer is written, so that the client's next request finds them free.
    permits.release().await;
    match outcome? {
        MailWaitOutcome::Found(response) => Ok(*response),
        MailWaitOutcome::Empty(cursor) => no_mail(&cursor),
    }
}
