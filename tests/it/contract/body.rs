//! Request bodies of every operation, expected or not.

use serde_json::{Value, json};
use tempmail_tests::App;
use tempmail_tests::contract::{Operation, RequestBody, operations};

use super::{Credentials, authorized_request, bare_request, unknown_path};

const JSON: &str = "application/json";

fn with_body() -> impl Iterator<Item = (&'static Operation, &'static RequestBody)> {
    operations().iter().flat_map(|operation| operation.bodies.iter().map(move |body| (operation, body)))
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_content_length_over_64_kib_before_reading_the_body() {
    let app = App::start().await;
    for operation in operations() {
        let request =
            bare_request(&app, operation, &unknown_path(operation)).header("content-length", "65537");
        let answer = request.endless_body(JSON, "{").send().await;
        assert_eq!(answer.error(413), "payload_too_large", "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_body_over_64_kib_without_a_content_length() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, _) in with_body() {
        let request = authorized_request(&app, operation, &credentials);
        let answer = request.endless_body(JSON, " ".repeat(65_537)).send().await;
        assert_eq!(answer.error(413), "payload_too_large", "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_content_encoding() {
    let app = App::start().await;
    for operation in operations() {
        let request =
            bare_request(&app, operation, &unknown_path(operation)).header("content-encoding", "gzip");
        let answer = request.body(JSON, "{}").send().await;
        assert_eq!(answer.error(415), "unsupported_media_type", "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_content_encoding_that_is_none() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, body) in with_body() {
        for encoding in ["", "identity", "Identity, identity"] {
            let request =
                authorized_request(&app, operation, &credentials).header("content-encoding", encoding);
            let answer = request.json(&body.example).send().await;
            assert_ne!(answer.status, 415, "{} {encoding:?}", operation.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_no_media_type_but_json() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, body) in with_body() {
        for media_type in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
        {
            let request = authorized_request(&app, operation, &credentials);
            let answer = request.body(media_type, body.example.to_string()).send().await;
            assert_eq!(answer.error(415), "unsupported_media_type", "{} {media_type}", operation.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_out_on_an_unfinished_body() {
    let app = App::builder().config(|config| config.http.body_seconds = 1).start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    let requests = with_body().map(|(operation, _)| {
        let request = authorized_request(&app, operation, &credentials);
        async move { (operation, request.endless_body(JSON, "{").send().await) }
    });
    for (operation, answer) in futures_util::future::join_all(requests).await {
        assert_eq!(answer.error(408), "request_timeout", "{}", operation.id);
        assert_eq!(answer.header("connection"), "close");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_body_that_is_no_json_object() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, _) in with_body() {
        for body in [&b""[..], b"{", b"[7]", b"null", b"\"x\"", b"7", b"{} {}", b"{\"a\": \xff}", b"{'a': 1}"]
        {
            let request = authorized_request(&app, operation, &credentials);
            let answer = request.body(JSON, body).send().await;
            assert_eq!(answer.error(400), "invalid_request", "{} {body:?}", operation.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn skips_a_byte_order_mark() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, body) in with_body() {
        let request = authorized_request(&app, operation, &credentials);
        let answer = request.body(JSON, format!("\u{feff}{}", body.example)).send().await;
        assert_ne!(answer.status, 400, "{} {}", operation.id, answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_field_of_the_wrong_type() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, body) in with_body() {
        for (field, schema) in body.schema["properties"].as_object().unwrap() {
            for value in values_of_every_type() {
                if is_of_type(&value, &schema["type"]) {
                    continue;
                }
                let mut wrong = body.example.clone();
                wrong[field] = value;
                let request = authorized_request(&app, operation, &credentials);
                let answer = request.json(&wrong).send().await;
                assert_eq!(answer.status, 400, "{} {wrong} {}", operation.id, answer.text());
                assert_names_field(operation, &answer.json(), field);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requires_exactly_the_required_fields() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, body) in with_body() {
        let required = body.schema["required"].as_array().unwrap();
        for field in body.schema["properties"].as_object().unwrap().keys() {
            let mut without = body.example.clone();
            without.as_object_mut().unwrap().remove(field);
            let request = authorized_request(&app, operation, &credentials);
            let answer = request.json(&without).send().await;
            // Exactly one of three fields, which a schema says in words.
            let is_scope = operation.id == "waitForEmail" && field == "address";
            if is_scope || required.iter().any(|name| name == field) {
                assert_eq!(answer.error(400), "invalid_request", "{} {without}", operation.id);
                assert_names_field(operation, &answer.json(), field);
            } else {
                assert_ne!(answer.status, 400, "{} {without} {}", operation.id, answer.text());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ignores_unknown_fields() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, body) in with_body() {
        let mut more = body.example.clone();
        more["x-unknown"] = json!({"deep": [1, null]});
        let request = authorized_request(&app, operation, &credentials);
        let answer = request.json(&more).send().await;
        assert_ne!(answer.status, 400, "{} {}", operation.id, answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_the_documented_examples() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, body) in with_body() {
        let request = authorized_request(&app, operation, &credentials);
        let answer = request.json(&body.example).send().await;
        assert!(![400, 415].contains(&answer.status), "{} {}", operation.id, answer.text());
    }
}

fn values_of_every_type() -> [Value; 7] {
    [json!(null), json!(true), json!(7), json!(1.5), json!("x"), json!([[]]), json!({"a": 1})]
}

fn is_of_type(value: &Value, types: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    };
    match types {
        Value::Array(types) => types.iter().filter_map(Value::as_str).any(is),
        Value::String(name) => is(name),
        other => panic!("{other} is not a type"),
    }
}

/// On `/v1` an error has no message.
fn assert_names_field(operation: &Operation, error: &Value, field: &str) {
    if !operation.path.starts_with("/v1/") {
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{field}`")), "{} {message}", operation.id);
    }
}
