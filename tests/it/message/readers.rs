//! Mail that breaks rules as senders often do, or has what few programs know: it is shown as mail readers show it.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::corpus::fixture;

use super::reader::{ReadMail, Reader};

/// What is shown of a mail.
#[derive(Debug, Clone, Copy)]
enum Shows {
    Subject(&'static str),
    FromEmail(&'static str),
    Preview(&'static str),
    /// A part of the text body.
    Text(&'static str),
    /// A part of the HTML body.
    Html(&'static str),
    /// A part of the document of the HTML.
    Document(&'static str),
    /// All codes.
    Codes(&'static [&'static str]),
    /// All action links.
    Links(&'static [&'static str]),
    /// The file names of all attachments; "" where there is none.
    Attachments(&'static [&'static str]),
}

use Shows::{Attachments, Codes, Document, FromEmail, Html, Links, Preview, Subject, Text};

#[tokio::test(flavor = "multi_thread")]
async fn shows_mail_as_readers_do() {
    let table: &[(&str, &[Shows])] = &[
        // Roles of parts follow the multipart, not names.
        ("alternative-named-parts", &[Html("482913"), Codes(&["482913"]), Attachments(&[])]),
        (
            "related-start",
            &[Html("482913"), Codes(&["482913"]), Document("data:image/png"), Attachments(&[""])],
        ),
        ("related-siblings", &[Text("See the HTML"), Html("482913"), Codes(&["482913"]), Attachments(&[""])]),
        ("text-beside-body", &[Text("The notes"), Attachments(&["notes.txt"])]),
        // Fields with one mistake.
        (
            "content-type-without-semicolon",
            &[Html("482913"), Codes(&["482913"]), Preview("Your verification code is 482913")],
        ),
        ("multipart-folded-badly", &[Text("See the HTML"), Html("482913"), Codes(&["482913"])]),
        ("attachment-without-semicolon", &[Text("The report"), Attachments(&["report.txt"])]),
        // Charsets that the document or the octets tell.
        ("charset-of-meta", &[Html("Ваш код подтверждения"), Codes(&["482913"])]),
        ("label-utf-8-octets-latin1", &[Subject("Café"), Html("Café"), Preview("Café")]),
        ("rfc2047-cut-base64", &[Subject("Bestätigen Sie Ihre Adresse")]),
        ("preheader-padding", &[Preview("Finish signing up Your verification code is 482913")]),
        (
            "flowed-delsp",
            &[
                Text("https://shop.example/confirm?token=abcdefghijklmnop\n\nThank you."),
                Links(&["https://shop.example/confirm?token=abcdefghijklmnop"]),
            ],
        ),
        ("full-width-after-link", &[Links(&["https://shop.example/confirm?t=abc123XYZ"])]),
        ("image-jpg", &[Document("src=\"data:image/jpeg;base64,")]),
        ("background-of-body", &[Document("background-color:#101820"), Document("482913")]),
        ("background-with-image", &[Document("background-color:#101820"), Document("482913")]),
        (
            "button-in-link",
            &[Document("Confirm account"), Document("href=\"https://shop.example/confirm?t=abc123XYZ\"")],
        ),
        ("from-angle-bracket", &[FromEmail("matt@shop.example")]),
    ];
    let reader = Reader::start().await;
    let mut wrong = Vec::new();
    for (name, expected) in table {
        let mail = reader.show(&fixture(name)).await;
        let document = document(&reader, &mail, expected).await;
        let missing = expected.iter().filter(|expected| !is_shown(&mail, &document, **expected));
        wrong.extend(missing.map(|missing| format!("{name}: {missing:?}\n{document}\n{}", mail.email)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The links of a document have the texts of buttons in them.
#[tokio::test(flavor = "multi_thread")]
async fn lists_links_with_the_texts_of_buttons() {
    let reader = Reader::start().await;
    let mail = reader.show(&fixture("button-in-link")).await;
    let links = create_document(&reader, &mail).await["links"].take();
    let link = json!([{
        "text": "Confirm account",
        "href": "https://shop.example/confirm?t=abc123XYZ",
        "host": "shop.example",
        "ascii_host": "shop.example",
    }]);
    assert_eq!(links, link);
}

/// The document of a mail, where one is expected.
async fn document(reader: &Reader, mail: &ReadMail, expected: &[Shows]) -> String {
    if !expected.iter().any(|expected| matches!(expected, Document(_))) {
        return String::new();
    }
    let created = create_document(reader, mail).await;
    let response = reader.app.request(Method::GET, created["url"].as_str().unwrap()).send().await;
    assert_eq!(response.status, 200, "{response:?}");
    response.text()
}

async fn create_document(reader: &Reader, mail: &ReadMail) -> Value {
    let path = format!("/api/messages/{}/document", mail.id);
    let request = reader.app.request(Method::POST, &path).bearer(&reader.mailbox.jwt);
    request.json(&json!({ "remote": false })).send().await.expect(201)
}

fn is_shown(mail: &ReadMail, document: &str, expected: Shows) -> bool {
    match expected {
        Subject(text) => mail.text("subject") == text,
        FromEmail(text) => mail.email["from_email"] == text,
        Preview(text) => mail.summary["preview_text"] == text,
        Text(part) => mail.text("text_body").contains(part),
        Html(part) => mail.text("html_body").contains(part),
        Document(part) => document.contains(part),
        Codes(codes) => values(&mail.email["codes"], "code") == codes,
        Links(links) => values(&mail.email["links"], "url") == links,
        Attachments(names) => values(&mail.email["attachments"], "filename") == names,
    }
}

/// A field of each element of a list; "" where it is null.
fn values<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let elements = list.as_array().into_iter().flatten();
    elements.map(|element| element[field].as_str().unwrap_or_default()).collect()
}
