//! Requests to an API server, as it understands them.

use hyper::body::Bytes;
use hyper::{Method, Uri};

/// Resources whose objects come and go without anybody's doing, or are not kept: leases, events,
/// and questions that are asked by POST.
const PASSING: [&str; 2] = ["leases", "events"];
const QUESTIONS: &str = "reviews";

/// What a request does, in the words of RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads an object, or what is no resource.
    Get,
    /// Reads all objects of a kind.
    List,
    /// Follows objects of a kind.
    Watch,
    /// Makes an object.
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
    /// What it does.
    pub verb: Verb,
    /// Its path.
    pub path: String,
    /// Its query, without the question mark.
    pub query: String,
    /// API group; empty for the core.
    pub group: String,
    /// Such as `secrets`; empty for what is no resource.
    pub resource: String,
    /// Such as `status`.
    pub subresource: Option<String>,
    /// Namespace of the objects.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: Option<String>,
    /// Its body, as it came.
    pub body: Bytes,
    /// Status of the answer, from the API server or from the test. `None` while there is none.
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

    /// Whether it may change anything.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, Verb::Get | Verb::List | Verb::Watch)
    }

    /// Whether it may change something that stays.
    pub(super) fn is_lasting_write(&self) -> bool {
        let passes = PASSING.contains(&self.resource.as_str()) || self.resource.ends_with(QUESTIONS);
        self.is_write() && !passes
    }
}

/// `rest` is the resource and what follows it.
fn verb(method: &Method, query: &str, rest: &[&str]) -> Verb {
    let names_one = rest.len() != 1;
    let watches = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1" | "watch"));
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if names_one => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ if watches => Verb::Watch,
        _ if names_one => Verb::Get,
        _ => Verb::List,
    }
}
