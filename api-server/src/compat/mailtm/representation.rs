//! The two forms that clients ask for by `Accept`: JSON-LD with Hydra collections, and plain JSON.

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tempmail_model::limits::PAGE_SIZE;

use super::Error;
use crate::state::AppState;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Representation {
    /// `application/ld+json`, unless plain JSON is asked for.
    Hydra,
    /// `application/json`.
    Plain,
}

impl FromRequestParts<AppState> for Representation {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Error> {
        Ok(Self::accepted(&parts.headers))
    }
}

impl Representation {
    fn accepted(headers: &HeaderMap) -> Self {
        let accepts = |media_type: &str| {
            let mut values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
            values.any(|value| value.split([',', ';']).any(|one| one.trim().eq_ignore_ascii_case(media_type)))
        };
        if accepts("application/json") && !accepts("application/ld+json") { Self::Plain } else { Self::Hydra }
    }

    /// The media type of an answer.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Hydra => "application/ld+json; charset=utf-8",
            Self::Plain => "application/json",
        }
    }

    /// The context of an object in JSON-LD.
    fn context(self, name: &str) -> Option<String> {
        (self == Self::Hydra).then(|| format!("/contexts/{name}"))
    }

    /// One object, with its fields of JSON-LD.
    pub(super) fn object(self, name: &str, object: Value) -> Response {
        self.answer(self.fields(name, object))
    }

    /// The fields of one object, in this form.
    pub(super) fn fields(self, name: &str, object: Value) -> Value {
        match self.context(name) {
            Some(context) => with_context(&context, object),
            None => plain(object),
        }
    }

    /// A page of a list that has `total` members.
    pub(super) fn collection(
        self,
        name: &str,
        path: &str,
        members: Vec<Value>,
        total: usize,
        page: i64,
    ) -> Response {
        let Some(context) = self.context(name) else {
            return self.answer(members.into_iter().map(plain).collect());
        };
        let mut collection = json!({
            "@context": context,
            "@id": path,
            "@type": "hydra:Collection",
            "hydra:totalItems": total,
            "hydra:member": members,
        });
        let last = i64::try_from(total).unwrap_or(i64::MAX).div_euclid(PAGE_SIZE)
            + i64::from(i64::try_from(total).unwrap_or(0) % PAGE_SIZE > 0);
        if last > 1 {
            let at = |page: i64| format!("{path}?page={page}");
            let mut view = json!({
                "@id": at(page),
                "@type": "hydra:PartialCollectionView",
                "hydra:first": at(1),
                "hydra:last": at(last),
            });
            if page > 1 {
                view["hydra:previous"] = at(page - 1).into();
            }
            if page < last {
                view["hydra:next"] = at(page + 1).into();
            }
            collection["hydra:view"] = view;
        }
        self.answer(collection)
    }

    fn answer(self, body: Value) -> Response {
        let mut response = Json(body).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type()));
        response
    }
}

fn with_context(context: &str, object: Value) -> Value {
    let mut whole = json!({"@context": context});
    if let (Some(whole), Value::Object(fields)) = (whole.as_object_mut(), object) {
        whole.extend(fields);
    }
    whole
}

/// An object without its fields of JSON-LD.
fn plain(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !name.starts_with('@'));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(value: &'static str) -> Representation {
        Representation::accepted(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))]))
    }

    #[test]
    fn is_plain_only_where_plain_json_is_asked_for() {
        assert_eq!(Representation::accepted(&HeaderMap::new()), Representation::Hydra);
        assert_eq!(accepted("*/*"), Representation::Hydra);
        assert_eq!(accepted("application/ld+json, application/json;q=0.5"), Representation::Hydra);
        assert_eq!(accepted("application/json, text/plain, */*"), Representation::Plain);
    }

    #[test]
    fn leaves_json_ld_out_of_plain_json() {
        let object = json!({"@id": "/x", "@type": "X", "id": "1"});
        assert_eq!(plain(object.clone()), json!({"id": "1"}));
        assert_eq!(with_context("/c", object)["@context"], "/c");
    }
}
