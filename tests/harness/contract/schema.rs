//! Schemas of responses with their references inlined.

use serde_json::{Map, Value, json};

/// The target of a reference, or the value itself.
pub(super) fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value["$ref"].as_str() else { return value };
    let pointer = reference.strip_prefix('#').expect("references are within the document");
    document.pointer(pointer).unwrap_or_else(|| panic!("{reference} does not exist"))
}

/// A schema that rejects undocumented fields. The document leaves objects open, since a later version may add
/// fields, but this version must return no others.
pub(super) fn closed(document: &Value, schema: &Value) -> Value {
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
