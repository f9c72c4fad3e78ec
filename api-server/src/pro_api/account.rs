//! `/pro/api/accounts`: the mailboxes of a tenant.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::json;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{ListedMailbox, TenantMailbox};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::{ProCaller, TenantCaller as _};
use crate::http::client::Party;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::parameter::{BeforeMessage, PageNumber, PathId};
use crate::http::rate_limit::enforce;
use crate::message::MessageList;
use crate::openapi::{Credential, Operation, Routes, path_id};
use crate::resources::mailbox;
use crate::resources::mailbox::creation::{self, Creator};
use crate::resources::message;
use crate::state::AppState;

/// The routes of `/pro/api/accounts`.
pub(super) fn routes() -> Routes<AppState> {
    let of_mailbox = |id, summary| {
        Operation::new(id, Credential::Pro, summary)
            .parameter(path_id("Id of the mailbox."))
            .fails(&[code::INVALID_REQUEST, code::NOT_FOUND])
    };
    Routes::new()
        .get(
            "/pro/api/accounts",
            Operation::new("listAccounts", Credential::Pro, "List the tenant's mailboxes")
                .description("Including those at a custom domain that is no longer verified.")
                .page_of_owned()
                .json::<MailboxAccounts>(200, "A page, newest first."),
            list_accounts,
        )
        .post(
            "/pro/api/accounts",
            Operation::new("createOwnedAccount", Credential::Pro, "Create a mailbox of the tenant")
                .description(
                    "As `POST /api/accounts` with a Pro token, but without a JWT, which would outlive a session.",
                )
                .body(creation::schema())
                .json::<CreatedAccount>(201, "The mailbox.")
                .fails(&creation::ERRORS),
            create_account,
        )
        .delete(
            "/pro/api/accounts/{id}",
            of_mailbox("deleteAccountById", "Delete a mailbox with its mail")
                .empty(204, "The mailbox is deleted.")
                .fails(&[code::MANAGED_BY_KUBERNETES]),
            delete_account,
        )
        .put(
            "/pro/api/accounts/{id}/reset-password",
            of_mailbox("resetPassword", "Set the password of a mailbox")
                .description("All JWTs of the mailbox become invalid.")
                .body(json!({
                    "type": "object",
                    "required": ["password"],
                    "properties": {"password": mailbox::password_schema()},
                }))
                .json::<PasswordReset>(200, "The password is reset.")
                .fails(&[code::PASSWORD_TOO_SHORT, code::PASSWORD_TOO_LONG, code::MANAGED_BY_KUBERNETES]),
            reset_password,
        )
        .get(
            "/pro/api/accounts/{id}/messages",
            of_mailbox("listMessagesOfAccount", "List a mailbox's messages")
                .description("Requires no JWT of the mailbox.")
                .page()
                .before()
                .json::<MessageList>(200, "A page, newest first."),
            list_messages,
        )
}

/// A mailbox of a tenant.
#[derive(Debug, Serialize, ToSchema)]
struct MailboxAccount {
    id: Uuid,
    address: String,
    /// Bytes that the mailbox may hold.
    quota: i64,
    /// Bytes of its messages.
    used: i64,
    created_at: String,
}

/// A mailbox that was created.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedAccount {
    id: Uuid,
    address: String,
}

/// A page of mailboxes, newest first.
#[derive(Debug, Serialize, ToSchema)]
struct MailboxAccounts {
    accounts: Vec<MailboxAccount>,
}

/// The answer to a password reset.
#[derive(Debug, Serialize, ToSchema)]
struct PasswordReset {
    /// `password_reset`.
    message: &'static str,
}

impl From<ListedMailbox> for MailboxAccount {
    fn from(mailbox: ListedMailbox) -> Self {
        Self {
            id: mailbox.id,
            address: mailbox.address,
            quota: mailbox.quota,
            used: mailbox.used,
            created_at: timestamp(mailbox.created_at),
        }
    }
}

async fn list_accounts(
    State(state): State<AppState>,
    caller: ProCaller,
    PageNumber(page): PageNumber,
) -> Result<Json<MailboxAccounts>, ApiError> {
    // It sums what each of up to 1,000 mailboxes has.
    let _turn = state.gates.long_reads.turn(Party::Id(caller.tenant)).await?;
    let mailboxes = state.store.list_tenant_mailboxes(caller.tenant, page, state.clock.now()).await?;
    Ok(Json(MailboxAccounts { accounts: mailboxes.into_iter().map(Into::into).collect() }))
}

async fn create_account(
    State(state): State<AppState>,
    caller: ProCaller,
    body: JsonObject,
) -> Result<(StatusCode, Json<CreatedAccount>), ApiError> {
    let creator = Creator::Tenant { tenant: caller.tenant, actor: caller.actor() };
    let created = creation::create(&state, creator, body, state.clock.now()).await?;
    Ok((StatusCode::CREATED, Json(CreatedAccount { id: created.id, address: created.address })))
}

async fn delete_account(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    let found = find_mutable(&state, caller, id).await?;
    if mailbox::remove(&state, caller.actor(), found.id, state.clock.now()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        // Another request deleted it first.
        Err(ApiError::NotFound)
    }
}

async fn reset_password(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
    mut body: JsonObject,
) -> Result<Json<PasswordReset>, ApiError> {
    let password = body.text("password")?;
    mailbox::check_password_length(&state, &password)?;
    enforce("password_resets", state.limits.count_password_reset(caller.tenant).await)?;
    // Found before hashing, which costs far more.
    let found = find_mutable(&state, caller, id).await?;
    let hash = state.passwords.hash(Party::Id(caller.tenant), password).await?;
    let store = state.store.acting(caller.actor());
    store.reset_mailbox_password(caller.tenant, found.id, caller.token, &hash).await??;
    Ok(Json(PasswordReset { message: "password_reset" }))
}

async fn list_messages(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
    BeforeMessage(before): BeforeMessage,
    PageNumber(page): PageNumber,
) -> Result<Json<MessageList>, ApiError> {
    let mailbox = find(&state, caller, id).await?;
    if !mailbox.serves {
        return Err(ApiError::NotFound);
    }
    message::list_of_mailbox(&state, caller.tenant, mailbox.id, before, page).await
}

/// The tenant's mailbox with this id. Mailboxes of other owners are not found.
async fn find(state: &AppState, caller: ProCaller, id: Uuid) -> Result<TenantMailbox, ApiError> {
    state.store.find_tenant_mailbox(caller.tenant, id).await?.ok_or(ApiError::NotFound)
}

/// [`find`], where Kubernetes does not manage the mailbox.
async fn find_mutable(state: &AppState, caller: ProCaller, id: Uuid) -> Result<TenantMailbox, ApiError> {
    let mailbox = find(state, caller, id).await?;
    if mailbox.managed_by_kubernetes { Err(ApiError::ManagedByKubernetes) } else { Ok(mailbox) }
}
