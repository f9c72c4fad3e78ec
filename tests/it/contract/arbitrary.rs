//! Arbitrary bytes in every part of a request: no operation returns a 5xx, and every response is documented, which the
//! harness validates.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Map, Value};
use tempmail_tests::App;
use tempmail_tests::contract::{Operation, ParameterLocation, operations};
use tempmail_tests::http::{Request, percent};
use tokio::runtime::Handle;

use super::{
    Credentials, authorized_request, bare_request, full_request, is_long_poll, unknown_path, with_query,
};

/// Values per parameter of each operation.
const CASES: u32 = 12;

/// A long-poll without a response within this time waits, as it may.
const HELD: Duration = Duration::from_millis(200);

/// Sends a request with each of some generated values.
fn each<T: std::fmt::Debug>(
    values: impl Strategy<Value = T>,
    request: impl Fn(T) -> (&'static Operation, Request),
) {
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let tried = tokio::task::block_in_place(|| {
        runner.run(&values, |value| {
            let (operation, request) = request(value);
            Handle::current().block_on(assert_no_5xx(operation, request))
        })
    });
    if let Err(error) = tried {
        panic!("{error}");
    }
}

async fn assert_no_5xx(operation: &Operation, request: Request) -> Result<(), TestCaseError> {
    let request = if is_long_poll(operation) { request.timeout(HELD) } else { request };
    match request.try_send().await {
        Ok(answer) if answer.status < 500 => Ok(()),
        Ok(answer) => Err(TestCaseError::fail(format!("{} {}", operation.id, answer.status))),
        Err(error) if error.is_timeout() && is_long_poll(operation) => Ok(()),
        Err(error) => Err(TestCaseError::fail(format!("{} {error}", operation.id))),
    }
}

/// Percent-encoded bytes, most of them text.
fn encoded_bytes() -> impl Strategy<Value = String> {
    let short = prop::collection::vec(any::<u8>(), 1..40);
    let long = prop::collection::vec(any::<u8>(), 2_000);
    let encode = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("%{byte:02X}")).collect::<String>();
    prop_oneof![4 => short.prop_map(encode), 1 => long.prop_map(encode), 4 => text().prop_map(|t| percent(&t))]
}

/// Texts that have a special meaning in some syntax.
const SPECIAL: &[&str] = &[
    "0",
    "-1",
    "9999999999999999999999",
    "null",
    "true",
    "..",
    "*",
    "%",
    "'",
    "\\",
    "\u{0}",
    "\u{feff}",
    "a@b",
    "\"a b\"@inbox.localhost",
    "@a,@b:c@inbox.localhost",
    "a@[127.0.0.1]",
    "a@xn--a",
    "\u{130}@inbox.localhost",
    "{00000000-0000-7000-8000-000000000000}",
    "$1",
    "' OR 1=1 --",
    "\r\nX: y",
    "https://",
    "https://[::1]/",
];

/// Arbitrary characters, and special texts.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![2 => ".{1,40}", 1 => prop::sample::select(SPECIAL).prop_map(str::to_owned), 1 => "[ -~]{1,300}"]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let object = prop::collection::btree_map("[a-z]{1,8}", inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_no_5xx_to_arbitrary_bytes_in_a_path_segment() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for operation in operations() {
        for parameter in
            operation.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Path)
        {
            let good = unknown_path(operation);
            let index =
                operation.path.split('/').position(|part| part == format!("{{{}}}", parameter.name)).unwrap();
            each(encoded_bytes(), |value| {
                let mut segments: Vec<&str> = good.split('/').collect();
                segments[index] = &value;
                (operation, full_request(&app, operation, &credentials, &segments.join("/")))
            });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_no_5xx_to_arbitrary_bytes_in_a_query_parameter() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for operation in operations() {
        let path = unknown_path(operation);
        for parameter in
            operation.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Query)
        {
            each(encoded_bytes(), |value| {
                let path = with_query(&path, &format!("{}={value}", parameter.name));
                (operation, full_request(&app, operation, &credentials, &path))
            });
        }
        each("[!-~]{0,60}", |query| {
            (operation, full_request(&app, operation, &credentials, &with_query(&path, &query)))
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_no_5xx_to_arbitrary_json_in_a_body_field() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, body) in operations().iter().flat_map(|it| it.bodies.iter().map(move |body| (it, body))) {
        for field in body.schema["properties"].as_object().unwrap().keys() {
            each(json(), |value| {
                let mut fields = body.example.clone();
                fields[field] = value;
                (
                    operation,
                    credentials
                        .present(operation, bare_request(&app, operation, &unknown_path(operation)))
                        .json(&fields),
                )
            });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_no_5xx_to_an_arbitrary_body() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for operation in operations() {
        let any = prop::collection::vec(any::<u8>(), 0..200);
        let body = prop_oneof![any, json().prop_map(|value| value.to_string().into_bytes())];
        each(body, |body| {
            let request = authorized_request(&app, operation, &credentials);
            (operation, request.body("application/json", body))
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_no_5xx_to_arbitrary_credentials() {
    let app = App::start().await;
    let value = || prop::collection::vec(prop_oneof![32_u8..=126, 128_u8..=255], 0..120);
    for operation in operations() {
        let path = unknown_path(operation);
        each((value(), any::<bool>()), |(value, is_bearer)| {
            let prefix = if is_bearer { &b"Bearer "[..] } else { b"" };
            let bearer = [prefix, &value].concat();
            let request = bare_request(&app, operation, &path).header("authorization", bearer);
            (operation, request.header("x-api-token", value))
        });
    }
}
