//! The reference that `tempmail api-reference` prints.

use std::fmt::{Display, Write as _};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// A list whose entries are the same for all kinds.
const CONDITIONS: &str = "conditions";

/// A field of a kind.
struct Field<'a> {
    path: String,
    is_required: bool,
    schema: &'a JSONSchemaProps,
}

/// The reference of all kinds and their fields, in Markdown.
pub fn api_reference() -> String {
    let mut text = String::from(INTRODUCTION);
    for definition in crate::all() {
        write_kind(&mut text, &definition);
    }
    text
}

fn write_kind(text: &mut String, definition: &CustomResourceDefinition) {
    let version = definition.spec.versions.first();
    let schema = version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    let Some(schema) = schema else { return };
    let (spec, status) = (property(schema, "spec"), property(schema, "status"));
    let names = &definition.spec.names;
    let short: Vec<String> = names.short_names.iter().flatten().map(|name| format!("`{name}`")).collect();
    let scope = if definition.spec.scope == "Namespaced" { "in a namespace" } else { "in no namespace" };
    let _ = write!(
        text,
        "\n## {}\n\n{}\n\n`{}.{}`, short name {}; {scope}.\n",
        names.kind,
        description(schema),
        names.plural,
        definition.spec.group,
        short.join(", ")
    );
    let rules: Vec<String> = [Some(schema), spec].into_iter().flatten().flat_map(rules).collect();
    if !rules.is_empty() {
        let _ = write!(text, "\nRules for the whole object: {}.\n", rules.join("; "));
    }
    if let Some(spec) = spec {
        text.push_str(
            "\n| Field | Type | Required | Default | Validation | Description |\n|---|---|---|---|---|---|\n",
        );
        for Field { path, is_required, schema } in fields("spec", spec) {
            let required = if is_required { "yes" } else { "no" };
            let (default, validation) = (default(schema), validation(schema));
            let (kind, description) = (kind(schema), description(schema));
            let _ = writeln!(
                text,
                "| `{path}` | {kind} | {required} | {default} | {validation} | {description} |"
            );
        }
    }
    if let Some(status) = status {
        text.push_str("\n| Field | Type | Description |\n|---|---|---|\n");
        for Field { path, schema, .. } in fields("status", status) {
            let _ = writeln!(text, "| `{path}` | {} | {} |", kind(schema), description(schema));
        }
    }
}

fn property<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    schema.properties.as_ref()?.get(name)
}

/// The fields below a schema, each before its own fields.
fn fields<'a>(path: &str, schema: &'a JSONSchemaProps) -> Vec<Field<'a>> {
    let mut found = Vec::new();
    let required = schema.required.as_deref().unwrap_or_default();
    for (name, schema) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        found.push(Field { path: path.clone(), is_required: required.contains(name), schema });
        if name != CONDITIONS {
            found.extend(fields(&path, schema));
            if let Some(item) = item(schema) {
                found.extend(fields(&format!("{path}[]"), item));
            }
        }
    }
    found
}

/// The schema of the items of a list.
fn item(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(item) => Some(item),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

/// The schema of the values of a map.
fn value(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(value) => Some(value),
        JSONSchemaPropsOrBool::Bool(_) => None,
    }
}

/// The type of a field, as the API references of Kubernetes write it.
fn kind(schema: &JSONSchemaProps) -> String {
    if let Some(item) = item(schema) {
        return format!("{}[]", kind(item));
    }
    if let Some(value) = value(schema) {
        return format!("map[string]{}", kind(value));
    }
    let is_time = schema.format.as_deref() == Some("date-time");
    if is_time { "time".to_owned() } else { schema.type_.clone().unwrap_or_default() }
}

/// The default of a field that is no object; the fields of an object have their own.
fn default(schema: &JSONSchemaProps) -> String {
    match &schema.default {
        None | Some(JSON(Value::Object(_))) => String::new(),
        Some(JSON(Value::String(text))) => format!("`{text}`"),
        Some(JSON(value)) => format!("`{value}`"),
    }
}

/// What the API server refuses of a field.
fn validation(schema: &JSONSchemaProps) -> String {
    let words = schema.enum_.iter().flatten().filter_map(|JSON(value)| value.as_str());
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    let mut bounds: Vec<String> = [
        (!words.is_empty()).then(|| words.join(", ")),
        range(schema.minimum, schema.maximum, ""),
        range(schema.min_length, schema.max_length, " characters"),
        range(schema.min_items, schema.max_items, " items"),
        range(schema.min_properties, schema.max_properties, " entries"),
        schema.pattern.as_ref().map(|pattern| format!("`{pattern}`")),
    ]
    .into_iter()
    .flatten()
    .collect();
    bounds.extend(rules(schema));
    let each = item(schema).or_else(|| value(schema)).map(validation).unwrap_or_default();
    if !each.is_empty() {
        bounds.push(format!("each: {each}"));
    }
    cell(&bounds.join("; "))
}

fn range<T: Display>(least: Option<T>, most: Option<T>, unit: &str) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    }
}

/// The messages of the rules in CEL.
fn rules(schema: &JSONSchemaProps) -> Vec<String> {
    let rules = schema.x_kubernetes_validations.iter().flatten();
    rules.map(|rule| rule.message.clone().unwrap_or_else(|| format!("`{}`", rule.rule))).collect()
}

fn description(schema: &JSONSchemaProps) -> String {
    cell(schema.description.as_deref().unwrap_or_default())
}

/// Text of a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

const INTRODUCTION: &str = "# API reference

Generated by `tempmail api-reference` from the custom resource definitions: do not edit.

The kinds of `tempmail.dev/v1alpha1`. [kubernetes.md](kubernetes.md) shows how they are used, which
[conditions](kubernetes.md#conditions) they have, and [what the version promises](kubernetes.md#api-policy). The same
descriptions are shown by `kubectl explain`, such as `kubectl explain customdomains.tempmail.dev --recursive`. Fields of
`status` are written by the operator only.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_every_kind_and_field_in_tables_of_equal_rows() {
        let text = api_reference();
        for definition in crate::all() {
            let kind = definition.spec.names.kind;
            assert!(text.contains(&format!("\n## {kind}\n")), "{kind}");
        }
        for field in [
            "spec.limits.mailboxes` | integer | no | `100` | 0 to 1000000 |",
            "spec.tenantRef.name` | string | yes |",
            "spec.allowedNamespaces.matchLabels` | map[string]string | no |",
            "spec.expiresAt` | time | no |",
            "status.verification.records[].value` | string |",
            "status.conditions` | object[] |",
        ] {
            assert!(text.contains(&format!("\n| `{field}")), "{field} in {text}");
        }
        assert!(!text.contains("conditions[]"), "conditions are described once, in kubernetes.md");
        for line in text.lines().filter(|line| line.starts_with('|')) {
            let columns = line.replace("\\|", "").matches('|').count();
            assert!([4, 7].contains(&columns), "{line}");
        }
    }
}
