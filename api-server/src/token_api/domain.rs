//! `/v1/domains`: the custom domains of a tenant.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::auth::LiveCaller;
use crate::custom_domain::{self, DomainList, DomainRecord};
use crate::error::{V1Error, code};
use crate::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes, path_id};
use crate::parameter::{Page, PathId};
use crate::state::AppState;

/// Its routes.
pub(super) fn routes() -> Routes {
    Routes::new()
        .get(
            "/v1/domains",
            Operation::new("listOwnDomains", Credential::Live, "List the custom domains")
                .page()
                .json::<DomainList>(200, "A page, newest first."),
            list_domains,
        )
        .post(
            "/v1/domains",
            Operation::new("createOwnDomain", Credential::Live, "Add a custom domain")
                .description("It is pending until its DNS records are seen, for 72 h at most.")
                .body(custom_domain::schema())
                .json::<DomainRecord>(201, "The domain, with the DNS records to set.")
                .fails(&[code::INVALID_DOMAIN, code::DOMAIN_LIMIT_REACHED, code::DOMAIN_ALREADY_EXISTS]),
            create_domain,
        )
        .delete(
            "/v1/domains/{id}",
            Operation::new(
                "deleteOwnDomain",
                Credential::Live,
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
    caller: LiveCaller,
    Page(page): Page,
) -> Result<Json<DomainList>, V1Error> {
    Ok(Json(custom_domain::list(&state, caller.tenant, page).await?))
}

async fn create_domain(
    State(state): State<AppState>,
    caller: LiveCaller,
    body: JsonObject,
) -> Result<(StatusCode, Json<DomainRecord>), V1Error> {
    let record = custom_domain::create(&state, caller.tenant, body).await?;
    Ok((StatusCode::CREATED, Json(record)))
}

async fn delete_domain(
    State(state): State<AppState>,
    caller: LiveCaller,
    PathId(id): PathId,
) -> Result<StatusCode, V1Error> {
    custom_domain::remove(&state, caller.tenant, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
