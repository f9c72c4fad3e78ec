use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::request::MailMatch;
use crate::transport::{Answer, Transport, TransportError};

type Step = Result<Answer, TransportError>;

/// Answers one request after the other, and records them.
#[derive(Default)]
struct ScriptedTransport {
    steps: Mutex<VecDeque<Step>>,
    /// Path, token and body.
    requests: Mutex<Vec<(String, String, Value)>>,
}

impl Transport for ScriptedTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Step> {
        let token = request.headers()["x-api-token"].to_str().unwrap().to_owned();
        let body = serde_json::from_slice(request.body()).unwrap_or_default();
        lock(&self.requests).push((request.uri().to_string(), token, body));
        let step = lock(&self.steps).pop_front().unwrap_or_else(|| no_mail("end"));
        Box::pin(std::future::ready(step))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(status: u16, body: &Value) -> Step {
    let status = StatusCode::from_u16(status).unwrap();
    Ok(Answer { status, headers: HeaderMap::new(), body: body.to_string().into() })
}

fn no_mail(cursor: &str) -> Step {
    let headers = [("x-next-since", cursor)]
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    Ok(Answer { status: StatusCode::NO_CONTENT, headers: headers.into_iter().collect(), body: Bytes::new() })
}

fn cut(connected: bool) -> Step {
    Err(TransportError::Unreachable { reason: "cut".into(), connected })
}

fn mail(cursor: &str, codes: &[&str], links: &[&str]) -> Step {
    let codes = codes
        .iter()
        .map(|code| json!({"code": code, "confidence": 0.9, "source": "text", "reason": "r"}))
        .collect::<Vec<_>>();
    let links = links
        .iter()
        .map(|url| {
            json!({"url": url, "kind": "confirm", "text": "t", "host": "h", "host_matches_from": true,
                   "confidence": 0.9, "source": "html", "reason": "r"})
        })
        .collect::<Vec<_>>();
    let email = json!({"id": "1", "address": "a@b.example", "from_email": "c@d.example", "subject": "s",
                       "created_at": "2026-11-24T10:00:00.000Z", "size": 7});
    answer(200, &json!({"email": email, "codes": codes, "links": links, "next_since": cursor}))
}

fn token(digit: char) -> String {
    format!("tm_live_{}", digit.to_string().repeat(64))
}

fn scripted(steps: impl IntoIterator<Item = Step>) -> (Client, Arc<ScriptedTransport>) {
    let transport = Arc::new(ScriptedTransport::default());
    lock(&transport.steps).extend(steps);
    (Client::new(transport.clone(), LiveToken::parse(&token('a')).unwrap()), transport)
}

fn request() -> WaitRequest {
    WaitRequest::new(Scope::Address("a@b.example".into()))
}

fn cursors(transport: &ScriptedTransport) -> Vec<Value> {
    lock(&transport.requests).iter().map(|(_, _, body)| body["since"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn goes_on_from_the_cursor_of_a_call_without_mail() {
    let (client, transport) = scripted([no_mail("1"), no_mail("2"), mail("3", &[], &[])]);
    let outcome = client.wait(&request(), Duration::from_secs(600)).await.unwrap();
    assert!(matches!(outcome, WaitOutcome::Found(found) if found.next_since == "3"));
    assert_eq!(cursors(&transport), [Value::Null, "1".into(), "2".into()]);
    assert!(
        lock(&transport.requests).iter().all(|(path, _, body)| path == "/v1/wait" && body["timeout"] == 50)
    );
}

#[tokio::test(start_paused = true)]
async fn repeats_a_call_that_was_cut_with_the_same_cursor() {
    let (client, transport) = scripted([no_mail("1"), cut(true), cut(false), mail("2", &[], &[])]);
    client.wait(&request(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(cursors(&transport), [Value::Null, "1".into(), "1".into(), "1".into()]);
}

#[tokio::test(start_paused = true)]
async fn fails_at_once_where_there_never_was_a_server() {
    let (client, transport) = scripted([cut(false)]);
    let error = client.wait(&request(), Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { connected: false, .. }));
    assert_eq!(lock(&transport.requests).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn ends_with_the_cursor_that_it_reached() {
    let (client, transport) = scripted([no_mail("1")]);
    let outcome = client.wait(&request(), Duration::ZERO).await.unwrap();
    assert!(matches!(outcome, WaitOutcome::Nothing { next_since } if next_since == "1"));
    let requests = lock(&transport.requests);
    assert!(requests.len() == 1 && requests[0].2["timeout"] == 0, "it looks once");
}

#[tokio::test(start_paused = true)]
async fn repeats_what_is_refused_for_now_and_nothing_else() {
    let busy = || answer(503, &json!({"error": "unavailable"}));
    let (client, _) =
        scripted([busy(), answer(429, &json!({"error": "rate_limit_exceeded"})), mail("1", &[], &[])]);
    assert!(client.wait(&request(), Duration::ZERO).await.is_ok());
    let (client, transport) = scripted([answer(404, &json!({"error": "not_found"}))]);
    let error = client.wait(&request(), Duration::from_secs(60)).await.unwrap_err();
    assert_eq!((error.code(), lock(&transport.requests).len()), ("not_found", 1));
    let (client, _) = scripted(std::iter::repeat_with(busy).take(1_000));
    assert!(client.wait(&request(), Duration::from_secs(60)).await.unwrap_err().is_unavailable());
}

#[tokio::test(start_paused = true)]
async fn mints_a_token_where_that_of_the_client_has_another_wait_open() {
    let busy = || answer(429, &json!({"error": "token_busy"}));
    let minted = answer(201, &json!({"token": token('b'), "since": "7", "address": "a@b.example"}));
    let (client, transport) = scripted([busy(), minted, mail("1", &[], &[])]);
    client.wait(&request(), Duration::from_secs(60)).await.unwrap();
    let requests = lock(&transport.requests).clone();
    let paths: Vec<_> = requests.iter().map(|(path, token, _)| (path.as_str(), &token[8..9])).collect();
    assert_eq!(paths, [("/v1/wait", "a"), ("/v1/tokens", "a"), ("/v1/wait", "b")]);
    assert_eq!(requests[1].2, json!({"address": "a@b.example", "expires_in_seconds": 90}));

    let refused = answer(403, &json!({"error": "token_limit_reached"}));
    let (client, transport) = scripted([busy(), refused, mail("1", &[], &[])]);
    client.wait(&request(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(lock(&transport.requests).len(), 3, "it waits for its turn");
}

#[tokio::test(start_paused = true)]
async fn passes_over_mail_whose_code_may_not_be_handed_on() {
    let (client, transport) =
        scripted([mail("1", &["12 34", "$(id)"], &[]), mail("2", &["!", "4829-13"], &[])]);
    let mut request = request();
    request.matching = MailMatch { subject: Some("code".into()), ..MailMatch::default() };
    let WaitOutcome::Found(found) = client.wait_for_code(&request, Duration::from_secs(60)).await.unwrap()
    else {
        panic!("there is a code")
    };
    assert_eq!((found.code.as_str(), found.next_since.as_str()), ("4829-13", "2"));
    assert_eq!(cursors(&transport), [Value::Null, "1".into()]);
    assert_eq!(lock(&transport.requests)[0].2["match"], json!({"subject": "code", "has": ["code"]}));
}

#[tokio::test(start_paused = true)]
async fn refuses_links_to_other_hosts() {
    let hosts = ["good.example".to_owned()];
    let filter = LinkFilter::new(None, &hosts).unwrap();
    let (client, _) =
        scripted([mail("1", &[], &["https://evil.example/?good.example", "https://good.example/v"])]);
    let outcome = client.wait_for_link(&request(), &filter, Duration::ZERO).await.unwrap();
    let WaitOutcome::Found(LinkOutcome::Found(found)) = outcome else {
        panic!("one leads there: {outcome:?}")
    };
    assert_eq!(
        (found.link.url.as_str(), found.link.host.as_str()),
        ("https://good.example/v", "good.example")
    );

    let (client, _) = scripted([mail("1", &[], &["https://evil.example/?good.example"])]);
    let outcome = client.wait_for_link(&request(), &filter, Duration::from_secs(60)).await.unwrap();
    let WaitOutcome::Found(LinkOutcome::OtherHost { hosts, .. }) = outcome else {
        panic!("none does: {outcome:?}")
    };
    assert_eq!(hosts, ["evil.example"]);
}
