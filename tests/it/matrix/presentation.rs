//! Every way to present a credential, valid or not.

use tempmail_model::token::{PlainToken, TokenKind};

use super::credential::{CredentialKind, Identity, PresentedCredentials};
use super::fixture::{Credential, MatrixFixture};

/// No credential, each credential in each place, invalid ones, and valid ones beside ignored ones.
pub(super) fn presentations(fixture: &MatrixFixture) -> Vec<PresentedCredentials> {
    let mut all = vec![PresentedCredentials::none("nothing"), empty()];
    all.extend(["Bearer", "Bearer ", "bearer"].map(empty_bearer));
    let live = &fixture.app.tenant.live;
    all.extend(fixture.credentials.iter().flat_map(|credential| everywhere(credential, live)));
    all.extend(invalid_authorization(fixture));
    all.extend(invalid_live_tokens(fixture));
    all.extend(beside_ignored(fixture));
    all
}

fn empty() -> PresentedCredentials {
    let (kind, identity) = (CredentialKind::Empty, Identity::Anonymous);
    let none = PresentedCredentials::none("empty header fields");
    none.authorization("", kind, identity).x_api_token("", kind, identity).query("", kind, identity)
}

fn empty_bearer(value: &str) -> PresentedCredentials {
    let none = PresentedCredentials::none(format!("Authorization: {value}"));
    none.authorization(value, CredentialKind::Empty, Identity::Anonymous)
}

/// A credential in each place, and in the query beside a live token of A.
fn everywhere(credential: &Credential, live: &str) -> [PresentedCredentials; 4] {
    let Credential { name, kind, identity, secret } = credential;
    let none = |place: &str| PresentedCredentials::none(format!("{name} {place}"));
    [
        none("as Bearer").authorization(&format!("Bearer {secret}"), *kind, *identity),
        none("as x-api-token").x_api_token(secret, *kind, *identity),
        none("in the query").query(secret, *kind, *identity),
        none("in the query and a live token of A as x-api-token")
            .x_api_token(live, CredentialKind::Live, Identity::A)
            .query(secret, *kind, *identity),
    ]
}

fn invalid_authorization(fixture: &MatrixFixture) -> Vec<PresentedCredentials> {
    let (pro, jwt) = (&fixture.app.tenant.pro, &fixture.mailbox_a.jwt);
    let unknown = |kind| PlainToken::generate(kind).unwrap().expose().to_owned();
    let (head, signature) = jwt.rsplit_once('.').unwrap();
    let values = [
        "Bearer x",
        "Basic",
        "x",
        "Bearer tm_pro_",
        "Bearer a.b.c",
        "Basic YTpi",
        &format!("Basic {pro}"),
        &format!("Bearer {}", unknown(TokenKind::Pro)),
        &format!("Bearer {}", unknown(TokenKind::Live)),
        &format!("Bearer {pro}0"),
        &format!("Bearer {} ", pro.to_uppercase()),
        &format!("Bearer {pro}, Bearer {pro}"),
        &format!("Bearer {head}."),
        &format!("Bearer {head}.{}", signature.chars().rev().collect::<String>()),
        pro,
        jwt,
    ];
    let present = |value: &str| {
        PresentedCredentials::none(format!("Authorization: {value}")).authorization(
            value,
            CredentialKind::Junk,
            Identity::Anonymous,
        )
    };
    values.into_iter().map(present).collect()
}

fn invalid_live_tokens(fixture: &MatrixFixture) -> Vec<PresentedCredentials> {
    let live = &fixture.app.tenant.live;
    let unknown = |kind| PlainToken::generate(kind).unwrap().expose().to_owned();
    let values = [
        "x",
        "tm_live_",
        &unknown(TokenKind::Live),
        &unknown(TokenKind::Pro),
        &format!("{live}0"),
        &live[..live.len() - 1],
        &live.to_uppercase(),
        &format!("Bearer {live}"),
        &format!("{live}, {live}"),
    ];
    let (kind, identity) = (CredentialKind::Junk, Identity::Anonymous);
    let present = |value: &str| {
        [
            PresentedCredentials::none(format!("x-api-token: {value}")).x_api_token(value, kind, identity),
            PresentedCredentials::none(format!("token={value}")).query(value, kind, identity),
        ]
    };
    values.into_iter().flat_map(present).collect()
}

/// A header that the surface does not read changes nothing.
fn beside_ignored(fixture: &MatrixFixture) -> [PresentedCredentials; 2] {
    let (pro, live) = (&fixture.app.tenant.pro, &fixture.app.tenant.live);
    let (kind, identity) = (CredentialKind::Junk, Identity::Anonymous);
    [
        PresentedCredentials::none("a Pro token of A, and junk as x-api-token")
            .authorization(&format!("bearer {pro}"), CredentialKind::Pro, Identity::A)
            .x_api_token("junk", kind, identity),
        PresentedCredentials::none("a live token of A, and junk as Authorization")
            .authorization("junk", kind, identity)
            .x_api_token(live, CredentialKind::Live, Identity::A),
    ]
}
