//! Mails for the page to show.

/// Text, HTML and an attachment.
pub(crate) fn with_attachment(html: &str) -> Vec<u8> {
    format!(
        "From: Ada Lovelace <ada@client.example>\r\nTo: someone@inbox.localhost\r\nSubject: The engine\r\n\
         MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
         --a\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nThe plain engine: https://client.example/plain\r\n\
         --a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n--a--\r\n\
         --m\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"report.pdf\"\r\n\r\n\
         %PDF-report\r\n--m--\r\n"
    )
    .into_bytes()
}

/// HTML alone.
pub(crate) fn with_html(subject: &str, html: &str) -> Vec<u8> {
    format!(
        "From: Ada Lovelace <ada@client.example>\r\nTo: someone@inbox.localhost\r\nSubject: {subject}\r\n\
         MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n"
    )
    .into_bytes()
}
