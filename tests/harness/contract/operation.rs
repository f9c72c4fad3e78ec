//! Operations of the document.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::http::Response;

/// An operation.
#[derive(Debug)]
pub struct Operation {
    /// Operation id.
    pub id: String,
    /// Method.
    pub method: Method,
    /// Path, with `{name}` for each parameter.
    pub path: String,
    /// Names of the security schemes, of which a request presents one.
    pub credentials: Vec<String>,
    /// Whether it accepts requests without a credential.
    pub is_open: bool,
    /// Parameters in path, query and header.
    pub parameters: Vec<Parameter>,
    /// Request bodies, of which a request has one; none without a body.
    pub bodies: Vec<RequestBody>,
    responses: BTreeMap<u16, DocumentedResponse>,
}

/// Location of a parameter (`in`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterLocation {
    /// A segment of the path.
    Path,
    /// The query.
    Query,
    /// A header field.
    Header,
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Location.
    pub location: ParameterLocation,
    /// Schema.
    pub schema: Value,
}

/// A JSON request body.
#[derive(Debug)]
pub struct RequestBody {
    /// Schema.
    pub schema: Value,
    /// The documented example.
    pub example: Value,
}

impl Operation {
    /// Whether the path of a request matches the template.
    pub fn matches_path(&self, path: &str) -> bool {
        let (mut of_template, mut of_path) = (self.path.split('/'), path.split('/'));
        loop {
            match (of_template.next(), of_path.next()) {
                (None, None) => return true,
                (Some(template), Some(segment)) if template.starts_with('{') => {
                    if segment.is_empty() {
                        return false;
                    }
                }
                (Some(template), Some(segment)) if template == segment => {}
                _ => return false,
            }
        }
    }

    /// Every documented response: status and error code ([`super::NO_CODE`] for a success).
    pub fn responses(&self) -> impl Iterator<Item = (u16, String)> {
        self.responses.iter().flat_map(|(status, described)| {
            let codes = described.codes.iter().flatten().cloned();
            let none = described.codes.is_none().then(|| super::NO_CODE.to_owned());
            codes.chain(none).map(|code| (*status, code))
        })
    }

    /// Whether it may fail with this code.
    pub fn fails_with(&self, code: &str) -> bool {
        self.responses().any(|(_, documented)| documented == code)
    }

    /// The path with (encoded) values for its parameters.
    pub fn path_with(&self, value: impl Fn(&str) -> String) -> String {
        let segments = self.path.split('/').map(|segment| {
            match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(name) => value(name),
                None => segment.to_owned(),
            }
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// The error code of a response that is as documented.
    pub(super) fn validate(&self, response: &Response) -> Result<String, String> {
        self.described(response)?.validate(response)
    }

    /// As [`Self::validate`], for a response to `HEAD`.
    pub(super) fn validate_head(&self, response: &Response) -> Result<(), String> {
        self.described(response)?;
        if response.body.is_empty() { Ok(()) } else { Err("a response to HEAD has no body".to_owned()) }
    }

    fn described(&self, response: &Response) -> Result<&DocumentedResponse, String> {
        let described = self.responses.get(&response.status);
        described.ok_or_else(|| format!("{} has no response {}", self.id, response.status))
    }
}

/// A documented response.
#[derive(Debug)]
pub(super) struct DocumentedResponse {
    /// Media type, and for JSON the schema of the body.
    content: Option<(String, Option<Validator>)>,
    /// Header fields: name, whether required, whether a number.
    headers: Vec<(String, bool, bool)>,
    codes: Option<BTreeSet<String>>,
}

impl DocumentedResponse {
    /// An error of a path without an operation.
    pub(super) fn of_error(path: &str, code: &str) -> Self {
        let fields = if path == "/v1" || path.starts_with("/v1/") {
            json!({"error": {"const": code}})
        } else {
            json!({"error": {"const": code}, "message": {"type": "string", "minLength": 1}})
        };
        let required: Vec<&String> = fields.as_object().expect("these are fields").keys().collect();
        let schema = json!({"type": "object", "required": required, "properties": fields,
                            "additionalProperties": false});
        Self {
            content: Some(("application/json".to_owned(), Some(validator(&schema)))),
            headers: Vec::new(),
            codes: Some([code.to_owned()].into()),
        }
    }

    fn read(document: &Value, response: &Value) -> Self {
        let response = resolve(document, response);
        let content = entries(&response["content"]).next().map(|(media_type, described)| {
            let is_json = media_type == "application/json";
            (media_type.clone(), is_json.then(|| validator(&closed(document, &described["schema"]))))
        });
        let codes =
            response["content"]["application/json"]["schema"]["properties"]["error"]["enum"].as_array();
        let codes = codes.map(|codes| codes.iter().map(|code| text(code).to_owned()).collect());
        let headers = entries(&response["headers"]).map(|(name, header)| {
            (name.clone(), header["required"] == true, header["schema"]["type"] == "integer")
        });
        Self { content, headers: headers.collect(), codes }
    }

    /// The error code of a response that is as documented.
    pub(super) fn validate(&self, response: &Response) -> Result<String, String> {
        for (name, required, is_number) in &self.headers {
            let value = response.headers.get(name).map(|value| value.to_str().unwrap_or_default());
            match value {
                None if *required => return Err(format!("it has no {name}")),
                Some(text) if *is_number && text.parse::<u64>().is_err() => {
                    return Err(format!("{name} is not a number"));
                }
                _ => {}
            }
        }
        match &self.content {
            None if response.body.is_empty() => {}
            None => return Err("it must have no body".to_owned()),
            Some((media_type, _)) if media_type != "*/*" && response.media_type() != media_type => {
                return Err(format!("its media type must be {media_type}"));
            }
            Some((_, Some(validator))) => {
                let body: Value =
                    serde_json::from_slice(&response.body).map_err(|error| error.to_string())?;
                let errors: Vec<String> = validator
                    .iter_errors(&body)
                    .map(|error| format!("{} at {}", error, error.instance_path))
                    .collect();
                if !errors.is_empty() {
                    return Err(errors.join("; "));
                }
                if self.codes.is_some() {
                    return Ok(text(&body["error"]).to_owned());
                }
            }
            Some(_) => {}
        }
        Ok(super::NO_CODE.to_owned())
    }
}

/// All operations of a document.
pub(super) fn read(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, item) in entries(&document["paths"]) {
        for (method, operation) in entries(item) {
            let security = list(&operation["security"]);
            let responses = entries(&operation["responses"]).map(|(status, response)| {
                let status = status.parse().expect("a documented status is a number");
                (status, DocumentedResponse::read(document, response))
            });
            let bodies = operation.get("requestBody").map(|body| {
                let schema = inlined(document, &body["content"]["application/json"]["schema"]);
                let choices = schema["anyOf"].as_array().cloned().unwrap_or_else(|| vec![schema]);
                choices.into_iter().map(|schema| RequestBody { example: example(&schema), schema }).collect()
            });
            operations.push(Operation {
                id: text(&operation["operationId"]).to_owned(),
                method: method.to_uppercase().parse().expect("a documented method is valid"),
                path: path.clone(),
                credentials: security.clone().flat_map(entries).map(|(name, _)| name.clone()).collect(),
                is_open: security.clone().count() == 0
                    || security.clone().any(|one| entries(one).next().is_none()),
                parameters: list(&operation["parameters"]).map(parameter).collect(),
                bodies: bodies.unwrap_or_default(),
                responses: responses.collect(),
            });
        }
    }
    operations
}

fn parameter(described: &Value) -> Parameter {
    let location = match text(&described["in"]) {
        "path" => ParameterLocation::Path,
        "query" => ParameterLocation::Query,
        "header" => ParameterLocation::Header,
        other => panic!("a parameter in {other}"),
    };
    Parameter { name: text(&described["name"]).to_owned(), location, schema: described["schema"].clone() }
}

fn inlined(document: &Value, schema: &Value) -> Value {
    resolve(document, schema).clone()
}

/// The first example of the body, or else of each field.
fn example(schema: &Value) -> Value {
    if let Some(example) = list(&schema["examples"]).next() {
        return example.clone();
    }
    let fields = entries(&schema["properties"]).map(|(name, field)| {
        let example = list(&field["examples"]).next().cloned();
        (name.clone(), example.unwrap_or_else(|| panic!("the field {name} has no example")))
    });
    Value::Object(fields.collect())
}

fn validator(schema: &Value) -> Validator {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    options.should_validate_formats(true).build(schema).expect("a documented schema is valid")
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> + Clone {
    value.as_object().into_iter().flatten()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The target of a reference, or the value itself.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value["$ref"].as_str() else { return value };
    let pointer = reference.strip_prefix('#').expect("references are within the document");
    document.pointer(pointer).unwrap_or_else(|| panic!("{reference} does not exist"))
}

/// A schema that rejects undocumented fields. The document leaves objects open, since a later version may add
/// fields, but this version must return no others.
fn closed(document: &Value, schema: &Value) -> Value {
    close(document, schema, true)
}

/// `outer`: no other schema applies to the same object.
fn close(document: &Value, schema: &Value, outer: bool) -> Value {
    let target = resolve(document, schema);
    let Some(object) = target.as_object() else { return target.clone() };
    let mut closed = Map::new();
    for (key, value) in object {
        let value = match key.as_str() {
            "properties" => {
                let fields = value.as_object().expect("properties is an object");
                fields.iter().map(|(name, field)| (name.clone(), close(document, field, true))).collect()
            }
            "items" => close(document, value, true),
            "allOf" => all(document, value, false),
            "oneOf" | "anyOf" => all(document, value, outer),
            _ => value.clone(),
        };
        closed.insert(key.clone(), value);
    }
    if outer && ["properties", "allOf"].iter().any(|key| closed.contains_key(*key)) {
        closed.insert("unevaluatedProperties".to_owned(), json!(false));
    }
    Value::Object(closed)
}

fn all(document: &Value, schemas: &Value, outer: bool) -> Value {
    let schemas = schemas.as_array().expect("these are schemas");
    schemas.iter().map(|schema| close(document, schema, outer)).collect()
}
