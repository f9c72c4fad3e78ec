//! Links and codes are found whatever stands right beside them, in a text body and in HTML.

use tempmail_extract::{Extraction, Message, extract, shown_text};

/// What is found in a text, as the text body and as HTML, where it is the same.
fn found(subject: &str, text: &str) -> Extraction {
    let message = Message { subject, from_domain: Some("shop.example"), ..Message::default() };
    let of_text = extract(&Message { text: Some(text), ..message });
    let html = format!("<p>{text}</p>");
    let of_html = extract(&Message { html: Some(&html), ..message });
    let urls = |found: &Extraction| found.links.iter().map(|link| link.url.clone()).collect::<Vec<_>>();
    let codes = |found: &Extraction| found.codes.iter().map(|code| code.code.clone()).collect::<Vec<_>>();
    assert_eq!((urls(&of_text), codes(&of_text)), (urls(&of_html), codes(&of_html)), "{text}");
    of_text
}

#[test]
fn ends_addresses_before_characters_outside_ascii_and_open_brackets() {
    for after in [
        "（24h以内）",
        "２４時間以内",
        "（",
        "［1］",
        "～以内",
        "＆以内",
        "：24h",
        "／",
        "＃",
        "＝",
        "？",
        "．",
        "\u{3000}24h",
        "、24h",
        "。",
        "」",
        "に",
        "…",
        "\u{200b}24h",
        "(expires in 24h)",
        "(expires soon",
        "[1",
        ")",
        ".",
    ] {
        let text = format!(
            "以下のURLをクリックしてメールアドレスを確認してください\nhttps://shop.example/confirm?t=abc123XYZ{after}\n"
        );
        let urls: Vec<_> = found("ご確認", &text).links.into_iter().map(|link| link.url).collect();
        assert_eq!(urls, ["https://shop.example/confirm?t=abc123XYZ"], "{after}");
    }
}

#[test]
fn finds_codes_beside_full_width_characters() {
    for text in [
        "認証コード：482913（10分間有効）",
        "認証コードは４８２９１３（１０分間有効）です",
        "验证码为［482913］",
        "验证码：＂482913＂",
        "認証コード：G-482913（有効）",
        "https://shop.example/confirm（482913）が認証コードです",
    ] {
        let codes: Vec<_> = found("ご確認", text).codes.into_iter().map(|code| code.code).collect();
        assert_eq!(codes, ["482913"], "{text}");
    }
}

#[test]
fn reads_texts_of_buttons_and_colours_of_the_body() {
    let shown = |html: &str| shown_text(html, 1_000).text;
    assert_eq!(shown("<a href=x><input type=submit value=\"Confirm account\"></a>"), "Confirm account");
    assert_eq!(shown("<input value=typed><input type=hidden value=x><input hidden type=submit value=x>"), "");
    assert_eq!(shown("<button>Confirm</button> <noscript>a</noscript> <marquee>b</marquee>"), "Confirm a b");
    assert_eq!(shown("<xmp>482913 <b></xmp>"), "482913 <b>");
    let dark = shown_text("<body bgcolor=#000000 text=#ffffff>Your code</body>", 1_000);
    assert_eq!((dark.text.as_str(), dark.left_out_hidden), ("Your code", false));
}
