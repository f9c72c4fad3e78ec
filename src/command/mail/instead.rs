//! What came instead of the mail that a command waited for, and why that was not taken.

use std::time::Duration;

use serde::Serialize;
use tempmail_client::shown_text::escaped_line;
use tempmail_client::{
    Client, EmailSummary, Error, Extraction, LinkKind, WaitRequest, is_safe_code, safe_link,
};
use tokio::time::timeout;

/// Mails that are told of, at most.
const TOLD_MAX: usize = 20;
/// How long it takes to tell of them, at most: the command has waited for its mail already.
const TELL_TIME: Duration = Duration::from_secs(10);

/// What a command takes from a mail.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// The mail.
    Email,
    /// Its code.
    Code,
    /// Its link, of this kind.
    Link(Option<LinkKind>),
}

/// A mail that was not taken.
#[derive(Debug, Serialize)]
pub(in crate::command) struct Instead {
    id: String,
    address: String,
    from_email: String,
    subject: String,
    created_at: String,
    /// Why: an English sentence without a full stop.
    reason: &'static str,
}

/// The mails that came instead of one that was requested, oldest first, at most 20; `None` where the server does not tell
/// within 10 s.
pub(super) async fn of(client: &Client, request: &WaitRequest, wanted: Wanted) -> Option<Vec<Instead>> {
    timeout(TELL_TIME, told(client, request, wanted)).await.ok().flatten()
}

async fn told(client: &Client, request: &WaitRequest, wanted: Wanted) -> Option<Vec<Instead>> {
    let came = client.list_since(&request.scope, request.since.as_deref()).await.ok()?;
    let is_late = |email: &EmailSummary| {
        request
            .after
            .is_none_or(|after| email.created_at.parse().is_ok_and(|time: jiff::Timestamp| time > after))
    };
    let mut told = Vec::new();
    for email in came.into_iter().filter(is_late).take(TOLD_MAX) {
        let reason = match reason(client, &email, wanted).await {
            Ok(reason) => reason,
            // Deleted meanwhile.
            Err(Error::Refused { status, .. }) if status == 404 => continue,
            Err(_) => break,
        };
        let EmailSummary { id, address, from_email, subject, created_at, .. } = email;
        told.push(Instead { id, address, from_email, subject, created_at, reason });
    }
    Some(told)
}

async fn reason(client: &Client, email: &EmailSummary, wanted: Wanted) -> Result<&'static str, Error> {
    const NO_MATCH: &str = "it is not what was asked for";
    Ok(match wanted {
        Wanted::Email => NO_MATCH,
        Wanted::Code => without_code(&client.extraction(&email.id).await?).unwrap_or(NO_MATCH),
        Wanted::Link(kind) => without_link(&client.extraction(&email.id).await?, kind).unwrap_or(NO_MATCH),
    })
}

fn without_code(Extraction { codes, .. }: &Extraction) -> Option<&'static str> {
    if codes.is_empty() {
        Some("no code was found in it")
    } else if !codes.iter().any(|code| is_safe_code(&code.code)) {
        Some("its code is not 4 to 12 of A-Z a-z 0-9 -")
    } else {
        None
    }
}

fn without_link(Extraction { links, .. }: &Extraction, kind: Option<LinkKind>) -> Option<&'static str> {
    let mut safe = links.iter().filter_map(safe_link).peekable();
    if links.is_empty() {
        Some("no link to act on was found in it")
    } else if safe.peek().is_none() {
        Some("its link is not an http or https URL of at most 2,048 ASCII characters without user info")
    } else if kind.is_some_and(|kind| !safe.any(|link| link.kind == kind)) {
        Some("its link is of another kind")
    } else {
        None
    }
}

/// What follows the message that nothing came: a line for each mail.
pub(in crate::command) fn lines(instead: Option<&[Instead]>) -> String {
    match instead {
        None => String::new(),
        Some([]) => {
            "; no other mail came either: check that the application sends to this address, by the SMTP server of tempmail"
                .to_owned()
        }
        Some(mails) => mails.iter().fold("; this came instead:".to_owned(), |text, mail| {
            let Instead { address, from_email, subject, created_at, reason, .. } = mail;
            let line = format!("{created_at} \"{subject}\" from {from_email} to {address}: {reason}");
            text + "\n  " + &escaped_line(&line)
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extraction(codes: &[&str], links: &[(&str, &str)]) -> Extraction {
        let codes: Vec<_> = codes
            .iter()
            .map(|code| json!({"code": code, "confidence": 1.0, "source": "text", "reason": ""}))
            .collect();
        let links: Vec<_> = links
            .iter()
            .map(|(kind, url)| {
                json!({"url": url, "kind": kind, "text": "", "host": "", "host_matches_from": true,
                       "confidence": 1.0, "source": "text", "reason": ""})
            })
            .collect();
        serde_json::from_value(json!({"codes": codes, "links": links})).unwrap()
    }

    #[test]
    fn says_why_nothing_was_taken() {
        let code = |codes: &[&str]| without_code(&extraction(codes, &[]));
        assert_eq!(code(&[]), Some("no code was found in it"));
        assert_eq!(code(&["12 34"]), Some("its code is not 4 to 12 of A-Z a-z 0-9 -"));
        assert_eq!(code(&["12 34", "1234"]), None);

        let link = |links: &[(&str, &str)], kind| without_link(&extraction(&[], links), kind);
        let good = ("confirm", "https://shop.example/v");
        assert_eq!(link(&[], None), Some("no link to act on was found in it"));
        assert!(link(&[("confirm", "ftp://shop.example/v")], None).is_some_and(|why| why.contains("http")));
        assert_eq!(link(&[good], Some(LinkKind::Unlock)), Some("its link is of another kind"));
        assert_eq!((link(&[good], Some(LinkKind::Confirm)), link(&[good], None)), (None, None));
    }

    #[test]
    fn keeps_each_mail_on_its_line() {
        let mail = Instead {
            id: String::new(),
            address: "a@b.example".into(),
            from_email: "c@d.example".into(),
            subject: "x\ny\u{202e}".into(),
            created_at: "2026-11-24T10:00:00Z".into(),
            reason: "no code was found in it",
        };
        let text = lines(Some(&[mail]));
        let line =
            r#"2026-11-24T10:00:00Z "x\ny\u{202e}" from c@d.example to a@b.example: no code was found in it"#;
        assert_eq!(text, format!("; this came instead:\n  {line}"));
    }
}
