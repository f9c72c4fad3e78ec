//! Requests of tools to the router of this process, in the name of the client that called the tool.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Request};
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tempmail_client::{Answer, Transport, TransportError};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use crate::http::client::PeerAddr;
use crate::http::error::ApiError;

/// Bytes of an answer that a tool reads.
const ANSWER_MAX: usize = 4 << 20;
/// Answers that are read at the same time; they are in memory until the tool has what it needs of them.
const ANSWERS: usize = 16;

/// What says who the client is and which host it named.
const OF_CLIENT: [HeaderName; 2] = [HOST, HeaderName::from_static("x-forwarded-for")];

/// Makes transports to one router.
#[derive(Clone)]
pub(super) struct Transports {
    router: Router,
    answers: Arc<Semaphore>,
}

impl Transports {
    pub(super) fn new(router: Router) -> Self {
        Self { router, answers: Arc::new(Semaphore::new(ANSWERS)) }
    }

    /// A transport for the tools that one request calls.
    ///
    /// # Errors
    /// [`ApiError::Internal`]: the request has no peer, which the connection gave it.
    pub(super) fn for_request(&self, parts: &Parts) -> Result<InProcess, ApiError> {
        let peer = *parts.extensions.get::<PeerAddr>().ok_or(ApiError::Internal)?;
        let mut headers = HeaderMap::new();
        for name in OF_CLIENT {
            for value in parts.headers.get_all(&name) {
                headers.append(name.clone(), value.clone());
            }
        }
        Ok(InProcess { transports: self.clone(), peer, headers })
    }
}

/// Sends requests as the client of one request of the protocol.
pub(super) struct InProcess {
    transports: Transports,
    peer: PeerAddr,
    headers: HeaderMap,
}

impl InProcess {
    async fn exchange(&self, request: Request<Bytes>) -> Result<Answer, TransportError> {
        let mut request = request.map(Body::from);
        request.extensions_mut().insert(self.peer);
        request.headers_mut().extend(self.headers.clone());
        let Ok(response) = self.transports.router.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        // Never closed.
        let _permit = self.transports.answers.acquire().await;
        let body = Limited::new(body, ANSWER_MAX).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return TransportError::TooLarge { limit: ANSWER_MAX };
            }
            TransportError::Unreachable { reason: "the answer is incomplete".into(), connected: true }
        })?;
        Ok(Answer { status: parts.status, headers: parts.headers, body: body.to_bytes() })
    }
}

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Answer, TransportError>> {
        Box::pin(self.exchange(request))
    }
}
