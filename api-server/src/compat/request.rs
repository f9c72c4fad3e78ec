//! What handlers of drop-in surfaces take from a request. What is wrong is answered in the form of the surface `S`.

use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use crate::http::client::{self, Client};
use crate::http::error::{ApiError, DropIn, DropInError};
use crate::http::json_body::JsonObject;
use crate::state::AppState;

/// A client without a credential. Extracting it counts the request against the client's rate.
#[derive(Debug)]
pub(super) struct Anyone<S>(PhantomData<fn() -> S>);

/// The variable segments of a path.
#[derive(Debug)]
pub(super) struct Segments<S, T>(pub(super) T, pub(super) PhantomData<fn() -> S>);

/// The parameters of a query. Unknown ones are ignored; of those that are repeated the first one counts.
#[derive(Debug)]
pub(super) struct Parameters<S>(Vec<(String, String)>, PhantomData<fn() -> S>);

/// The JSON object in a body; one without fields where there is no body.
#[derive(Debug)]
pub(super) struct Body<S>(pub(super) JsonObject, pub(super) PhantomData<fn() -> S>);

impl<S: DropIn> FromRequestParts<AppState> for Anyone<S> {
    type Rejection = DropInError<S>;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, DropInError<S>> {
        // The middleware has put it there.
        let client = parts.extensions.get::<Client>().copied().ok_or(ApiError::Internal)?;
        client::count_public_request(client, &state.limits, parts).await?;
        Ok(Self(PhantomData))
    }
}

impl<S: DropIn, T: DeserializeOwned + Send> FromRequestParts<AppState> for Segments<S, T> {
    type Rejection = DropInError<S>;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, DropInError<S>> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        // What is not UTF-8, or not the number of anything, names nothing.
        path.map(|Path(segments)| Self(segments, PhantomData)).map_err(|_malformed| ApiError::NotFound.into())
    }
}

impl<S: DropIn> FromRequestParts<AppState> for Parameters<S> {
    type Rejection = DropInError<S>;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, DropInError<S>> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let malformed = ApiError::InvalidRequest("The query is malformed.".into());
        pairs.map(|Query(pairs)| Self(pairs, PhantomData)).map_err(|_malformed| malformed.into())
    }
}

impl<S> Parameters<S> {
    /// A parameter that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    /// A parameter that is a number of at most `most`; larger ones count as that.
    ///
    /// # Errors
    /// It is not a whole number from 0.
    pub(super) fn number(&self, name: &'static str, most: usize) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ApiError::InvalidRequest(format!("`{name}` must be a whole number from 0.").into()));
        }
        Ok(Some(text.parse().unwrap_or(most).min(most)))
    }

    /// A parameter that is a time.
    ///
    /// # Errors
    /// It is not as in RFC 3339.
    pub(super) fn time(&self, name: &'static str) -> Result<Option<Timestamp>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        // In a query, `+` means a space.
        let parsed = text.replace(' ', "+").parse();
        parsed.map(Some).map_err(|_malformed| {
            ApiError::InvalidRequest(
                format!("`{name}` must be a time as in RFC 3339, such as 2026-11-24T10:00:00Z.").into(),
            )
        })
    }
}

impl<S: DropIn> FromRequest<AppState> for Body<S> {
    type Rejection = DropInError<S>;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, DropInError<S>> {
        let received = JsonObject::receive_optional(request, &state.config.http).await;
        Ok(Self(received.map_err(ApiError::from)?, PhantomData))
    }
}
