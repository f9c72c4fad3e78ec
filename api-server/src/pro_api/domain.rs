//! `/pro/api/domains`: the custom domains of a tenant.

use axum::Json;
use axum::extract::State;

use crate::auth::ProCaller;
use crate::http::error::{ApiError, code};
use crate::http::parameter::PathId;
use crate::openapi::{Credential, Operation, Routes, path_id};
use crate::resources::custom_domain::{self, CheckedDomain, DomainRoutes};
use crate::state::AppState;

/// The routes of `/pro/api/domains`.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Pro, summary);
    custom_domain::routes::<ProCaller>(DomainRoutes {
        collection: "/pro/api/domains",
        item: "/pro/api/domains/{id}",
        list: operation("listDomains", "List the custom domains"),
        create: operation("createDomain", "Add a custom domain"),
        delete: operation("deleteDomain", "Delete a custom domain with its mailboxes and mail"),
    })
    .post(
        "/pro/api/domains/{id}/verify",
        operation("verifyDomain", "Check the DNS records of a custom domain now")
            .description("In any status; at most once in 10 s per domain.")
            .parameter(path_id("Id of the domain."))
            .json::<CheckedDomain>(200, "The result of the check, and the domain after it.")
            .fails(&[code::INVALID_REQUEST, code::INVALID_DOMAIN, code::NOT_FOUND]),
        verify_domain,
    )
}

async fn verify_domain(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<Json<CheckedDomain>, ApiError> {
    Ok(Json(custom_domain::check(&state, &caller, id).await?))
}
