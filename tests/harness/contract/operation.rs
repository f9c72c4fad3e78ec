//! Operations as the document has them.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Value, json};

use super::schema::{closed, resolve};
use crate::http::Answer;

/// An operation.
#[derive(Debug)]
pub struct Operation {
    /// Its unique name.
    pub id: String,
    /// Method.
    pub method: Method,
    /// Path, with `{name}` for each parameter.
    pub path: String,
    /// Names of the credentials of which one is to be presented.
    pub credentials: Vec<String>,
    /// Whether it may be called with no credential.
    pub is_open: bool,
    /// Parameters in path and query.
    pub parameters: Vec<Parameter>,
    /// What its body is to be.
    pub body: Option<Body>,
    answers: BTreeMap<u16, Described>,
}

/// Where a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A segment of the path.
    Path,
    /// The query.
    Query,
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Where.
    pub place: Place,
    /// What it is to be.
    pub schema: Value,
}

/// A JSON body.
#[derive(Debug)]
pub struct Body {
    /// What it is to be.
    pub schema: Value,
    /// One that is.
    pub example: Value,
}

impl Operation {
    /// Whether a path of a request, as it is sent, is one of this operation.
    pub fn is_at(&self, path: &str) -> bool {
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

    /// Every documented answer: status, and code where it is an error.
    pub fn answers(&self) -> impl Iterator<Item = (u16, String)> {
        self.answers.iter().flat_map(|(status, described)| {
            let codes = described.codes.iter().flatten().cloned();
            let none = described.codes.is_none().then(|| super::NOTHING.to_owned());
            codes.chain(none).map(|code| (*status, code))
        })
    }

    /// Whether it may fail with this code.
    pub fn fails_with(&self, code: &str) -> bool {
        self.answers().any(|(_, documented)| documented == code)
    }

    /// The path with values for its parameters, which are encoded already.
    pub fn path_with(&self, value: impl Fn(&str) -> String) -> String {
        let segments = self.path.split('/').map(|segment| {
            match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(name) => value(name),
                None => segment.to_owned(),
            }
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// The code of an answer, if it is as documented.
    pub(super) fn judge(&self, answer: &Answer) -> Result<String, String> {
        self.described(answer)?.judge(answer)
    }

    /// The same for an answer to `HEAD`, which has no body.
    pub(super) fn judge_head(&self, answer: &Answer) -> Result<(), String> {
        self.described(answer)?;
        if answer.body.is_empty() { Ok(()) } else { Err("an answer to HEAD has no body".to_owned()) }
    }

    fn described(&self, answer: &Answer) -> Result<&Described, String> {
        let described = self.answers.get(&answer.status);
        described.ok_or_else(|| format!("{} has no answer {}", self.id, answer.status))
    }
}

/// A documented answer.
#[derive(Debug)]
pub(super) struct Described {
    /// Media type and, for JSON, what the body is to be.
    content: Option<(String, Option<Validator>)>,
    /// Header fields: name, whether always, whether a number.
    headers: Vec<(String, bool, bool)>,
    codes: Option<BTreeSet<String>>,
}

impl Described {
    /// An error of a path that is no operation.
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

    fn read(document: &Value, answer: &Value) -> Self {
        let answer = resolve(document, answer);
        let content = entries(&answer["content"]).next().map(|(media_type, described)| {
            let is_json = media_type == "application/json";
            (media_type.clone(), is_json.then(|| validator(&closed(document, &described["schema"]))))
        });
        let codes = answer["content"]["application/json"]["schema"]["properties"]["error"]["enum"].as_array();
        let codes = codes.map(|codes| codes.iter().map(|code| text(code).to_owned()).collect());
        let headers = entries(&answer["headers"]).map(|(name, header)| {
            (name.clone(), header["required"] == true, header["schema"]["type"] == "integer")
        });
        Self { content, headers: headers.collect(), codes }
    }

    /// The code of an answer that is as documented.
    pub(super) fn judge(&self, answer: &Answer) -> Result<String, String> {
        for (name, required, is_number) in &self.headers {
            let value = answer.headers.get(name).map(|value| value.to_str().unwrap_or_default());
            match value {
                None if *required => return Err(format!("it has no {name}")),
                Some(text) if *is_number && text.parse::<u64>().is_err() => {
                    return Err(format!("{name} is no number"));
                }
                _ => {}
            }
        }
        match &self.content {
            None if answer.body.is_empty() => {}
            None => return Err("it is to have no body".to_owned()),
            Some((media_type, _)) if media_type != "*/*" && answer.media_type() != media_type => {
                return Err(format!("its media type is to be {media_type}"));
            }
            Some((_, Some(validator))) => {
                let body: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
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
        Ok(super::NOTHING.to_owned())
    }
}

/// All operations of a document.
pub(super) fn read(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, item) in entries(&document["paths"]) {
        for (method, operation) in entries(item) {
            let security = list(&operation["security"]);
            let answers = entries(&operation["responses"]).map(|(status, answer)| {
                let status = status.parse().expect("a documented status is a number");
                (status, Described::read(document, answer))
            });
            let body = operation.get("requestBody").map(|body| {
                let schema = inlined(document, &body["content"]["application/json"]["schema"]);
                Body { example: example(&schema), schema }
            });
            operations.push(Operation {
                id: text(&operation["operationId"]).to_owned(),
                method: method.to_uppercase().parse().expect("a documented method is one"),
                path: path.clone(),
                credentials: security.clone().flat_map(entries).map(|(name, _)| name.clone()).collect(),
                is_open: security.clone().count() == 0
                    || security.clone().any(|one| entries(one).next().is_none()),
                parameters: list(&operation["parameters"]).map(parameter).collect(),
                body,
                answers: answers.collect(),
            });
        }
    }
    operations
}

fn parameter(described: &Value) -> Parameter {
    let place = match text(&described["in"]) {
        "path" => Place::Path,
        "query" => Place::Query,
        other => panic!("a parameter in {other}"),
    };
    Parameter { name: text(&described["name"]).to_owned(), place, schema: described["schema"].clone() }
}

fn inlined(document: &Value, schema: &Value) -> Value {
    resolve(document, schema).clone()
}

/// A body of which every field is its first example.
fn example(schema: &Value) -> Value {
    let fields = entries(&schema["properties"]).map(|(name, field)| {
        let example = list(&field["examples"]).next().cloned();
        (name.clone(), example.unwrap_or_else(|| panic!("the field {name} has no example")))
    });
    Value::Object(fields.collect())
}

fn validator(schema: &Value) -> Validator {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    options.should_validate_formats(true).build(schema).expect("a documented schema is one")
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
