//! Drop-in surfaces: the interfaces of other services, for their clients (`docs/compat`). Each is an adapter over the
//! store and the renderer of messages, and has a listener and an origin of its own.
//!
//! A tenant's surfaces list and search what the tenant owns. A shared inbox is found by its exact address only.

mod mail;
mod mailhog;
mod mailosaur;
mod mailpit;
mod request;
mod search;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use tempmail_model::surface::DropInSurface;

use crate::http::error::{DropIn, ErrorForm, code};
use crate::http::middleware::{self, RequestPolicy};
use crate::state::AppState;
use request::Anyone;

/// What a browser may do with mail that is opened as a page: show it.
const MAIL_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The router of a drop-in surface, behind the middleware.
pub(crate) fn router(surface: DropInSurface, state: AppState) -> Router {
    match surface {
        DropInSurface::Mailpit => finish::<mailpit::Mailpit>(mailpit::routes(), state),
        DropInSurface::MailHog => finish::<mailhog::Mailhog>(mailhog::routes(), state),
        DropInSurface::Mailosaur => finish::<mailosaur::Mailosaur>(mailosaur::routes(), state),
    }
}

fn finish<S: DropIn>(routes: Router<AppState>, state: AppState) -> Router {
    let policy = RequestPolicy::of_drop_in(S::SURFACE, state.config.clone(), state.limits.clone());
    routes
        .fallback(not_found::<S>)
        .method_not_allowed_fallback(method_not_allowed::<S>)
        .layer(from_fn_with_state(policy, middleware::handle))
        .with_state(state)
}

async fn not_found<S: DropIn>(_: Anyone<S>) -> Response {
    ErrorForm::from(S::SURFACE).error_response(
        code::NOT_FOUND,
        "This surface has no such route; its documentation lists what it has.",
    )
}

async fn method_not_allowed<S: DropIn>(_: Anyone<S>) -> Response {
    ErrorForm::from(S::SURFACE)
        .error_response(code::METHOD_NOT_ALLOWED, "Use one of the methods that `Allow` lists.")
}

/// An answer that is part of a mail: a browser that opens it shows it, and runs nothing of it.
fn mail_content(mut response: Response) -> Response {
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(MAIL_POLICY));
    response
}
