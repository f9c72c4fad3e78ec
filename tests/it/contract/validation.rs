//! The validation that every response of every test passes: what it reports.

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tempmail_tests::Response;
use tempmail_tests::contract::validate;

fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &Value) -> Response {
    let mut all = HeaderMap::new();
    all.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        all.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Response { status, headers: all, body }
}

fn violation(method: &Method, path: &str, answer: &Response) -> Option<String> {
    validate(method, path, &HeaderMap::new(), answer).err()
}

fn assert_valid(method: &Method, path: &str, answer: &Response) {
    assert_eq!(violation(method, path, answer), None, "{path} {answer:?}");
}

fn assert_invalid(method: &Method, path: &str, answer: &Response, why: &str) {
    let refused = violation(method, path, answer).unwrap_or_else(|| panic!("{path} {answer:?} is accepted"));
    assert!(refused.contains(why), "{refused}");
}

const LIMIT: [(&str, &str); 2] = [("ratelimit", "x"), ("ratelimit-policy", "x")];

#[test]
fn reports_missing_wrong_and_undocumented_fields() {
    let account = json!({"id": "00000000-0000-7000-8000-000000000000", "address": "a@b.example", "role": "free",
                         "quota": 1, "used": 0, "created_at": "2026-11-21T10:00:00.123Z"});
    let is = |body: &Value| answer(200, &LIMIT, body);
    assert_valid(&Method::GET, "/api/me", &is(&account));
    for field in account.as_object().unwrap().keys() {
        let mut without = account.clone();
        without.as_object_mut().unwrap().remove(field);
        assert_invalid(&Method::GET, "/api/me", &is(&without), "required");
    }
    for (field, wrong) in [
        ("id", json!("7")),
        ("created_at", json!("yesterday")),
        ("role", json!("other")),
        ("used", json!(-1)),
        ("address", json!(null)),
        ("surprise", json!(1)),
    ] {
        let mut changed = account.clone();
        changed[field] = wrong;
        assert_invalid(&Method::GET, "/api/me", &is(&changed), "");
    }
}

#[test]
fn reports_undocumented_fields_of_nested_objects() {
    let mut found = json!({
        "codes": [{"code": "4711", "confidence": 0.9, "source": "text", "reason": "x"}], "links": [],
    });
    let path = "/api/messages/x/codes";
    assert_valid(&Method::GET, path, &answer(200, &LIMIT, &found));
    found["surprise"] = json!(1);
    assert_invalid(&Method::GET, path, &answer(200, &LIMIT, &found), "surprise");
    found.as_object_mut().unwrap().remove("surprise");
    found["codes"][0]["surprise"] = json!(1);
    assert_invalid(&Method::GET, path, &answer(200, &LIMIT, &found), "surprise");
    found["codes"][0].as_object_mut().unwrap().remove("surprise");
    found["codes"][0]["code"] = json!(7);
    assert_invalid(&Method::GET, path, &answer(200, &LIMIT, &found), "");
}

#[test]
fn reports_undocumented_statuses_codes_and_headers() {
    let path = "/v1/email/x";
    let error = |status, code: &str, headers: &[_]| answer(status, headers, &json!({ "error": code }));
    assert_valid(&Method::GET, path, &error(404, "not_found", &[]));
    assert_invalid(&Method::GET, path, &error(409, "address_taken", &[]), "no response 409");
    assert_invalid(&Method::GET, path, &error(404, "nothing", &[]), "nothing");
    assert_invalid(
        &Method::GET,
        path,
        &answer(404, &[], &json!({"error": "not_found", "message": "x"})),
        "message",
    );
    assert_invalid(&Method::GET, "/api/messages/x", &error(404, "not_found", &[]), "message");

    assert_invalid(&Method::GET, path, &error(503, "unavailable", &[]), "Retry-After");
    assert_invalid(&Method::GET, path, &error(503, "unavailable", &[("retry-after", "soon")]), "number");
    assert_valid(&Method::GET, path, &error(503, "unavailable", &[("retry-after", "5")]));
    assert_invalid(&Method::GET, path, &error(401, "invalid_token", &[]), "WWW-Authenticate");
    assert_invalid(
        &Method::GET,
        path,
        &error(429, "rate_limit_exceeded", &[("retry-after", "1")]),
        "RateLimit",
    );
    assert_invalid(&Method::DELETE, path, &answer(204, &[], &Value::Null), "RateLimit");
    assert_valid(&Method::DELETE, path, &answer(204, &LIMIT, &Value::Null));
    assert_invalid(&Method::DELETE, path, &answer(204, &LIMIT, &json!({})), "no body");
    assert_invalid(&Method::GET, "/v1/email/x/raw", &answer(200, &LIMIT, &json!({})), "message/rfc822");
}

#[test]
fn expects_404_or_405_where_there_is_no_operation() {
    let error = |status, code: &str| answer(status, &[], &json!({"error": code, "message": "a sentence"}));
    assert_valid(&Method::GET, "/api/nothing", &error(404, "not_found"));
    assert_invalid(&Method::GET, "/api/nothing", &error(200, "not_found"), "404");
    assert_invalid(&Method::GET, "/v1/nothing", &error(404, "not_found"), "message");
    assert_invalid(&Method::POST, "/api/me", &error(404, "not_found"), "405");
    let allow =
        |methods| answer(405, &[("allow", methods)], &json!({"error": "method_not_allowed", "message": "x"}));
    assert_valid(&Method::POST, "/api/me", &allow("GET,HEAD,DELETE"));
    assert_invalid(&Method::POST, "/api/me", &allow("GET,HEAD"), "Allow");
    assert_invalid(&Method::POST, "/api/me", &error(405, "method_not_allowed"), "Allow");
}
