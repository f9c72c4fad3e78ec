//! Every parameter of every operation.

use jiff::SignedDuration;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_tests::App;
use tempmail_tests::contract::{Operation, Parameter, ParameterLocation, operations};

use super::{Credentials, full_request, is_long_poll, unknown_path, with_query};

fn parameters(place: ParameterLocation) -> impl Iterator<Item = (&'static Operation, &'static Parameter)> {
    let all = operations()
        .iter()
        .flat_map(|operation| operation.parameters.iter().map(move |parameter| (operation, parameter)));
    all.filter(move |(_, parameter)| parameter.location == place)
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_integers_below_one_and_repeated_parameters() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, parameter) in parameters(ParameterLocation::Query) {
        if parameter.schema["type"] != "integer" {
            continue;
        }
        let (path, name) = (unknown_path(operation), &parameter.name);
        let wrong = ["0", "-1", "x", "", "1.5", "1e3", "+1", "%2B1", "%201", "0x1", "%D9%A1", "%FF", "null"];
        let mut queries: Vec<String> = wrong.iter().map(|value| format!("{name}={value}")).collect();
        queries.push(format!("{name}=1&{name}=1"));
        for query in queries {
            let answer = full_request(&app, operation, &credentials, &with_query(&path, &query)).send().await;
            assert_eq!(answer.error(400), "invalid_request", "{} {query}", operation.id);
        }
        for good in ["1", "007", "2147483648", "9223372036854775807", "99999999999999999999999999"] {
            // A long-poll for more mail than there is would wait.
            if is_long_poll(operation) && name == "count" && good != "1" {
                continue;
            }
            let answer =
                full_request(&app, operation, &credentials, &with_query(&path, &format!("{name}={good}")))
                    .send()
                    .await;
            let maximum = parameter.schema["maximum"].as_u64();
            if maximum.is_some_and(|maximum| good.parse::<u64>().map_or(true, |value| value > maximum)) {
                assert_eq!(answer.error(400), "invalid_request", "{} {name}={good}", operation.id);
                continue;
            }
            assert!([200, 404].contains(&answer.status), "{} {name}={good} {}", operation.id, answer.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_invalid_cursor() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, parameter) in
        parameters(ParameterLocation::Query).filter(|(_, parameter)| parameter.name == "since")
    {
        for cursor in ["", "00", "x", "%FF%00", &"A".repeat(5000)] {
            let path = with_query(&unknown_path(operation), &format!("{}={cursor}", parameter.name));
            let answer = full_request(&app, operation, &credentials, &path).send().await;
            assert_eq!(answer.error(400), "invalid_request", "{} {cursor}", operation.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ignores_unknown_query_parameters() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for operation in operations() {
        let path = with_query(&unknown_path(operation), "x-unknown=%FF&x-unknown=1&=&&%00");
        let answer = full_request(&app, operation, &credentials, &path).send().await;
        assert_ne!(answer.status, 400, "{} {}", operation.id, answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_path_segment_that_is_not_utf_8() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, parameter) in parameters(ParameterLocation::Path) {
        let good = unknown_path(operation);
        let place =
            operation.path.split('/').position(|part| part == format!("{{{}}}", parameter.name)).unwrap();
        let mut segments: Vec<&str> = good.split('/').collect();
        segments[place] = "%FF";
        let answer = full_request(&app, operation, &credentials, &segments.join("/")).send().await;
        assert_eq!(answer.error(400), "invalid_request", "{} {}", operation.id, parameter.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_an_unknown_id() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    let recent = new_id(app.clock.now()).to_string();
    let ids = [recent.as_str(), "00000000-0000-0000-0000-000000000000", "x", "%00", "-1", "..%2F..", "%20"];
    for (operation, _) in parameters(ParameterLocation::Path).filter(|(_, parameter)| parameter.name == "id")
    {
        for id in ids {
            let path = operation.path_with(|name| if name == "id" { id } else { "0" }.to_owned());
            let answer = full_request(&app, operation, &credentials, &path).send().await;
            assert_eq!(answer.error(404), "not_found", "{} {id}", operation.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_410_for_a_message_id_past_its_retention() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    let old = new_id(app.clock.now() - SignedDuration::from_hours(2));
    for operation in operations().iter().filter(|operation| operation.fails_with("email_expired")) {
        if operation.parameters.iter().any(|parameter| parameter.name == "before") {
            // What is listed before a message is that of one mailbox.
            continue;
        }
        let path = operation.path_with(|name| if name == "id" { old.to_string() } else { "0".to_owned() });
        let answer = full_request(&app, operation, &credentials, &path).send().await;
        assert_eq!(answer.error(410), "email_expired", "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_400_for_a_malformed_address_and_404_for_an_unserved_one() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for (operation, _) in
        parameters(ParameterLocation::Path).filter(|(_, parameter)| parameter.name == "address")
    {
        for (address, status, code) in [
            ("nobody", 400, "invalid_request"),
            ("@inbox.localhost", 400, "invalid_request"),
            ("a%00b@inbox.localhost", 400, "invalid_request"),
            ("nobody@elsewhere.example", 404, "not_found"),
            ("admin@inbox.localhost", 404, "not_found"),
        ] {
            let path = operation.path_with(|_| address.to_owned());
            let answer = full_request(&app, operation, &credentials, &path).send().await;
            assert_eq!(answer.error(status), code, "{} {address}", operation.id);
        }
    }
}
