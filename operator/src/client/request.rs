//! What a request to the API server does, in the words of its roles.

use std::fmt;

use hyper::{Method, Uri};

/// A verb, and what it is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestInfo<'a> {
    verb: &'static str,
    /// Group, resource and subresource, such as `mailboxes.tempmail.dev/status`; the path where it is of no resource.
    resource: String,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
}

impl<'a> RequestInfo<'a> {
    /// What a request with this method and URI does. Paths are `/api/v1/…` and `/apis/<group>/<version>/…`, followed by
    /// `namespaces/<namespace>` for what is in one.
    pub(super) fn of(method: &Method, uri: &'a Uri) -> Self {
        let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, path) = match &*segments {
            ["api", _version, path @ ..] => ("", path),
            ["apis", group, _version, path @ ..] => (*group, path),
            _ => ("", &[][..]),
        };
        let (namespace, path) = match path {
            ["namespaces", namespace, path @ ..] if !path.is_empty() => (Some(*namespace), path),
            _ => (None, path),
        };
        let name = path.get(1).copied();
        let mut resource = path.first().copied().unwrap_or(uri.path()).to_owned();
        if !group.is_empty() && !path.is_empty() {
            resource = format!("{resource}.{group}");
        }
        if let Some(subresource) = path.get(2) {
            resource = format!("{resource}/{subresource}");
        }
        Self { verb: verb(method, uri, name.is_some()), resource, namespace, name }
    }
}

fn verb(method: &Method, uri: &Uri, names_object: bool) -> &'static str {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ if names_object => "get",
        _ if parameters.any(|parameter| parameter == "watch=true") => "watch",
        _ => "list",
    }
}

impl fmt::Display for RequestInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, namespace, name } = self;
        write!(f, "{verb} {resource}")?;
        match (namespace, name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " in {namespace}"),
            (None, Some(name)) => write!(f, " {name}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_verb_resource_and_object() {
        let group = "/apis/tempmail.dev/v1alpha1";
        for (method, uri, expected) in [
            (Method::GET, "/api/v1/namespaces/team-a/secrets/ci-token", "get secrets team-a/ci-token"),
            (Method::POST, "/api/v1/namespaces/team-a/secrets?dryRun=All", "create secrets in team-a"),
            (Method::GET, "/api/v1/namespaces/team-a", "get namespaces team-a"),
            (Method::GET, "/api/v1/namespaces?watch=true&limit=1", "watch namespaces"),
            (Method::GET, &format!("{group}/tenants?limit=1"), "list tenants.tempmail.dev"),
            (
                Method::PATCH,
                &format!("{group}/namespaces/team-a/mailboxes/signup/status"),
                "patch mailboxes.tempmail.dev/status team-a/signup",
            ),
            (
                Method::PUT,
                "/apis/coordination.k8s.io/v1/namespaces/home/leases/operator",
                "update leases.coordination.k8s.io home/operator",
            ),
            (Method::DELETE, &format!("{group}/tenants/acme"), "delete tenants.tempmail.dev acme"),
            (Method::GET, "/version", "list /version"),
        ] {
            let uri: Uri = uri.parse().expect("a URI");
            assert_eq!(RequestInfo::of(&method, &uri).to_string(), expected);
        }
    }
}
