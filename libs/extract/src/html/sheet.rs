//! Style sheets, as far as their selectors are simple: an element, classes, an id.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{TagKind, Token, TokenSinkResult};

use super::style::{Declarations, Style};
use crate::bounds::{COMPARISONS_MAX, RULES_MAX};

/// Classes of an element that count, and of a selector.
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
    /// Rules by what an element needs for them: an `#id`, else the `.class` that the fewest rules name, else the
    /// element.
    by_key: HashMap<String, Vec<usize>>,
    /// How many rules name a class; other classes change nothing.
    classes: HashMap<String, usize>,
    /// What was said of elements that are alike, which most of a long document are.
    answers: RefCell<HashMap<String, Declarations>>,
    /// How often a rule was compared with an element.
    comparisons: Cell<usize>,
}

impl Sheet {
    /// The rules of style sheets, up to 2,000.
    fn of(css: &str) -> Self {
        let mut sheet = Self::default();
        sheet.add(css);
        for rule in &sheet.rules {
            rule.classes.iter().for_each(|class| *sheet.classes.entry(class.clone()).or_default() += 1);
        }
        for (index, rule) in sheet.rules.iter().enumerate() {
            sheet.by_key.entry(rule.key(&sheet.classes)).or_default().push(index);
        }
        sheet
    }

    /// What the sheet says of an element; `None` where that would take more comparisons than a document may.
    pub(super) fn style_of(&self, element: &str, class: &str, id: &str) -> Option<Declarations> {
        if self.rules.is_empty() {
            return Some(Declarations::default());
        }
        let classes = class.split_ascii_whitespace().take(CLASSES_MAX);
        let mut classes: Vec<&str> = classes.filter(|class| self.classes.contains_key(*class)).collect();
        classes.sort_unstable();
        classes.dedup();
        let id_key = format!("#{id}");
        let id = if self.by_key.contains_key(&id_key) { id } else { "" };
        let question = format!("{element} {} {id}", classes.join("."));
        if let Some(answer) = self.answers.borrow().get(&question) {
            return Some(*answer);
        }
        let answer = self.declarations_of(element, &classes, id)?;
        let mut answers = self.answers.borrow_mut();
        if answers.len() < ANSWERS_MAX {
            answers.insert(question, answer);
        }
        Some(answer)
    }

    fn declarations_of(&self, element: &str, classes: &[&str], id: &str) -> Option<Declarations> {
        let mut declarations = Declarations::default();
        let keys = [element.to_owned(), format!("#{id}"), "*".to_owned()];
        let keys = keys.into_iter().chain(classes.iter().map(|class| format!(".{class}")));
        let mut matching: Vec<usize> =
            keys.filter_map(|key| self.by_key.get(&key)).flatten().copied().collect();
        self.comparisons.set(self.comparisons.get() + matching.len());
        if self.comparisons.get() > COMPARISONS_MAX {
            return None;
        }
        matching.retain(|rule| self.rules[*rule].matches(element, classes, id));
        matching.sort_unstable_by_key(|rule| (self.rules[*rule].specificity(), *rule));
        for rule in matching {
            let rule = &self.rules[rule].declarations;
            declarations.normal = declarations.normal.then(rule.normal);
            declarations.important = declarations.important.then(rule.important);
        }
        Some(declarations)
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
            self.rules.extend(Rule::parse(selector.trim(), declarations));
        }
    }
}

impl Rule {
    /// Reads a selector; nothing if it is not simple, or has more classes than count of an element.
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
        (rule.classes.len() <= CLASSES_MAX).then_some(rule)
    }

    fn key(&self, classes: &HashMap<String, usize>) -> String {
        let rarest = self.classes.iter().min_by_key(|class| classes.get(*class));
        match (&self.id, rarest, &self.element) {
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
        Sheet::of(&without_comments(&self.css))
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
        let sheet = Sheet::of(&without_comments(
            "@import url(x); /* .b{display:none} */ .a, td.c { display:none } #x{opacity:0}\
             @media screen { .d { display:none } } .e .f { display:none } .g{display:block}",
        ));
        let hides = |element, class, id| sheet.style_of(element, class, id).unwrap().normal.hides();
        assert!(hides("p", "z a", "") && hides("td", "c", "") && hides("p", "", "x"));
        assert!(!hides("p", "b", "") && !hides("p", "c", "") && !hides("p", "d", "") && !hides("p", "f", ""));
    }

    #[test]
    fn compares_an_element_with_the_rules_of_its_rarest_classes() {
        let css: String = (0..RULES_MAX).map(|i| format!(".all.c{i}{{color:red}}")).collect();
        let sheet = Sheet::of(&css);
        for i in 0..RULES_MAX {
            assert!(sheet.style_of("p", &format!("all c{i}"), "").unwrap().normal.color.is_some());
        }
        assert_eq!(sheet.comparisons.get(), RULES_MAX);
    }

    #[test]
    fn stops_comparing_where_a_document_takes_too_much() {
        let rules: String = (0..20).map(|i| format!(".c{i}{{color:red}}")).collect();
        let sheet = Sheet::of(&(rules + &"p{color:red}".repeat(RULES_MAX - 20)));
        let classes = |i: usize| {
            let named = (0..20).filter(|bit| i >> bit & 1 == 1).map(|bit| format!("c{bit} "));
            named.collect::<String>()
        };
        let compared = (0..).map_while(|i| sheet.style_of("p", &classes(i), "")).count();
        assert!(compared > 20 && compared < COMPARISONS_MAX / (RULES_MAX - 20) + 1, "{compared}");
        assert_eq!(sheet.style_of("p", &classes(1 << 19), ""), None);
        assert!(sheet.style_of("p", "", "").is_some(), "what is known stays known");
    }

    #[test]
    fn leaves_out_selectors_of_more_classes_than_count() {
        let sheet = Sheet::of(&format!("{}{{color:red}}", ".a".repeat(CLASSES_MAX + 1)));
        assert!(sheet.rules.is_empty());
    }
}
