//! Label selectors of namespaces.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// The label that the API server keeps equal to a namespace's name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Whether a selector selects a namespace. Unlike elsewhere in Kubernetes an empty selector selects none. The
/// value of [`NAME_LABEL`] is the namespace's name, whatever its labels say.
pub(crate) fn selects(selector: &LabelSelector, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| if key == NAME_LABEL { Some(name) } else { labels.get(key).map(String::as_str) };
    let match_labels = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    let is_empty = match_labels.clone().next().is_none() && expressions.clone().next().is_none();
    !is_empty
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

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

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
            ("team", "Exists", &[], true),
            ("tier", "Exists", &[], false),
            ("team", "DoesNotExist", &[], false),
            ("tier", "DoesNotExist", &[], true),
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
