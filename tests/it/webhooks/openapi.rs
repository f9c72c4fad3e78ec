//! The OpenAPI document describes the requests to webhooks.

use reqwest::Method;
use serde_json::{Value, json};

use super::{app_and_receiver, create_webhook};

#[tokio::test(flavor = "multi_thread")]
async fn documents_every_header_and_field_of_a_request_and_no_other() {
    let (app, receiver) = app_and_receiver().await;
    let document = app.request(Method::GET, "/openapi.json").send().await.expect(200);
    let described = &document["webhooks"]["email.received"]["post"];
    create_webhook(&app, &receiver.url()).await;
    app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "Hello", "").await;
    let request = receiver.wait_for_requests(1).await.remove(0);

    let documented = described["parameters"].as_array().unwrap().iter();
    let mut documented: Vec<String> =
        documented.map(|one| one["name"].as_str().unwrap().to_lowercase()).collect();
    let sent = request.headers.keys().map(ToString::to_string);
    let mut sent: Vec<String> = sent.filter(|name| name.contains("webhook-")).collect();
    documented.sort();
    sent.sort();
    assert_eq!(documented, sent);

    let mut schema = described["requestBody"]["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let event = request.event();
    assert!(validator.is_valid(&event), "{:?}", validator.iter_errors(&event).collect::<Vec<_>>());
    let fields = |schema: &str| document["components"]["schemas"][schema]["properties"].clone();
    assert_eq!(keys(&fields("EmailReceived")), keys(&event));
    assert_eq!(keys(&fields("ReceivedEmail")), keys(&event["data"]));
    assert!(!validator.is_valid(&json!({})), "every field is required");
}

fn keys(object: &Value) -> Vec<&String> {
    object.as_object().expect("an object").keys().collect()
}
