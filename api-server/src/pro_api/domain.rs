//! `/pro/api/domains`: the custom domains of a tenant.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::auth::ProCaller;
use crate::custom_domain::{self, CheckedDomain, DomainList, DomainRecord};
use crate::error::{ApiError, code};
use crate::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes, path_id};
use crate::parameter::{Page, PathId};
use crate::state::AppState;

/// Its routes.
pub(super) fn routes() -> Routes {
    Routes::new()
        .get(
            "/pro/api/domains",
            Operation::new("listDomains", Credential::Pro, "List the custom domains")
                .page()
                .json::<DomainList>(200, "A page, newest first."),
            list_domains,
        )
        .post(
            "/pro/api/domains",
            Operation::new("createDomain", Credential::Pro, "Add a custom domain")
                .description("It is pending until its DNS records are seen, for 72 h at most.")
                .body(custom_domain::schema())
                .json::<DomainRecord>(201, "The domain, with the DNS records to set.")
                .fails(&[code::INVALID_DOMAIN, code::DOMAIN_LIMIT_REACHED, code::DOMAIN_ALREADY_EXISTS]),
            create_domain,
        )
        .post(
            "/pro/api/domains/{id}/verify",
            Operation::new("verifyDomain", Credential::Pro, "Check the DNS records of a custom domain now")
                .description("In any state; once in 10 s a domain.")
                .parameter(path_id("Id of the domain."))
                .json::<CheckedDomain>(200, "What was found, and what the domain is by it.")
                .fails(&[code::INVALID_REQUEST, code::INVALID_DOMAIN, code::NOT_FOUND]),
            verify_domain,
        )
        .delete(
            "/pro/api/domains/{id}",
            Operation::new(
                "deleteDomain",
                Credential::Pro,
                "Delete a custom domain with its mailboxes and mail",
            )
            .parameter(path_id("Id of the domain."))
            .empty(204, "It is gone, and mail for it is refused.")
            .fails(&[code::INVALID_REQUEST, code::NOT_FOUND, code::MANAGED_BY_KUBERNETES]),
            delete_domain,
        )
}

async fn list_domains(
    State(state): State<AppState>,
    caller: ProCaller,
    Page(page): Page,
) -> Result<Json<DomainList>, ApiError> {
    Ok(Json(custom_domain::list(&state, caller.tenant, page).await?))
}

async fn create_domain(
    State(state): State<AppState>,
    caller: ProCaller,
    body: JsonObject,
) -> Result<(StatusCode, Json<DomainRecord>), ApiError> {
    let record = custom_domain::create(&state, caller.tenant, body).await?;
    Ok((StatusCode::CREATED, Json(record)))
}

async fn verify_domain(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<Json<CheckedDomain>, ApiError> {
    Ok(Json(custom_domain::check(&state, caller.tenant, id).await?))
}

async fn delete_domain(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    custom_domain::remove(&state, caller.tenant, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
