//! axe-core, which finds violations of WCAG and of good practice in a page. `./tests/run browser` downloads it; it is
//! part of the tests alone.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::Browser;

/// Runs axe-core in the page. The frame of a mail is a document of its own, which no script of the page reaches.
const RUN: &str = "axe.run(document, { iframes: false, preload: false, resultTypes: ['violations'] })\
    .then((found) => found.violations)";

/// A rule that a page violates.
#[derive(Clone, PartialEq, Eq)]
pub struct AxeViolation {
    /// The rule.
    pub rule: String,
    /// What the rule asks for.
    pub help: String,
    /// The elements that violate it, as HTML.
    pub elements: Vec<String>,
}

impl fmt::Debug for AxeViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.help)?;
        self.elements.iter().try_for_each(|element| write!(f, "\n    {element}"))
    }
}

/// What axe-core finds in the page of a browser.
pub(super) async fn violations(browser: &Browser) -> Vec<AxeViolation> {
    let path = std::env::var_os("AXE_CORE").map(PathBuf::from);
    let path = path.expect("AXE_CORE names axe.min.js: ./tests/run browser installs it");
    if browser.evaluate_async("typeof axe").await == "undefined" {
        let source = std::fs::read_to_string(&path).expect("axe.min.js is there");
        browser.evaluate_async(&source).await;
    }
    let found = browser.evaluate_async(RUN).await;
    let list = found.as_array().unwrap_or_else(|| panic!("axe-core found no list: {found}"));
    list.iter().map(violation).collect()
}

fn violation(found: &Value) -> AxeViolation {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nodes = found["nodes"].as_array().into_iter().flatten();
    AxeViolation {
        rule: text(&found["id"]),
        help: text(&found["help"]),
        elements: nodes.map(|node| text(&node["html"])).collect(),
    }
}
