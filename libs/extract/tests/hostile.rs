//! Whatever a message is, extraction ends soon, within its bounds and without panic.

use std::sync::LazyLock;

use proptest::prelude::*;
use tempmail_extract::{Message, extract, shown_text};

/// Does all that callers do, and checks what is promised of any answer.
fn look(subject: &str, text: &str, html: &str) {
    let message =
        Message { subject, text: Some(text), html: Some(html), from_domain: Some("mail.example.co.uk") };
    let extraction = extract(&message);
    assert_eq!(extraction, extract(&message), "the same message gives the same answer");
    assert!(extraction.codes.len() <= 4 && extraction.links.len() <= 8);
    for code in &extraction.codes {
        assert!((4..=12).contains(&code.code.len()), "{}", code.code);
        assert!(code.code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
        assert!((0.5..=0.99).contains(&code.confidence));
    }
    for link in &extraction.links {
        assert!(link.url.is_ascii() && link.url.len() <= 2_048);
        assert!(link.url.to_ascii_lowercase().starts_with("http"), "{}", link.url);
        assert!(link.text.chars().count() <= 200 && !link.host.is_empty());
        assert!((0.5..=0.99).contains(&link.confidence));
    }
    for limit in [0, 1, 100, 300_000] {
        assert!(shown_text(html, limit).text.len() <= limit);
    }
}

/// Pieces of mails, so that generated ones have structure.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "<a href=\"https://a.example/v?token=abc123\">",
        "</a>",
        "<div style=\"display:none\">",
        "</div>",
        "<table>",
        "<td>",
        "</td>",
        "</table>",
        "<style>.x{display:none}</style>",
        "<p class=x>",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<title>",
        "<br>",
        "<base href=//b.example/>",
        "<li>",
        "<pre>",
        "<b>",
        "</b>",
        "<span hidden>",
        "&#x34;",
        "&amp",
        "&",
        "<",
        ">",
        "\"",
        "'",
        "=",
        "=\n",
        "=3D",
        "\n",
        "\r",
        "\t",
        " ",
        "\u{200B}",
        "\u{202E}",
        "\u{FEFF}",
        "123456",
        "123 456",
        "1 2 3 4 5 6",
        "12-34",
        "G-123456",
        "X7K-9QD",
        "ABCD-EFGH",
        "٤٨٢٩١٣",
        "４８２９１３",
        "@a.example #123456",
        "Your verification code is ",
        "Ваш код подтверждения: ",
        "验证码",
        "認証コード",
        "رمز التحقق",
        "Order number",
        "expires in 10 minutes",
        "On Monday 1.1. a <b@c> wrote:",
        "> ",
        "Confirm your email",
        "Reset password",
        "unsubscribe",
        "https://",
        "http://u@h/",
        "https://a.example/x?y=",
        "(",
        ")",
        "*",
        "$",
        "€",
        "#",
        "+",
        "é",
        "ß",
        "İ",
        "ﷺ",
        "𝟒",
        "👍🏽",
    ]);
    prop_oneof![6 => known.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..60).prop_map(|pieces| pieces.concat())
}

/// The bodies of the corpus: templates with their markup.
static CORPUS: LazyLock<Vec<String>> = LazyLock::new(corpus);

fn corpus() -> Vec<String> {
    let bodies = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line).expect("a line of the corpus is JSON");
        ["text", "html"].into_iter().filter_map(move |name| case[name].as_str().map(str::to_owned))
    };
    include_str!("../corpus/made.jsonl").lines().flat_map(bodies).collect()
}

/// Changes an octet, removes some, or repeats some.
fn mutate(text: &str, changes: &[(usize, usize, u8)]) -> String {
    let mut octets = text.as_bytes().to_vec();
    for (at, len, value) in changes {
        if octets.is_empty() {
            break;
        }
        let at = at % octets.len();
        let end = (at + len % 20).min(octets.len());
        match value % 3 {
            0 => octets[at] = *value,
            1 => drop(octets.drain(at..end)),
            _ => {
                let copy = octets[at..end].to_vec();
                octets.splice(at..at, copy);
            }
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}

/// A piece of a mail of the corpus, of up to 90 octets.
fn piece_of_corpus() -> impl Strategy<Value = String> {
    (any::<prop::sample::Index>(), any::<usize>(), 0..90_usize).prop_map(|(mail, at, len)| {
        let text: &String = mail.get(&CORPUS);
        let start = text.floor_char_boundary(at % text.len());
        let end = text.floor_char_boundary((start + len).min(text.len()));
        text[start..end].to_owned()
    })
}

/// Pieces of different mails run together, with codes among them.
fn patchwork() -> impl Strategy<Value = String> {
    let joint = prop::sample::select(vec!["", "", " ", "\n", "482913", "\n482913\n", "\n\nX7K9QD "]);
    prop::collection::vec((piece_of_corpus(), joint), 1..12)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, joint)| piece + joint).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn survives_arbitrary_octets(octets in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let text = String::from_utf8_lossy(&octets);
        look(&text, &text, &text);
    }

    #[test]
    fn survives_fragments_of_mails(subject in pieces(), text in pieces(), html in pieces()) {
        look(&subject, &text, &html);
    }

    #[test]
    fn survives_mutated_mails(
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 1..20),
    ) {
        let original: &String = at.get(&CORPUS);
        let text = mutate(original, &changes);
        look(&text, &text, &text);
    }

    #[test]
    fn survives_pieces_of_different_mails(text in patchwork()) {
        look("", &text, &text);
    }
}

/// Inputs that make parsers slow, of some 10 MB.
fn worst() -> Vec<(&'static str, String)> {
    let size = 10_000_000;
    let repeat = |text: &str| text.repeat(size / text.len());
    vec![
        ("digits", repeat("4")),
        ("digits in groups", repeat("123 456 ")),
        ("codes", repeat("Your verification code is 482913.\n")),
        ("single digits", repeat("1 ")),
        ("digits on lines", repeat("1\n")),
        ("hyphens", repeat("1-")),
        ("links", repeat("<a href=https://a.example/v?token=abc123>Confirm</a> ")),
        ("addresses", repeat("https://a.example/v?token=abc123\n")),
        (
            "broken addresses",
            repeat(
                "https://a.example/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=\n",
            ),
        ),
        ("an address", format!("https://a.example/{}", repeat("a)"))),
        ("nesting", repeat("<div>")),
        ("nested hidden", repeat("<div style=display:none>")),
        ("nested tables", repeat("<table><tr><td>")),
        ("ends", format!("{}{}", "<div>".repeat(1_000), repeat("</b>"))),
        ("attributes", format!("<p {}>", repeat("a=1 b=2 "))),
        (
            "distinct attributes",
            format!("<p {}>", (0..900_000).map(|i| format!("a{i}=1 ")).collect::<String>()),
        ),
        (
            "classes",
            format!(
                "<style>{}</style>{}",
                ".a{color:red}".repeat(50_000),
                repeat("<p class=\"a b c d e f g\">x")
            ),
        ),
        ("entities", repeat("&amp;&#x34;&notanentity;")),
        ("open tags", repeat("<")),
        ("comments", repeat("<!--")),
        ("zero width", repeat("4\u{200B}")),
        ("bidi", repeat("\u{202E}482913\u{202C}")),
        ("marks", format!("a{}", repeat("\u{301}"))),
        ("words", repeat("code ")),
        ("quotes", repeat("> ")),
        ("attributions", repeat("From: a\nOn 1 a <b@c.example> wrote:\n> x\n")),
        ("brackets", repeat("<https://")),
        ("signs before codes", format!("{}{}", ";".repeat(128 << 10), repeat("4829;"))),
        ("addresses before codes", format!("{}{}", "a@b.example ".repeat(10_000), repeat("4829 "))),
        ("blank lines", format!("a{}", repeat("\n"))),
        ("fields of a header", format!("{}{}", " ".repeat(100_000), repeat("from subject "))),
        (
            "a long base",
            format!(
                "<base href=https://a.example/{}>{}",
                "b".repeat(900_000),
                repeat("<a href=v>Confirm</a>")
            ),
        ),
        ("items", format!("{}{}", "<b>".repeat(250), repeat("<li>"))),
        (
            "distinct classes",
            format!("<style>{}</style>{}", STYLE_OF_MANY_RULES.as_str(), distinct_classes()),
        ),
    ]
}

/// As many rules as are read: one hides what has the class `c0`, most are of each element.
static STYLE_OF_MANY_RULES: LazyLock<String> = LazyLock::new(|| {
    let classes: String = (1..13).map(|i| format!(".c{i}{{color:red}}")).collect();
    format!(".c0{{display:none}}{classes}{}", "p{color:red}".repeat(1_987))
});

/// Elements of which no two have the same classes.
fn distinct_classes() -> String {
    let classes =
        |i: usize| (1..13).filter(|bit| i >> bit & 1 == 1).map(|bit| format!("c{bit} ")).collect::<String>();
    (0..8_192).step_by(2).map(|i| format!("<p class=\"{}\">{i}</p>", classes(i))).collect()
}

#[test]
fn shows_nothing_after_an_element_that_cannot_be_compared_with_all_rules() {
    let style = STYLE_OF_MANY_RULES.as_str();
    let end = "<p class=c0>Your code is 482913</p><p>Your code is 482914</p>";
    let few = shown_text(&format!("<style>{style}</style><p>seen</p>{end}"), 1_000_000);
    assert_eq!(
        (few.text.as_str(), few.cut, few.left_out_hidden),
        ("seen\n\nYour code is 482914", false, true)
    );
    let html = format!("<style>{style}</style><p>seen</p>{}{end}", distinct_classes());
    let many = shown_text(&html, 1_000_000);
    assert!(many.text.starts_with("seen\n\n0\n\n2") && !many.text.contains("482913") && many.cut);
    let extraction = extract(&Message { subject: "", text: None, html: Some(&html), from_domain: None });
    assert!(extraction.codes.is_empty(), "{:?}", extraction.codes);
}

#[test]
fn survives_a_link_whose_text_goes_on_in_the_next_line() {
    let html = r#"<a href="https://a.example/v?token=abc123">&#x34;<table>&#x34;"#;
    let extraction = extract(&Message { subject: "", text: None, html: Some(html), from_domain: None });
    assert!(extraction.codes.is_empty());
}

#[test]
fn finds_the_code_below_a_name_that_goes_on_in_the_next_line() {
    let text = "Your verification\ncode\n482913";
    let extraction = extract(&Message { subject: "", text: Some(text), html: None, from_domain: None });
    assert_eq!(extraction.codes.first().map(|code| code.code.as_str()), Some("482913"));
}

#[test]
#[expect(clippy::print_stdout, reason = "the times are for who reads them")]
fn survives_the_worst_inputs() {
    for (name, text) in worst() {
        let started = std::time::Instant::now();
        let message = Message { subject: &text, text: Some(&text), html: Some(&text), from_domain: None };
        let extraction = extract(&message);
        assert!(extraction.codes.len() <= 4 && extraction.links.len() <= 8, "{name}");
        assert!(shown_text(&text, 1_000_000).text.len() <= 1_000_000, "{name}");
        println!("{name}: {:?}", started.elapsed());
    }
}
