//! Parameters that many routes have: an id in the path, integers in the query.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::{ApiError, Surface, V1Error};
use crate::state::AppState;

/// The id in a path. What is no UUID counts as the nil one, which nothing has: so it is answered
/// as every id that is not there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathId(pub(crate) Uuid);

/// The attachment that a path names.
#[derive(Debug, Clone)]
pub(crate) struct PathAttachment {
    /// As [`PathId`].
    pub(crate) message: Uuid,
    /// As it stands in the path.
    pub(crate) index: String,
}

/// `page` of a list, from 1, the first by default. Anything else is 400.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page(pub(crate) i64);

/// `limit` of a list, from 1. Anything else is 400.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(pub(crate) Option<i64>);

/// Why a parameter is refused.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Path,
    /// The query parameter of this name.
    Integer(&'static str),
}

impl Wrong {
    fn answer(self, surface: Surface) -> Response {
        let sentence = match self {
            Self::Path => "The path must be UTF-8.".to_owned(),
            Self::Integer(name) => format!("`{name}` must be an integer from 1, given once."),
        };
        match surface {
            Surface::Api => ApiError::InvalidRequest(sentence.into()).into_response(),
            Surface::V1 => V1Error::InvalidRequest.into_response(),
        }
    }
}

impl FromRequestParts<AppState> for PathId {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let text: String = segments(parts, state).await?;
        Ok(Self(Uuid::try_parse(&text).unwrap_or_default()))
    }
}

impl FromRequestParts<AppState> for PathAttachment {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let (message, index): (String, String) = segments(parts, state).await?;
        Ok(Self { message: Uuid::try_parse(&message).unwrap_or_default(), index })
    }
}

/// The variable segments of a path.
async fn segments<T: DeserializeOwned + Send>(parts: &mut Parts, state: &AppState) -> Result<T, Response> {
    let surface = Surface::of(parts.uri.path());
    let path = Path::<T>::from_request_parts(parts, state).await;
    path.map(|Path(segments)| segments).map_err(|_no_utf8| Wrong::Path.answer(surface))
}

impl FromRequestParts<AppState> for Page {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Response> {
        let page = of_query(parts, "page").map_err(|wrong| wrong.answer(Surface::of(parts.uri.path())))?;
        Ok(Self(page.unwrap_or(1)))
    }
}

impl FromRequestParts<AppState> for Limit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Response> {
        of_query(parts, "limit").map(Self).map_err(|wrong| wrong.answer(Surface::of(parts.uri.path())))
    }
}

/// The query parameters of these names, each given once or not at all; others are ignored. `None`
/// where one of them is there twice, or the query can't be read.
pub(crate) fn texts_of_query<const N: usize>(uri: &Uri, names: [&str; N]) -> Option<[Option<String>; N]> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    let mut texts = [const { None }; N];
    for (name, value) in pairs {
        if let Some(place) = names.iter().position(|known| *known == name)
            && texts[place].replace(value).is_some()
        {
            return None;
        }
    }
    Some(texts)
}

fn of_query(parts: &Parts, name: &'static str) -> Result<Option<i64>, Wrong> {
    let Query(pairs) =
        Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map_err(|_| Wrong::Integer(name))?;
    integer(&pairs, name)
}

/// A query parameter that is to be an integer from 1 on, once or not at all. However large it
/// is, it is one.
fn integer(pairs: &[(String, String)], name: &'static str) -> Result<Option<i64>, Wrong> {
    let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let Some(text) = values.next() else { return Ok(None) };
    let is_integer = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_integer || values.next().is_some() {
        return Err(Wrong::Integer(name));
    }
    match text.parse().unwrap_or(i64::MAX) {
        0 => Err(Wrong::Integer(name)),
        number => Ok(Some(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<Option<i64>, Wrong> {
        let pairs: Vec<_> = values.iter().map(|value| ("page".to_owned(), (*value).to_owned())).collect();
        integer(&pairs, "page")
    }

    #[test]
    fn integers_count_from_one() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["3"]), Ok(Some(3)));
        assert_eq!(of(&["99999999999999999999"]), Ok(Some(i64::MAX)));
        for wrong in ["0", "00", "-1", "+1", "x", "", "1.5", " 1"] {
            assert_eq!(of(&[wrong]), Err(Wrong::Integer("page")), "{wrong:?}");
        }
        assert_eq!(of(&["1", "1"]), Err(Wrong::Integer("page")));
        assert_eq!(integer(&[("other".into(), "x".into())], "page"), Ok(None));
    }
}
