//! What `kubectl explain` and `kubectl get` show: every field with its default, and why an object is not
//! ready.

use serde_json::Value;

/// Asserts that the properties of a schema are described, and those that are optional with their defaults.
fn assert_described(path: &str, schema: &Value, with_defaults: bool) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let description = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        assert!(!description.is_empty(), "{path} has no description");
        if with_defaults && !required.contains(&name.as_str()) {
            assert!(description.contains("Defaults to "), "{path}: {description}");
        }
        assert_described(&path, property, with_defaults);
        assert_described(&path, &property["items"], with_defaults);
    }
}

#[test]
fn describes_every_field_and_its_default() {
    let definitions = serde_json::to_value(tempmail_crds::all()).unwrap();
    for definition in definitions.as_array().unwrap() {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        assert_described(&format!("{kind}.spec"), &schema["spec"], true);
        assert_described(&format!("{kind}.status"), &schema["status"], false);
    }
}

#[test]
fn lists_every_kind_with_the_reason_why_an_object_is_not_ready() {
    for definition in tempmail_crds::all() {
        let columns = definition.spec.versions[0].additional_printer_columns.as_deref().unwrap_or_default();
        let shown = columns.iter().filter(|column| column.priority.unwrap_or_default() == 0);
        let names: Vec<&str> = shown.map(|column| column.name.as_str()).collect();
        assert!(names.ends_with(&["Ready", "Reason", "Age"]), "{names:?}");
    }
}
