//! The document as an HTML page, rendered on the server, without scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

/// The only style of the page.
pub(super) const STYLE: &str = include_str!("../../web/docs/style.css");

const METHODS: [&str; 4] = ["get", "post", "put", "delete"];

/// The page.
pub(super) fn render(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav { (contents(document)) }
                main {
                    h1 { (title) " " (text(&document["info"]["version"])) }
                    p { a href="/openapi.json" { "openapi.json" } ", OpenAPI " (text(&document["openapi"])) }
                    @for paragraph in text(&document["info"]["description"]).split("\n") {
                        p { (prose(paragraph.trim_start_matches("- "))) }
                    }
                    @for (scheme, about) in entries(&document["components"]["securitySchemes"]) {
                        p id=(format!("credential-{scheme}")) { b { (scheme) } ": " (text(&about["description"])) }
                    }
                    @for tag in list(&document["tags"]) { (surface(document, tag)) }
                    h2 id="schemas" { "Schemas" }
                    @for (name, schema) in entries(&document["components"]["schemas"]) {
                        article id=(format!("schema-{name}")) { h3 { (name) } (fields(schema)) }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn contents(document: &Value) -> Markup {
    html! {
        @for tag in list(&document["tags"]) {
            b { (text(&tag["name"])) }
            ul {
                @for (method, path, operation) in operations(document, tag) {
                    li { a href=(format!("#{}", text(&operation["operationId"]))) {
                        span.method { (method.to_uppercase()) } (path)
                    } }
                }
            }
        }
        b { a href="#schemas" { "schemas" } }
    }
}

fn surface(document: &Value, tag: &Value) -> Markup {
    html! {
        h2 { (text(&tag["name"])) }
        p { (text(&tag["description"])) }
        @for (method, path, operation) in operations(document, tag) {
            article id=(text(&operation["operationId"])) {
                h3 { span.method { (method.to_uppercase()) } code { (path) } }
                p { b { (text(&operation["summary"])) } }
                @if let Some(about) = operation["description"].as_str() { p { (prose(about)) } }
                p { "Credential: " (credentials(&operation["security"])) }
                (parameters(operation))
                @if let Some(body) = operation.get("requestBody") {
                    h4 { "Body" }
                    (content(&body["content"]))
                }
                (responses(document, operation))
            }
        }
    }
}

fn credentials(security: &Value) -> Markup {
    let alternatives: Vec<&String> =
        list(security).filter_map(|one| one.as_object()?.keys().next()).collect();
    let optional = list(security).any(|one| one.as_object().is_some_and(Map::is_empty));
    html! {
        @if alternatives.is_empty() { "none" }
        @for scheme in &alternatives { a href=(format!("#credential-{scheme}")) { (scheme) } }
        @if optional && !alternatives.is_empty() { ", or none" }
    }
}

fn parameters(operation: &Value) -> Markup {
    html! {
        @if operation.get("parameters").is_some() {
            h4 { "Parameters" }
            table {
                @for parameter in list(&operation["parameters"]) {
                    tr {
                        td { code { (text(&parameter["name"])) } }
                        td { (text(&parameter["in"])) @if parameter["required"] == true { ", required" } }
                        td { (kind(&parameter["schema"])) }
                        td { (prose(text(&parameter["description"]))) }
                    }
                }
            }
        }
    }
}

fn responses(document: &Value, operation: &Value) -> Markup {
    html! {
        h4 { "Responses" }
        table {
            @for (status, response) in entries(&operation["responses"]) {
                @let response = resolve(document, response);
                tr {
                    td { b { (status) } }
                    td {
                        (prose(text(&response["description"])))
                        @for (header, about) in entries(&response["headers"]) {
                            br; code { (header) } ": " (text(&about["description"]))
                        }
                    }
                    td { (content(&response["content"])) }
                }
            }
        }
    }
}

/// The media types of a body, with their schemas.
fn content(content: &Value) -> Markup {
    html! {
        @for (media_type, described) in entries(content) {
            @let schema = &described["schema"];
            @if schema.get("properties").is_some() { (fields(schema)) }
            @else if list(&schema["anyOf"]).any(|choice| choice.get("properties").is_some()) {
                @for (index, choice) in list(&schema["anyOf"]).enumerate() {
                    @if index > 0 { p { "or" } }
                    (fields(choice))
                }
            }
            @else if media_type == "application/json" { (kind(schema)) }
            @else { code { (media_type) } }
        }
    }
}

/// The fields of an object.
fn fields(schema: &Value) -> Markup {
    let required: Vec<&str> = list(&schema["required"]).filter_map(Value::as_str).collect();
    html! {
        @if let Some(about) = schema["description"].as_str() { p { (prose(about)) } }
        table {
            @for (name, field) in entries(&schema["properties"]) {
                tr {
                    td { code { (name) } @if !required.contains(&name.as_str()) { " (optional)" } }
                    td { (kind(field)) }
                    td { @if let Some(about) = field["description"].as_str() { (prose(about)) } }
                }
            }
        }
    }
}

/// The type and constraints of a value, in a few words.
fn kind(schema: &Value) -> Markup {
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    let choices: Vec<&Value> = ["oneOf", "anyOf"].iter().flat_map(|of| list(&schema[*of])).collect();
    html! {
        @if let Some(name) = name {
            a href=(format!("#schema-{name}")) { (name) }
        } @else if !choices.is_empty() {
            @for (index, choice) in choices.iter().enumerate() {
                @if index > 0 { " or " }
                (kind(choice))
            }
        } @else if let Some(items) = schema.get("items") {
            "list of " (kind(items))
        } @else {
            (types(schema))
            @for (key, value) in entries(schema) {
                @if !matches!(key.as_str(), "type" | "description" | "properties" | "required" | "examples") {
                    ", " (key) " " code { (literal(value)) }
                }
            }
        }
    }
}

fn types(schema: &Value) -> String {
    match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::String(one) => one.clone(),
        _ => "value".to_owned(),
    }
}

fn literal(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Text in which `` `…` `` marks code.
fn prose(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// The operations of a tag, by path, followed by its webhooks.
fn operations<'a>(
    document: &'a Value,
    tag: &'a Value,
) -> impl Iterator<Item = (&'static str, &'a str, &'a Value)> {
    entries(&document["paths"]).chain(entries(&document["webhooks"])).flat_map(move |(path, item)| {
        let described = METHODS.iter().filter_map(move |method| Some((*method, item.get(*method)?)));
        described
            .filter(move |(_, operation)| operation["tags"][0] == tag["name"])
            .map(move |(method, operation)| (method, path.as_str(), operation))
    })
}

/// The target of a `$ref`; the value itself where it is not a reference.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The elements of a value that is a list, if it is one.
pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn escapes_every_text_of_the_document() {
        let evil = "<script>\"&'</script>";
        let document = json!({
            "info": {"title": evil, "version": evil, "description": evil},
            "tags": [{"name": evil, "description": evil}],
            "paths": {evil: {"get": {
                "operationId": evil, "summary": evil, "tags": [evil],
                "parameters": [{"name": evil, "description": evil, "schema": {"pattern": evil}}],
                "responses": {evil: {"description": evil, "headers": {evil: {"description": evil}}}},
            }}},
            "components": {"schemas": {evil: {"properties": {evil: {"$ref": evil}}}}},
        });
        let page = render(&document);
        assert!(!page.contains("<script") && !page.contains("\"&'"), "{page}");
        assert!(page.contains("&lt;script&gt;"));
    }
}
