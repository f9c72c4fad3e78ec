//! `/v1/email/<id>` and what hangs below it.

mod attachments {
    mod get;
}
mod codes {
    mod get;
}
mod delete;
mod get;
mod raw {
    mod get;
}

use tempmail_tests::{App, send_mail};

const ADDRESS: &str = "ship@inbox.localhost";

/// A text, its HTML with an inline picture, and an attachment.
const MULTIPART: &str = concat!(
    "From: =?utf-8?q?Ad=C3=A9la?= <ada@client.example>\r\n",
    "To: Ship <ship@inbox.localhost>, second@elsewhere.example\r\n",
    "Subject: =?utf-8?b?xb5sdcWlb3XEjWvDvQ==?=\r\n",
    "MIME-Version: 1.0\r\n",
    "Content-Type: multipart/mixed; boundary=mixed\r\n\r\n",
    "--mixed\r\nContent-Type: multipart/related; boundary=related\r\n\r\n",
    "--related\r\nContent-Type: multipart/alternative; boundary=alternative\r\n\r\n",
    "--alternative\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nplain  text\r\nof two lines\r\n",
    "--alternative\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>html <img src=\"cid:pic@x\"></p>\r\n",
    "--alternative--\r\n",
    "--related\r\nContent-Type: image/png\r\nContent-ID: <pic@x>\r\nContent-Disposition: inline\r\n",
    "Content-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n",
    "--related--\r\n",
    "--mixed\r\nContent-Type: text/html; name=\"page.html\"\r\n",
    "Content-Disposition: attachment; filename*=utf-8''z%C3%A1znam.html\r\n\r\n<script>alert(1)</script>\r\n",
    "--mixed--\r\n",
);

async fn multipart(app: &App) -> String {
    let reply = send_mail(app.smtp(), "ada@client.example", ADDRESS, MULTIPART.as_bytes()).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    app.emails(ADDRESS).await[0]["id"].as_str().unwrap().to_owned()
}
