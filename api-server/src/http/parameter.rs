//! Parameters that many routes share: ids in the path, integers in the query.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;
use tempmail_model::limits::PAGES_MAX;
use uuid::Uuid;

use super::error::{ApiError, Surface};

/// The id in a path. Text that is not a UUID becomes the nil UUID, which no object has, so that it is
/// answered like every unknown id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathId(pub(crate) Uuid);

/// The message and the index of an attachment in a path.
#[derive(Debug, Clone)]
pub(crate) struct AttachmentPath {
    /// As [`PathId`].
    pub(crate) message: Uuid,
    /// Unparsed.
    pub(crate) index: String,
}

/// `page` of a list, from 1 to [`PAGES_MAX`], the first by default. Anything else is 400.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageNumber(pub(crate) i64);

/// `before` of a list of messages: the id of one of them. What is not an id is 400.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BeforeMessage(pub(crate) Option<Uuid>);

/// `limit` of a list, from 1. Anything else is 400.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageLimit(pub(crate) Option<i64>);

/// Why a parameter is rejected.
#[derive(Debug, PartialEq, Eq)]
enum InvalidParameter {
    Path,
    /// The query parameter of this name.
    Integer(&'static str),
    Page,
    Before,
}

impl InvalidParameter {
    /// The answer to the request with this path.
    fn respond(self, path: &str) -> Response {
        let sentence = match self {
            Self::Path => "The path must be UTF-8.".into(),
            Self::Integer(name) => format!("`{name}` must be an integer from 1, given once.").into(),
            Self::Page => format!("`page` must be an integer from 1 to {PAGES_MAX}, given once.").into(),
            Self::Before => "`before` must be the id of a message, given once.".into(),
        };
        ApiError::InvalidRequest(sentence).into_response_on(Surface::of_path(path))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let text: String = segments(parts, state).await?;
        Ok(Self(Uuid::try_parse(&text).unwrap_or_default()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for AttachmentPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let (message, index): (String, String) = segments(parts, state).await?;
        Ok(Self { message: Uuid::try_parse(&message).unwrap_or_default(), index })
    }
}

/// The variable segments of a path.
async fn segments<T: DeserializeOwned + Send, S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<T, Response> {
    let path = Path::<T>::from_request_parts(parts, state).await;
    path.map(|Path(segments)| segments).map_err(|_not_utf8| InvalidParameter::Path.respond(parts.uri.path()))
}

impl<S: Send + Sync> FromRequestParts<S> for PageNumber {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        match integer_parameter(&parts.uri, "page").map(|page| page.unwrap_or(1)) {
            Ok(page) if page <= PAGES_MAX => Ok(Self(page)),
            _ => Err(InvalidParameter::Page.respond(parts.uri.path())),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BeforeMessage {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let invalid = || InvalidParameter::Before.respond(parts.uri.path());
        let [before] = unique_query_parameters(&parts.uri, ["before"]).ok_or_else(invalid)?;
        let id = before.map(|text| Uuid::try_parse(&text)).transpose();
        id.map(Self).map_err(|_not_an_id| invalid())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PageLimit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let limit = integer_parameter(&parts.uri, "limit");
        limit.map(Self).map_err(|invalid| invalid.respond(parts.uri.path()))
    }
}

/// The query parameters of these names, each given once or not at all; others are ignored. `None`
/// where one of them is repeated, or the query is malformed.
pub(crate) fn unique_query_parameters<const N: usize>(
    uri: &Uri,
    names: [&str; N],
) -> Option<[Option<String>; N]> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    let mut texts = [const { None }; N];
    for (name, value) in pairs {
        if let Some(index) = names.iter().position(|known| *known == name)
            && texts[index].replace(value).is_some()
        {
            return None;
        }
    }
    Some(texts)
}

fn integer_parameter(uri: &Uri, name: &'static str) -> Result<Option<i64>, InvalidParameter> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|_malformed| InvalidParameter::Integer(name))?;
    parse_integer(&pairs, name)
}

/// A query parameter that must be an integer from 1, given once or not at all. Integers that do not
/// fit count as the largest one.
fn parse_integer(pairs: &[(String, String)], name: &'static str) -> Result<Option<i64>, InvalidParameter> {
    let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let Some(text) = values.next() else { return Ok(None) };
    let is_integer = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_integer || values.next().is_some() {
        return Err(InvalidParameter::Integer(name));
    }
    match text.parse().unwrap_or(i64::MAX) {
        0 => Err(InvalidParameter::Integer(name)),
        number => Ok(Some(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[&str]) -> Result<Option<i64>, InvalidParameter> {
        let pairs: Vec<_> = values.iter().map(|value| ("page".to_owned(), (*value).to_owned())).collect();
        parse_integer(&pairs, "page")
    }

    #[test]
    fn accepts_integers_from_1_given_once() {
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&["3"]), Ok(Some(3)));
        assert_eq!(parse(&["99999999999999999999"]), Ok(Some(i64::MAX)));
        for wrong in ["0", "00", "-1", "+1", "x", "", "1.5", " 1"] {
            assert_eq!(parse(&[wrong]), Err(InvalidParameter::Integer("page")), "{wrong:?}");
        }
        assert_eq!(parse(&["1", "1"]), Err(InvalidParameter::Integer("page")));
        assert_eq!(parse_integer(&[("other".into(), "x".into())], "page"), Ok(None));
    }
}
