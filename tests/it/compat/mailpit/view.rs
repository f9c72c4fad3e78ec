//! `/view/{id}.html` and `.txt`

use super::{mailpit, newest};

#[tokio::test(flavor = "multi_thread")]
async fn shows_bodies_without_letting_them_run() {
    let mailpit = mailpit().await;
    mailpit.deliver_whole("kim@shop.example", "one").await;
    let id = newest(&mailpit).await;
    let html = mailpit.get(&format!("/view/{id}.html")).await;
    assert_eq!((html.status, html.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(html.text().contains("<script>alert(1)</script>"), "as received");
    let policy = html.header("content-security-policy");
    assert!(policy.starts_with("sandbox; default-src 'none'") && !policy.contains("allow-"), "{policy}");
    assert_eq!(html.header("x-content-type-options"), "nosniff");
    assert_eq!(html.header("cross-origin-resource-policy"), "same-origin");
    assert_eq!(mailpit.get(&format!("//view/{id}.html")).await.body, html.body, "as clients join it");
    let text = mailpit.get(&format!("/view/{id}.txt")).await;
    assert_eq!((text.status, text.header("content-type")), (200, "text/plain; charset=utf-8"));
    assert!(text.text().starts_with("Your verification code is 482913."));
    let embedded = mailpit.get("/view/latest.html?embed=1").await;
    assert!(embedded.status == 200 && !embedded.text().contains("script"), "{}", embedded.text());
    assert!(embedded.text().contains("data:image/png;base64,"), "{}", embedded.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_without_html_or_message() {
    let mailpit = mailpit().await;
    mailpit.app.deliver("kim@shop.example", "one", "text").await;
    for path in
        ["/view/latest.html", "/view/latest.html?embed=1", "/view/x.txt", "/view/latest", "/view/latest.pdf"]
    {
        assert_eq!(mailpit.get(path).await.status, 404, "{path}");
    }
}
