//! What the documents name is there: tests, files and functions. Their commands mean kinds of tempmail, whichever other
//! operators a cluster has.

use std::collections::BTreeSet;
use std::process::Command;

use super::{has_words, root, source_files};

#[test]
fn the_tests_that_the_documents_name_are_there() {
    let all = Command::new(std::env::current_exe().unwrap())
        .args(["--list", "--format", "terse"])
        .output()
        .unwrap();
    let all = String::from_utf8(all.stdout).unwrap();
    let all: BTreeSet<&str> = all.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let text = std::fs::read_to_string(root().join("docs/interface.md")).unwrap();
    let named: BTreeSet<&str> =
        text.split('`').skip(1).step_by(2).filter(|name| is_path_of_a_test(name)).collect();
    assert!(named.len() > 100, "the table is there");
    let missing: Vec<_> = named.difference(&all).collect();
    assert!(missing.is_empty(), "docs/interface.md names tests that do not exist: {missing:#?}");
}

/// `folder::file::a_rule`; an address such as `[::1]` is none.
fn is_path_of_a_test(text: &str) -> bool {
    text.contains("::")
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c))
}

/// The walks through the code in `docs/architecture.md`, and the fewest steps that each has.
const WALKS: [(&str, usize); 2] = [
    ("A mail, from the socket to a waiting reader", 12),
    ("A CustomDomain, from `kubectl apply` to `Verified`", 12),
];

/// A step is a numbered line that begins with a file and a function in it, each in backticks.
#[test]
fn every_step_of_the_walks_is_a_function_in_that_file() {
    let text = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    for (title, fewest) in WALKS {
        let (_, walk) =
            text.split_once(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no walk {title}"));
        let walk = walk.split("\n## ").next().unwrap();
        let steps: Vec<&str> = walk.lines().filter(|line| is_step(line)).collect();
        assert!(steps.len() >= fewest, "{title} has {} steps", steps.len());
        for step in steps {
            let mut quoted = step.split('`').skip(1).step_by(2);
            let (Some(file), Some(function)) = (quoted.next(), quoted.next()) else {
                panic!("`file` and `function` begin a step: {step}")
            };
            let source = std::fs::read_to_string(root().join(file))
                .unwrap_or_else(|error| panic!("{file}: {error}: {step}"));
            assert!(defines(&source, function), "{file} defines no {function}: {step}");
        }
    }
}

/// `12. …`
fn is_step(line: &str) -> bool {
    line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok())
}

/// Whether a source file in Rust or SQL defines a function of that name.
fn defines(source: &str, function: &str) -> bool {
    ["fn", "FUNCTION"].iter().any(|keyword| has_words(source, &format!("{keyword} {function}")))
}

#[test]
fn finds_a_function_by_its_whole_name() {
    for source in ["async fn serve(", "pub(crate) fn serve<T>(", "CREATE OR REPLACE FUNCTION serve("] {
        assert!(defines(source, "serve"), "{source}");
        assert!(!defines(source, "ser"), "{source}");
    }
    assert!(!defines("serve()", "serve"));
}

/// Names that `kubectl` takes for kinds of tempmail, and may take for those of another operator.
const NAMES_WITHOUT_GROUP: [&str; 18] = [
    "tenant",
    "tenants",
    "tmt",
    "systemdomain",
    "systemdomains",
    "sysd",
    "customdomain",
    "customdomains",
    "cdom",
    "webhook",
    "webhooks",
    "mwh",
    "apitoken",
    "apitokens",
    "mtok",
    "mailbox",
    "mailboxes",
    "mbx",
];

#[test]
fn documented_commands_name_resources_with_their_group() {
    let (mut commands, mut ambiguous) = (0, Vec::new());
    for path in source_files(".", &[".md", "NOTES.txt", "tests/cluster/check"]) {
        let text = std::fs::read_to_string(&path).expect("documents are UTF-8");
        let is_markdown = path.extension().is_some_and(|extension| extension == "md");
        for command in kubectl_commands(&text, is_markdown) {
            commands += 1;
            // What follows is run in a pod.
            let own = command.split(" -- ").next().unwrap_or_default();
            let mut names = own.split_whitespace().flat_map(|word| word.split(['/', ',']));
            if names.any(lacks_group) {
                ambiguous.push(format!("{}: {command}", path.display()));
            }
        }
    }
    assert!(commands > 50, "only {commands} commands are found");
    assert!(ambiguous.is_empty(), "{ambiguous:#?}");
}

#[test]
fn documented_commands_that_wait_say_for_how_long() {
    let mut waits = 0;
    for path in source_files(".", &[".md", "NOTES.txt"]) {
        let text = std::fs::read_to_string(&path).expect("documents are UTF-8");
        let is_markdown = path.extension().is_some_and(|extension| extension == "md");
        let commands = kubectl_commands(&text, is_markdown);
        for command in commands.iter().filter(|command| command.contains("--for=")) {
            waits += 1;
            assert!(command.contains("--timeout="), "{}: {command}", path.display());
        }
    }
    assert!(waits > 10, "only {waits} commands are found");
}

/// Lines and code with `kubectl`; of a Markdown document those in its code only.
fn kubectl_commands(text: &str, is_markdown: bool) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let has_command = |code: &&str| code.contains("kubectl");
    if !is_markdown {
        return text.lines().filter(has_command).map(str::to_owned).collect();
    }
    let (mut fenced, mut prose, mut is_fenced) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            fenced.push(line);
        } else {
            prose.push(line);
        }
    }
    let prose = prose.join("\n");
    let code = prose.split("\n\n").flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    fenced.into_iter().chain(code).filter(has_command).map(str::to_owned).collect()
}

/// Whether a name of a resource could be that of another operator's kind.
fn lacks_group(name: &str) -> bool {
    let name = name.trim_matches(|character: char| !character.is_ascii_alphanumeric());
    let (kind, group) = name.split_once('.').unwrap_or((name, ""));
    NAMES_WITHOUT_GROUP.contains(&kind) && !group.starts_with("tempmail.dev")
}

#[test]
fn finds_names_without_a_group_in_code_only() {
    let text = "The `webhook`.\n\nAsk `kubectl get\ntenants`.\n\n```sh\nkubectl get \\\n  mailbox/a\n```\n";
    let commands = kubectl_commands(text, true);
    assert_eq!(commands, ["kubectl get    mailbox/a", "kubectl get\ntenants"]);
    for name in ["tenants", "'mbx'", "webhook.spec"] {
        assert!(lacks_group(name), "{name}");
    }
    for name in ["tenants.tempmail.dev", "customdomains.tempmail.dev.spec", "signup-mailbox", "tempmail"] {
        assert!(!lacks_group(name), "{name}");
    }
}
