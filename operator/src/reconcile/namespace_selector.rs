//! Label selectors of namespaces. One that Kubernetes refuses elsewhere selects nothing.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// The label that the API server keeps equal to a namespace's name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// Maximum length of a label's value, and of the name in a label key.
const LABEL_MAX: usize = 63;
/// Maximum length of the prefix of a label key.
const PREFIX_MAX: usize = 253;

/// Whether a selector selects a namespace. Unlike elsewhere in Kubernetes an empty selector selects none. The
/// value of [`NAME_LABEL`] is the namespace's name, whatever its labels say.
pub(crate) fn selects(selector: &LabelSelector, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| if key == NAME_LABEL { Some(name) } else { labels.get(key).map(String::as_str) };
    let match_labels = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    let is_empty = match_labels.clone().next().is_none() && expressions.clone().next().is_none();
    !is_empty
        && validate(selector).is_ok()
        && match_labels.into_iter().all(|(key, value)| label(key) == Some(value.as_str()))
        && expressions.into_iter().all(|expression| {
            let value = label(&expression.key);
            let listed =
                || value.is_some_and(|value| expression.values.iter().flatten().any(|one| one == value));
            match expression.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// Checks a selector by the rules of Kubernetes for label selectors. The API server has checked it, too,
/// unless the definitions of the kinds are older or newer than this operator.
///
/// # Errors
/// What is wrong, with the field.
pub(crate) fn validate(selector: &LabelSelector) -> Result<(), String> {
    for (key, value) in selector.match_labels.iter().flatten() {
        if !is_label_key(key) {
            return Err("matchLabels has a key that is not a label key".to_owned());
        }
        if !is_label_value(value) {
            return Err("matchLabels has a value that is not a label's value".to_owned());
        }
    }
    for (index, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        validate_requirement(requirement).map_err(|why| format!("matchExpressions[{index}] {why}"))?;
    }
    Ok(())
}

fn validate_requirement(requirement: &LabelSelectorRequirement) -> Result<(), &'static str> {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" if values.is_empty() => return Err("has the operator In and no values"),
        "NotIn" if values.is_empty() => return Err("has the operator NotIn and no values"),
        "Exists" if !values.is_empty() => return Err("has the operator Exists and values"),
        "DoesNotExist" if !values.is_empty() => return Err("has the operator DoesNotExist and values"),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => return Err("has an operator other than In, NotIn, Exists and DoesNotExist"),
    }
    if !is_label_key(&requirement.key) {
        return Err("has a key that is not a label key");
    }
    if !values.iter().all(|value| is_label_value(value)) {
        return Err("has a value that is not a label's value");
    }
    Ok(())
}

/// Whether a text is a name of up to 63 characters, perhaps after a DNS subdomain and a slash.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}

/// Whether a text is empty, or up to 63 letters, digits, `-`, `_` and `.` between two letters or digits.
fn is_label_value(value: &str) -> bool {
    let bytes = value.as_bytes();
    let is_valid = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.len() <= LABEL_MAX
        && bytes.iter().all(is_valid)
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

/// Whether a text is a DNS subdomain (RFC 1123) as Kubernetes has them, in lower case.
fn is_subdomain(text: &str) -> bool {
    let is_letter_or_digit = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(is_letter_or_digit)
            && bytes.last().is_some_and(is_letter_or_digit)
            && bytes.iter().all(|byte| is_letter_or_digit(byte) || *byte == b'-')
    };
    text.len() <= PREFIX_MAX && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn match_labels(pairs: &[(&str, &str)]) -> LabelSelector {
        LabelSelector { match_labels: Some(labels(pairs)), match_expressions: None }
    }

    fn match_expressions(expressions: &[(&str, &str, &[&str])]) -> LabelSelector {
        let requirement = |&(key, operator, values): &(&str, &str, &[&str])| LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: Some(values.iter().map(|&value| value.to_owned()).collect()),
        };
        let list = expressions.iter().map(requirement).collect();
        LabelSelector { match_labels: None, match_expressions: Some(list) }
    }

    #[test]
    fn selects_nothing_with_an_empty_selector() {
        let empty = [
            LabelSelector::default(),
            match_labels(&[]),
            match_expressions(&[]),
            LabelSelector { match_labels: Some(labels(&[])), match_expressions: Some(Vec::new()) },
        ];
        for selector in empty {
            assert!(!selects(&selector, "shop", &labels(&[("team", "shop")])), "{selector:?}");
        }
    }

    #[test]
    fn evaluates_every_operator_as_kubernetes_does() {
        let team = labels(&[("team", "shop")]);
        let cases: &[(&str, &str, &[&str], bool)] = &[
            ("team", "In", &["ship", "shop"], true),
            ("team", "In", &["ship"], false),
            ("team", "In", &[], false),
            ("tier", "In", &["shop"], false),
            ("team", "NotIn", &["ship"], true),
            ("team", "NotIn", &["shop"], false),
            ("tier", "NotIn", &["shop"], true),
            ("team", "NotIn", &[], false),
            ("tier", "NotIn", &[], false),
            ("team", "Exists", &[], true),
            ("tier", "Exists", &[], false),
            ("team", "Exists", &["shop"], false),
            ("team", "DoesNotExist", &[], false),
            ("tier", "DoesNotExist", &[], true),
            ("tier", "DoesNotExist", &["shop"], false),
            ("team", "Near", &["shop"], false),
        ];
        for &(key, operator, values, expected) in cases {
            let selector = match_expressions(&[(key, operator, values)]);
            assert_eq!(selects(&selector, "shop-1", &team), expected, "{key} {operator} {values:?}");
        }
        assert!(selects(&match_labels(&[("team", "shop")]), "shop-1", &team));
        assert!(!selects(&match_labels(&[("team", "ship")]), "shop-1", &team));
        assert!(
            !selects(&match_labels(&[("team", "shop"), ("tier", "a")]), "shop-1", &team),
            "all labels must match"
        );
        let mut both = match_expressions(&[("team", "Exists", &[])]);
        both.match_labels = Some(labels(&[("team", "ship")]));
        assert!(!selects(&both, "shop-1", &team), "labels and expressions must match");
    }

    #[test]
    fn selects_nothing_with_a_key_or_value_that_no_label_can_have() {
        let (long, longest) = ("a".repeat(64), "a".repeat(63));
        let (prefix, too_long_prefix) =
            (format!("{}/a", ["abc"; 63].join(".")), format!("{}/a", ["abc"; 64].join(".")));
        let keys =
            ["", "-a", "a-", "a b", "/a", "a/", "a/b/c", "A/b", "a_b/c", "a..b/c", &long, &too_long_prefix];
        for key in keys {
            let selector = match_expressions(&[(key, "DoesNotExist", &[])]);
            assert!(!selects(&selector, "shop", &labels(&[])), "{key:?}");
            assert!(validate(&match_labels(&[(key, "a")])).is_err(), "{key:?}");
        }
        for value in ["-a", "a-", ".", "a b", "a/b", "\u{fc}", &long] {
            let selector = match_expressions(&[("team", "NotIn", &[value])]);
            assert!(!selects(&selector, "shop", &labels(&[])), "{value:?}");
            assert!(validate(&match_labels(&[("team", value)])).is_err(), "{value:?}");
        }
        for (key, value) in [("a", ""), ("A.b_c-1", "A.b_c-1"), ("a.b/C", "0"), (&*prefix, &*longest)] {
            let selector = match_expressions(&[(key, "NotIn", &[value])]);
            assert!(selects(&selector, "shop", &labels(&[])), "{key:?} {value:?}");
            assert_eq!(validate(&match_labels(&[(key, value)])), Ok(()), "{key:?} {value:?}");
        }
    }

    #[test]
    fn selects_nothing_if_one_of_several_requirements_is_invalid() {
        let selector = match_expressions(&[("team", "Exists", &[]), ("tier", "NotIn", &[])]);
        assert!(!selects(&selector, "shop", &labels(&[("team", "shop")])));
        let why = validate(&selector).unwrap_err();
        assert_eq!(why, "matchExpressions[1] has the operator NotIn and no values");
    }

    #[test]
    fn takes_the_name_label_from_the_name_and_not_from_the_labels() {
        let forged = labels(&[(NAME_LABEL, "shop")]);
        let (by_value, by_label) =
            (match_expressions(&[(NAME_LABEL, "In", &["shop"])]), match_labels(&[(NAME_LABEL, "shop")]));
        for selector in [by_value, by_label] {
            assert!(selects(&selector, "shop", &labels(&[])), "{selector:?}");
            assert!(!selects(&selector, "thief", &forged), "{selector:?}");
        }
        assert!(!selects(&match_expressions(&[(NAME_LABEL, "DoesNotExist", &[])]), "shop", &labels(&[])));
    }
}
