//! The client of the API server, whose requests are counted, and logged where they are refused.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::{Method, Request, Response, StatusCode, Uri};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tokio::time::Instant;
use tower::Service;
use tower::layer::layer_fn;

/// The code of a request that was not answered, as in client-go's metrics.
const NO_ANSWER: &str = "<error>";

/// A client of the cluster of `KUBECONFIG`, `~/.kube/config` or the pod's service account, in this order.
///
/// # Errors
/// There is no such configuration, or it is invalid.
pub async fn kubernetes_client() -> kube::Result<Client> {
    let config = Config::infer().await.map_err(kube::Error::InferConfig)?;
    Ok(ClientBuilder::try_from(config)?.with_layer(&layer_fn(ObservedRequests)).build())
}

/// A service whose requests are counted and timed, under the names that client-go's metrics have. Each one that the API
/// server does not permit is logged.
#[derive(Debug)]
struct ObservedRequests<S>(S);

impl<S, B> Service<Request<Body>> for ObservedRequests<S>
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let (label, began) = (method_label(&method), Instant::now());
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = match &answer {
                Ok(answer) => answer.status().as_str().to_owned(),
                Err(_unanswered) => NO_ANSWER.to_owned(),
            };
            if let Ok(answer) = &answer
                && matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            {
                let (request, status) = (RequestInfo::of(&method, &uri), answer.status().as_u16());
                tracing::warn!(%request, status, "the API server refuses a request");
            }
            metrics::counter!("rest_client_requests_total", "method" => label, "code" => code).increment(1);
            metrics::histogram!("rest_client_request_duration_seconds", "verb" => label)
                .record(began.elapsed());
            answer
        })
    }
}

/// The methods of the operator's requests, and `other`.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// What a request to the API server does, in the words of its roles: a verb, and what it is about.
#[derive(Debug, PartialEq, Eq)]
struct RequestInfo<'a> {
    verb: &'static str,
    /// Group, resource and subresource, such as `mailboxes.tempmail.dev/status`; the path where it is of no resource.
    resource: String,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
}

impl<'a> RequestInfo<'a> {
    /// What a request with this method and URI does. Paths are `/api/v1/…` and `/apis/<group>/<version>/…`, followed by
    /// `namespaces/<namespace>` for what is in one.
    fn of(method: &Method, uri: &'a Uri) -> Self {
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
