//! Traces: the span of each stage that a message passes, as a collector of OpenTelemetry gets them.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use tempmail_tests::fleet::FleetBuilder;
use tempmail_tests::port::free_port;
use tempmail_tests::receiver::ReceivedRequest;
use tempmail_tests::span_collector::ReceivedSpan;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{EventStream, Fleet, Receiver, RedisServer, SpanCollector, WebSocket, send_mail};
use uuid::Uuid;

const ADDRESS: &str = "kanarek-localpart@inbox.localhost";
const SENDER: &str = "kanarek-sender@client.example";

/// The trace context that the clients send, in requests and in the mail.
const FOREIGN_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A mail to a mailbox with a webhook, for which a long-poll, an event stream and a WebSocket wait.
struct Journey {
    collector: SpanCollector,
    message: Uuid,
    delivery: ReceivedRequest,
    secrets: Vec<String>,
}

impl Journey {
    /// Returns once the mail is everywhere, and the span of each stage at the collector.
    async fn make() -> Self {
        let (redis, collector, receiver) =
            (RedisServer::new(), SpanCollector::start().await, Receiver::start().await);
        let fleet = one_of_each().redis(&redis.url()).receivers();
        let fleet = fleet.config(|config| config.telemetry.otlp_endpoint = Some(collector.url()));
        let fleet = fleet.start().await;
        let (pro, live) = (fleet.tenant.pro.clone(), fleet.tenant.live.clone());
        let ask =
            |method: Method, path: &str| fleet.request(0, method, path).header("traceparent", TRACEPARENT);

        let mailbox = fleet.mailbox(Some(&pro), ADDRESS).await;
        let webhook = json!({ "url": receiver.url(), "events": ["email.received"] });
        let webhook = ask(Method::POST, "/pro/api/webhooks").bearer(&pro).json(&webhook).send().await;
        let webhook = webhook.expect(201);

        let long_poll = tokio::spawn(ask(Method::GET, &format!("/v1/inbox/{ADDRESS}")).live(&live).send());
        let mut events = EventStream::open(ask(Method::GET, "/v1/sse/user").live(&live)).await;
        let mut socket = WebSocket::authenticated(fleet.http(0), &mailbox.jwt).await;
        eventually("all three wait", || async {
            (fleet.api(0).metric("tempmail_subscribers").await > 2.0).then_some(())
        })
        .await;

        let mail = format!(
            "From: {SENDER}\r\nSubject: kanarek-subject\r\nTraceparent: {TRACEPARENT}\r\n\r\nkanarek-body\r\n"
        );
        let reply = send_mail(fleet.smtp(0), SENDER, ADDRESS, mail.as_bytes()).await;
        assert_eq!(reply.code, 250, "{reply:?}");
        let answer = within_deadline("an answer", long_poll).await.unwrap().expect(200);
        let message: Uuid = answer["emails"][0]["id"].as_str().unwrap().parse().unwrap();
        events.next().await;
        socket.next_json().await;
        let delivery = receiver.wait_for_requests(1).await.remove(0);
        eventually("a span of each stage", || async { has_each_stage(&collector.spans()).then_some(()) })
            .await;

        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let secrets = vec![pro, live, mailbox.jwt, mailbox.password, text(&webhook["secret"])];
        Self { collector, message, delivery, secrets }
    }
}

/// Whether there is a span of each stage, and of the answers to the stream and to the socket. The long-poll counts as a
/// subscriber before its first read, which may find the mail: then it has not waited.
fn has_each_stage(spans: &[ReceivedSpan]) -> bool {
    let of = |name: &str| spans.iter().any(|span| span.name == name);
    let answered = |surface: &str| {
        spans
            .iter()
            .any(|span| span.attributes.get("tempmail.answer.surface").is_some_and(|it| it == surface))
    };
    ["batch", "hint", "smtp.transaction", "webhook.delivery"].into_iter().all(of)
        && answered("event_stream")
        && answered("websocket")
}

fn one_of_each() -> FleetBuilder {
    Fleet::builder().apis(1).ingests(1).workers(1)
}

/// Asserts that the span has these attributes, besides the message's id.
fn assert_attributes(span: &ReceivedSpan, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(span.attributes.get(*key).map(String::as_str), Some(*value), "{key} of {span:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_a_message_through_all_processes_under_its_id() {
    let journey = Journey::make().await;
    let spans = journey.collector.spans();
    let stages: BTreeSet<(&str, &str)> =
        spans.iter().map(|span| (span.name.as_str(), span.resource["tempmail.role"].as_str())).collect();
    let expected = [
        ("answer", "api"),
        ("batch", "ingest"),
        ("hint", "api"),
        ("smtp.transaction", "ingest"),
        ("webhook.delivery", "worker"),
    ];
    assert_eq!(stages, BTreeSet::from(expected));

    let of = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let root = of("smtp.transaction");
    assert_eq!(root.parent, "");
    for span in &spans {
        assert_eq!(span.trace, journey.message.simple().to_string(), "{span:?}");
        assert_eq!(span.attributes["tempmail.message.id"], journey.message.to_string());
        assert_eq!(span.resource["service.name"], "tempmail");
        assert!(span == root || span.parent == root.id, "{span:?}");
    }
    let instances: BTreeSet<&str> =
        spans.iter().map(|span| span.resource["service.instance.id"].as_str()).collect();
    assert_eq!(instances.len(), 3, "one for each process");
    assert!(root.duration >= of("batch").duration, "the transaction waits for the batch");

    assert_attributes(root, &[("tempmail.smtp.reply_code", "250"), ("tempmail.smtp.recipients", "1")]);
    assert_attributes(of("batch"), &[("tempmail.batch.mails", "1")]);
    assert_attributes(
        of("webhook.delivery"),
        &[("tempmail.webhook.attempt", "1"), ("http.response.status_code", "204")],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_no_trace_context_from_clients_and_sends_none_to_receivers() {
    let journey = Journey::make().await;
    for span in journey.collector.spans() {
        assert_ne!(span.trace, FOREIGN_TRACE, "{span:?}");
    }
    let received = String::from_utf8_lossy(&journey.collector.received_bytes()).into_owned();
    assert!(!received.contains(FOREIGN_TRACE));
    for name in ["traceparent", "tracestate", "baggage", "b3"] {
        assert!(!journey.delivery.headers.contains_key(name), "{:?}", journey.delivery.headers);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_have_no_addresses_no_content_and_no_secrets() {
    let journey = Journey::make().await;
    let received = journey.collector.received_bytes();
    let contains = |text: &str| received.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(contains(&journey.message.to_string()), "what is looked for is found");
    let words = ["kanarek", "inbox.localhost", "client.example", "Traceparent"];
    for word in words.into_iter().chain(journey.secrets.iter().map(String::as_str)) {
        assert!(!contains(word), "{word}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_and_answers_mail_while_the_collector_is_unreachable() {
    let fleet = one_of_each().workers(0);
    let nowhere = format!("http://{}", free_port());
    let fleet = fleet.config(|config| config.telemetry.otlp_endpoint = Some(nowhere)).start().await;
    fleet.mailbox(Some(&fleet.tenant.pro), ADDRESS).await;
    let inbox = format!("/v1/inbox/{ADDRESS}");
    let ask = || fleet.request(0, Method::GET, &inbox).live(&fleet.tenant.live);
    fleet.deliver(0, ADDRESS, "first").await;
    assert_eq!(ask().send().await.expect(200)["emails"][0]["subject"], "first");
    let warnings = || fleet.ingest(0).log().matches("the collector of traces does not take spans").count();
    eventually("it is logged", || async { (warnings() > 0).then_some(()) }).await;
    let metrics = fleet.ingest(0).metrics().await;
    assert!(metrics.contains("tempmail_spans_total{result=\"failed\"}"), "{metrics}");

    // What is left is sent at the end, which fails once more.
    fleet.deliver(0, ADDRESS, "second").await;
    assert_eq!(ask().send().await.expect(200)["emails"][0]["subject"], "second");
    assert!(fleet.ingest(0).terminate().await.status.success());
    assert_eq!(warnings(), 1, "{}", fleet.ingest(0).log());
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_spans_only_to_a_collector_that_is_configured() {
    let collector = SpanCollector::start().await;
    // Where OpenTelemetry would send spans to by itself.
    let fleet = one_of_each().workers(0).env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()).start().await;
    fleet.deliver(0, "any@inbox.localhost", "untraced").await;
    for process in fleet.processes() {
        assert!(process.terminate().await.status.success());
    }
    assert_eq!(collector.request_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_the_last_spans_when_the_process_ends() {
    let collector = SpanCollector::start().await;
    let fleet = one_of_each().workers(0);
    let fleet = fleet.config(|config| config.telemetry.otlp_endpoint = Some(collector.url())).start().await;
    for number in 0..20 {
        fleet.deliver(0, "any@inbox.localhost", &number.to_string()).await;
    }
    assert!(fleet.ingest(0).terminate().await.status.success());
    let transactions = collector.spans().into_iter().filter(|span| span.name == "smtp.transaction").count();
    assert_eq!(transactions, 20);
}
