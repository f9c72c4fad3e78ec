//! A collector of OpenTelemetry on loopback: keeps the spans that processes send over OTLP/HTTP.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A span that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedSpan {
    /// Its name.
    pub name: String,
    /// Id of the trace, in hexadecimal digits.
    pub trace: String,
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// Id of its parent; empty for a root.
    pub parent: String,
    /// Nanoseconds from its start to its end.
    pub duration: u64,
    /// Its attributes.
    pub attributes: BTreeMap<String, String>,
    /// Attributes of the process that sent it.
    pub resource: BTreeMap<String, String>,
}

/// A request that was received.
#[derive(Debug)]
struct ReceivedExport {
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

/// A collector, until it is dropped.
#[derive(Debug)]
pub struct SpanCollector {
    address: SocketAddr,
    exports: Arc<Mutex<Vec<ReceivedExport>>>,
    task: JoinHandle<()>,
}

impl SpanCollector {
    /// A collector at a free port.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start() -> Self {
        let exports = Arc::default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let router = Router::new().fallback(receive).with_state(Arc::clone(&exports));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("a listener accepts connections");
        });
        Self { address, exports, task }
    }

    /// What `telemetry.otlp_endpoint` is set to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Number of requests so far.
    pub fn request_count(&self) -> usize {
        self.exports.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// All that was received so far: paths, header fields and bodies.
    pub fn received_bytes(&self) -> Vec<u8> {
        let exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = |export: &ReceivedExport| {
            let head = format!("{} {:?}\n", export.uri, export.headers);
            [head.as_bytes(), &export.body[..]].concat()
        };
        exports.iter().flat_map(parts).collect()
    }

    /// The spans so far.
    ///
    /// # Panics
    /// A request is not one of OTLP for traces.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        let exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        exports.iter().flat_map(spans_of).collect()
    }
}

impl Drop for SpanCollector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An empty response is a valid one: all spans are accepted.
async fn receive(
    State(exports): State<Arc<Mutex<Vec<ReceivedExport>>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) {
    exports.lock().unwrap_or_else(PoisonError::into_inner).push(ReceivedExport { uri, headers, body });
}

fn spans_of(export: &ReceivedExport) -> Vec<ReceivedSpan> {
    assert_eq!(export.uri.path(), "/v1/traces");
    assert_eq!(export.headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(export.body.clone()).expect("a body of OTLP");
    let mut spans = Vec::new();
    for of_resource in request.resource_spans {
        let resource = attributes(of_resource.resource.expect("spans have a resource").attributes);
        for span in of_resource.scope_spans.into_iter().flat_map(|of_scope| of_scope.spans) {
            spans.push(ReceivedSpan {
                name: span.name,
                trace: hexadecimal(&span.trace_id),
                id: hexadecimal(&span.span_id),
                parent: hexadecimal(&span.parent_span_id),
                duration: span.end_time_unix_nano - span.start_time_unix_nano,
                attributes: attributes(span.attributes),
                resource: resource.clone(),
            });
        }
    }
    spans
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("an attribute is a text or a number: {other:?}"),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
