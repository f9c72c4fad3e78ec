//! Style sheets, as far as their selectors are simple: an element, classes, an id.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{TagKind, Token, TokenSinkResult};

use super::style::{Declarations, Style};
use crate::bounds::RULES_MAX;

/// Classes of an element that count.
const CLASSES_MAX: usize = 16;
/// Answers that are kept.
const ANSWERS_MAX: usize = 4_096;

/// A selector and what it declares.
#[derive(Debug)]
struct Rule {
    element: Option<String>,
    classes: Vec<String>,
    id: Option<String>,
    declarations: Declarations,
}

/// The rules of a document.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    rules: Vec<Rule>,
    /// Rules by the class, `#id` or element that they need.
    by_key: HashMap<String, Vec<usize>>,
    /// Classes that rules name; others change nothing.
    classes: HashSet<String>,
    /// What was said of elements that are alike, which most of a long document are.
    answers: RefCell<HashMap<String, Declarations>>,
}

impl Sheet {
    /// What the sheet says of an element.
    pub(super) fn style_of(&self, element: &str, class: &str, id: &str) -> Declarations {
        if self.rules.is_empty() {
            return Declarations::default();
        }
        let classes = class.split_ascii_whitespace().take(CLASSES_MAX);
        let classes: Vec<&str> = classes.filter(|class| self.classes.contains(*class)).collect();
        let id_key = format!("#{id}");
        let id = if self.by_key.contains_key(&id_key) { id } else { "" };
        let question = format!("{element} {} {id}", classes.join("."));
        if let Some(answer) = self.answers.borrow().get(&question) {
            return *answer;
        }
        let answer = self.declarations_of(element, &classes, id);
        let mut answers = self.answers.borrow_mut();
        if answers.len() < ANSWERS_MAX {
            answers.insert(question, answer);
        }
        answer
    }

    fn declarations_of(&self, element: &str, classes: &[&str], id: &str) -> Declarations {
        let mut declarations = Declarations::default();
        let keys = [element.to_owned(), format!("#{id}"), "*".to_owned()];
        let keys = keys.into_iter().chain(classes.iter().map(|class| format!(".{class}")));
        let mut matching: Vec<usize> =
            keys.filter_map(|key| self.by_key.get(&key)).flatten().copied().collect();
        matching.retain(|rule| self.rules[*rule].matches(element, classes, id));
        matching.sort_unstable_by_key(|rule| (self.rules[*rule].specificity(), *rule));
        matching.dedup();
        for rule in matching {
            let rule = &self.rules[rule].declarations;
            declarations.normal = declarations.normal.then(rule.normal);
            declarations.important = declarations.important.then(rule.important);
        }
        declarations
    }

    /// Adds the rules of a `style` element. Blocks in blocks (`@media` and such) do not count.
    fn add(&mut self, css: &str) {
        let mut depth = 0_usize;
        let mut selector_at = 0;
        let mut block_at = 0;
        for (at, byte) in css.bytes().enumerate() {
            match byte {
                b'{' => {
                    if depth == 0 {
                        block_at = at + 1;
                    }
                    depth += 1;
                }
                b'}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        let selectors = css.get(selector_at..block_at.saturating_sub(1)).unwrap_or_default();
                        self.add_rules(selectors, css.get(block_at..at).unwrap_or_default());
                        selector_at = at + 1;
                    }
                }
                b';' if depth == 0 => selector_at = at + 1,
                _ => {}
            }
        }
    }

    fn add_rules(&mut self, selectors: &str, block: &str) {
        if selectors.contains('@') || block.contains('{') {
            return;
        }
        let declarations = Declarations::parse(block);
        if declarations.normal == Style::default() && declarations.important == Style::default() {
            return;
        }
        for selector in selectors.split(',') {
            if self.rules.len() == RULES_MAX {
                return;
            }
            let Some(rule) = Rule::parse(selector.trim(), declarations) else { continue };
            self.by_key.entry(rule.key()).or_default().push(self.rules.len());
            self.classes.extend(rule.classes.iter().cloned());
            self.rules.push(rule);
        }
    }
}

impl Rule {
    /// Reads a selector; nothing if it is not simple.
    fn parse(selector: &str, declarations: Declarations) -> Option<Self> {
        let selector = selector.strip_prefix("body ").unwrap_or(selector).trim();
        if selector.is_empty() || selector.contains(|c: char| c.is_whitespace() || "[]:>+~".contains(c)) {
            return None;
        }
        let mut rule = Self { element: None, classes: Vec::new(), id: None, declarations };
        let first = selector.find(['.', '#']).unwrap_or(selector.len());
        if first > 0 {
            rule.element = Some(selector[..first].to_ascii_lowercase());
        }
        let mut rest = &selector[first..];
        while let Some(sign) = rest.chars().next() {
            let name_end = rest[1..].find(['.', '#']).map_or(rest.len(), |end| end + 1);
            let name = rest[1..name_end].to_owned();
            if sign == '.' {
                rule.classes.push(name);
            } else {
                rule.id = Some(name);
            }
            rest = &rest[name_end..];
        }
        Some(rule)
    }

    fn key(&self) -> String {
        match (&self.id, self.classes.first(), &self.element) {
            (Some(id), ..) => format!("#{id}"),
            (None, Some(class), _) => format!(".{class}"),
            (None, None, Some(element)) => element.clone(),
            (None, None, None) => "*".to_owned(),
        }
    }

    fn matches(&self, element: &str, classes: &[&str], id: &str) -> bool {
        self.element.as_deref().is_none_or(|wanted| wanted == "*" || wanted == element)
            && self.id.as_deref().is_none_or(|wanted| wanted == id)
            && self.classes.iter().all(|wanted| classes.contains(&wanted.as_str()))
    }

    fn specificity(&self) -> (bool, usize, bool) {
        (self.id.is_some(), self.classes.len(), self.element.is_some())
    }
}

/// Collects the `style` elements of a document.
#[derive(Debug, Default)]
pub(super) struct SheetReader {
    css: String,
    in_style: bool,
}

impl SheetReader {
    pub(super) fn read(&mut self, token: Token) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => {
                let is_start = tag.kind == TagKind::StartTag;
                self.in_style = is_start && &*tag.name == "style";
                match &*tag.name {
                    "style" if is_start => return TokenSinkResult::RawData(RawKind::Rawtext),
                    "script" if is_start => return TokenSinkResult::RawData(RawKind::ScriptData),
                    "title" | "textarea" if is_start => return TokenSinkResult::RawData(RawKind::Rcdata),
                    _ => {}
                }
            }
            Token::CharacterTokens(text) if self.in_style => self.css.push_str(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    pub(super) fn finish(self) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.add(&without_comments(&self.css));
        sheet
    }
}

/// CSS without comments, and without the signs of HTML comments around it.
fn without_comments(css: &str) -> String {
    let css = css.replace("<!--", " ").replace("-->", " ");
    let mut kept = String::with_capacity(css.len());
    let mut rest = css.as_str();
    while let Some(start) = rest.find("/*") {
        kept.push_str(&rest[..start]);
        rest = rest[start + 2..].find("*/").map_or("", |end| &rest[start + 2 + end + 2..]);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_selectors_count_and_media_do_not() {
        let mut sheet = Sheet::default();
        sheet.add(&without_comments(
            "@import url(x); /* .b{display:none} */ .a, td.c { display:none } #x{opacity:0}\
             @media screen { .d { display:none } } .e .f { display:none } .g{display:block}",
        ));
        let hides = |element, class, id| sheet.style_of(element, class, id).normal.hides();
        assert!(hides("p", "z a", "") && hides("td", "c", "") && hides("p", "", "x"));
        assert!(!hides("p", "b", "") && !hides("p", "c", "") && !hides("p", "d", "") && !hides("p", "f", ""));
    }
}
