//! Requests to an API server, parsed as it parses them.

use hyper::body::Bytes;
use hyper::{Method, Uri};

/// Resources that an operator writes at any time, whatever the test does.
const EPHEMERAL: [&str; 2] = ["leases", "events"];
/// End of the names of resources that are queried by POST and not stored, such as
/// `subjectaccessreviews`.
const REVIEWS: &str = "reviews";

/// Verb of a request, as RBAC names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads an object, or a path that is not a resource.
    Get,
    /// Reads all objects of a kind.
    List,
    /// Watches objects of a kind.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes part of an object, or applies one.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes all objects of a kind.
    DeleteCollection,
}

/// A request of the program.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// Its verb.
    pub verb: Verb,
    /// Its path.
    pub path: String,
    /// Its query, without the question mark.
    pub query: String,
    /// API group; empty for the core.
    pub group: String,
    /// Such as `secrets`; empty for a path that is not a resource.
    pub resource: String,
    /// Such as `status`.
    pub subresource: Option<String>,
    /// Namespace of the objects.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: Option<String>,
    /// Its body.
    pub body: Bytes,
    /// Status of the response, from the API server or from the test; `None` until there is one.
    pub status: Option<u16>,
}

impl ApiRequest {
    pub(super) fn new(method: &Method, uri: &Uri, body: Bytes) -> Self {
        let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, rest) = match segments[..] {
            ["api", _version, ref rest @ ..] => ("", rest),
            ["apis", group, _version, ref rest @ ..] => (group, rest),
            _ => ("", [].as_slice()),
        };
        let (namespace, rest) = match *rest {
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, _, ..] => (Some(namespace), &rest[2..]),
            _ => (None, rest),
        };
        let text = |index: usize| rest.get(index).map(|&segment| segment.to_owned());
        let query = uri.query().unwrap_or_default();
        Self {
            verb: verb(method, query, rest),
            path: uri.path().to_owned(),
            query: query.to_owned(),
            group: group.to_owned(),
            resource: text(0).unwrap_or_default(),
            name: text(1),
            subresource: text(2),
            namespace: namespace.map(str::to_owned),
            body,
            status: None,
        }
    }

    /// Whether it may change an object.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, Verb::Get | Verb::List | Verb::Watch)
    }

    /// Whether it may change an object other than a lease or an event.
    pub(super) fn is_persistent_write(&self) -> bool {
        let is_ephemeral = EPHEMERAL.contains(&self.resource.as_str()) || self.resource.ends_with(REVIEWS);
        self.is_write() && !is_ephemeral
    }
}

/// `rest` is the resource and what follows it.
fn verb(method: &Method, query: &str, rest: &[&str]) -> Verb {
    let names_object = rest.len() != 1;
    let watches = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1" | "watch"));
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if names_object => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ if watches => Verb::Watch,
        _ if names_object => Verb::Get,
        _ => Verb::List,
    }
}
