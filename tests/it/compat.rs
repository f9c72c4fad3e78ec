//! The drop-in surfaces, by requests as their clients send them. The clients themselves are in `tests/clients`.

mod listener;
mod mailhog;
mod mailosaur;
mod mailpit;
mod rights;

use reqwest::Method;
use serde_json::Value;
use tempmail_model::id::{id_time, new_id};
use tempmail_model::surface::DropInSurface;
use tempmail_tests::http::Request;
use tempmail_tests::smtp::send_mail;
use tempmail_tests::{App, Response};

/// The custom domain of the tenant.
const DOMAIN: &str = "shop.example";

/// A drop-in surface with a token for it.
struct Surface {
    app: App,
    surface: DropInSurface,
    token: String,
}

impl Surface {
    async fn start(surface: DropInSurface) -> Self {
        let app = App::builder().drop_ins().start().await;
        app.custom_domain(&app.tenant, DOMAIN).await;
        let token = app.surface_token(&app.tenant, &[surface]).await;
        Self { app, surface, token }
    }

    fn request(&self, method: Method, path: &str) -> Request {
        self.app.drop_in_request(self.surface, method, path).bearer(&self.token)
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Response {
        self.request(method, path).json(body).send().await
    }

    async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await
    }

    async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path).send().await
    }

    /// Sends a mail of many parts, with an image within its HTML and an attachment.
    async fn deliver_whole(&self, recipient: &str, subject: &str) {
        deliver(&self.app, recipient, &whole(recipient, subject)).await;
    }
}

/// Sends a mail.
async fn deliver(app: &App, recipient: &str, message: &[u8]) {
    let reply = send_mail(app.smtp(), "bounce@mailer.example", recipient, message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}

fn whole(recipient: &str, subject: &str) -> Vec<u8> {
    format!(
        "From: =?utf-8?q?Caf=C3=A9?= <hello@mailer.example>\r\nTo: Kim <{recipient}>, lee@elsewhere.example\r\n\
         Cc: copy@elsewhere.example\r\nReply-To: help@mailer.example\r\nSubject: {subject}\r\n\
         Message-ID: <m1@mailer.example>\r\nDate: Tue, 24 Nov 2026 10:00:00 +0100\r\n\
         List-Unsubscribe: <https://mailer.example/u>\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
         --a\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
         Your verification code is 482913=2E\r\nhttps://mailer.example/v?t=3D1\r\n\
         --a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\
         <p>Your verification code is <b>482913</b></p><a href=\"https://mailer.example/v?t=1\">Verify</a>\
         <script>alert(1)</script><img src=\"cid:pic@m\">\r\n\
         --a--\r\n\
         --m\r\nContent-Type: image/png\r\nContent-ID: <pic@m>\r\nContent-Disposition: inline; filename=pic.png\r\n\
         Content-Transfer-Encoding: base64\r\n\r\naW1hZ2U=\r\n\
         --m\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"bill.pdf\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--m--\r\n"
    )
    .into_bytes()
}

/// An id of the same millisecond that nothing has.
fn unknown_like(id: &str) -> String {
    new_id(id_time(id.parse().unwrap()).unwrap()).to_string()
}

/// The texts of a field of the members of a list.
fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|member| member[field].as_str().unwrap()).collect()
}
