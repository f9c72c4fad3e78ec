//! The client of the API server, whose requests are counted, and logged where they are refused.

mod request;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::{Method, Request, Response, StatusCode};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tokio::time::Instant;
use tower::Service;
use tower::layer::layer_fn;

use self::request::RequestInfo;

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
