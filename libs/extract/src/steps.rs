//! Work, as tests count it: the octets of texts and the words that are looked at, and the open elements of HTML.
//!
//! What is looked at is counted where it is handed out (`text::Text`, `part::Part::hits_in`), so code that looks back
//! or forward too far can't leave it out.

/// Counts work; only tests do.
#[inline]
pub(crate) fn count(steps: usize) {
    #[cfg(test)]
    tests::STEPS.with(|all| all.set(all.get() + steps));
    #[cfg(not(test))]
    let _ = steps;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use crate::{Message, extract};

    thread_local! {
        pub(super) static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    /// Sizes between which the work is compared. What is looked at around a place is shorter than the first.
    const SIZES: [usize; 2] = [8 << 10, 32 << 10];
    /// Steps for an octet from which growth counts: until as many elements are open as may be, each further one adds
    /// to what is looked at.
    const STEPS_COUNTED: usize = 300;
    /// Steps for an octet, at most.
    const STEPS_MAX: usize = 2_500;

    /// What makes extraction look far: a beginning, and what follows it. Each is repeated to half of a message.
    const REPEATED: &[(&str, &str)] = &[
        (";", "4829;"),
        ("; ", "4829; "),
        (" ", "4829;"),
        ("\u{301}", "482913 \u{301}"),
        ("a@b.example ", "a@b.example 4829 "),
        ("//a/b 1", "4829 "),
        ("code ", "4829 "),
        ("order ", "x 4829 "),
        ("order, ", "24 Nov 2026, order, "),
        ("order ", "order 12:30, 4829, "),
        ("enter ", "4829 is what you need to sign in, "),
        ("Your code is ", "482913 is expired, no longer valid, "),
        ("sign in ", "\n482913\n"),
        ("code ", "\n4829 4829 4829 4829 4829\n"),
        ("code 12:30 ", "order 12:30 "),
        ("1 ", "1 "),
        ("1-", "1-"),
        ("1\n", "1\n"),
        ("AB12 ", "AB12 3456 "),
        ("A1B ", "Code: X7K 9QD "),
        ("a", "\n"),
        ("a\n", "\n\n> b\n"),
        ("From: a\n", "From: a\n\n"),
        (" ", "from from "),
        ("From: a\n", "subject subject: "),
        ("On 1 a <b@c.example> wrote:\n", "\n"),
        ("https://a.example/a\n", "a1\n"),
        ("<https://a.example/a\n", "b> <https://a.example/a\n"),
        ("a ", "https://a.example/v?token=abc12345 "),
        ("https://a.example/v?t=a(", "https://a.example/v?t=a("),
        ("https://a.example/v?t=a(", "https://a.example/v?t=a（"),
        ("https://a.example/v?t=a[", ")"),
        ("a ", "<a href=\"/v?token=abc12345\">Confirm</a> "),
        ("<b>", "</i>"),
        ("<b>", "<li>"),
        ("<table><tr><td>", "4829"),
        ("<font size=7>;", "4829;"),
    ];

    fn message(size: usize, (before, after): (&str, &str)) -> String {
        let half = |piece: &str| piece.repeat((size / 2).div_ceil(piece.len().max(1)));
        half(before) + &half(after)
    }

    /// The steps for a message that has this as its text and its HTML.
    fn steps(text: &str) -> usize {
        STEPS.set(0);
        let html = format!("<base href=https://a.example/>{text}");
        let subject = "Your verification code";
        let message =
            Message { subject, text: Some(text), html: Some(&html), from_domain: Some("a.example") };
        std::hint::black_box(extract(&message));
        STEPS.get()
    }

    /// Whether the larger message takes at most as many times the steps as it is larger, and half of that more: near
    /// its ends there is less to look at.
    fn is_linear(pieces: (&str, &str)) -> Result<(), String> {
        let [small, large] = SIZES.map(|size| message(size, pieces)).map(|text| (text.len(), steps(&text)));
        let most = small.1 as f64 * (large.0 as f64 / small.0 as f64) * 1.5 + 10_000.0;
        if large.1 as f64 > most && large.1 > large.0 * STEPS_COUNTED {
            return Err(format!(
                "{pieces:?}: {} steps for {}, {} for {}",
                small.1, small.0, large.1, large.0
            ));
        }
        Ok(())
    }

    #[test]
    fn works_no_more_than_the_message_grows() {
        let failed: Vec<_> = REPEATED.iter().filter_map(|pieces| is_linear(*pieces).err()).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    #[test]
    fn bounds_the_work_for_an_octet() {
        for pieces in REPEATED {
            let text = message(256 << 10, *pieces);
            let steps = steps(&text) / text.len();
            assert!(steps <= STEPS_MAX, "{pieces:?}: {steps}");
        }
    }

    /// A few words, numbers and signs.
    fn piece() -> impl Strategy<Value = String> {
        let known = prop::sample::select(vec![
            "4829",
            "482913",
            "24 Nov 2026",
            "12:30",
            "1",
            "DE89 3704 0044",
            "X7K 9QD",
            "G-1234",
            "+49 30 1234",
            "Your code is",
            "order",
            "enter",
            "expired",
            "sign in",
            "minutes",
            "EUR",
            "From: a",
            "Subject:",
            "code:",
            "https://a.example/v?t=abc123",
            "a@b.example",
            "<b>",
            "</b>",
            "<a href=/v?t=abc123>",
            "</a>",
            "<li>",
            " ",
            " ",
            ";",
            "; ",
            ". ",
            ", ",
            "\n",
            "\n\n",
            "> ",
            "(",
            ")",
            "*",
            "\u{301}",
            "是",
            "\t",
        ]);
        prop::collection::vec(known, 1..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn works_no_more_than_any_message_grows(before in piece(), after in piece()) {
            let linear = is_linear((&before, &after));
            prop_assert!(linear.is_ok(), "{:?}", linear);
        }
    }
}
