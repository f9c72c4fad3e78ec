//! Everything that a team with `edit` can do around the loss of its grant, in every order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::Installation;
use tempmail_tests::http::Response;
use tempmail_tests::kubernetes::{SharedInstallation, Team};
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::{DEADLINE, eventually};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Credential, PAUSED, address, assert_refused, declare_live_token, declare_mailbox, pause};

/// Teams whose objects are declared at a time.
const PREPARED_AT_ONCE: usize = 4;
/// Sequences that are carried out at a time. Each change of an object waits for the operator, which takes minutes for the
/// changes of all teams on a busy machine.
const CARRIED_OUT_AT_ONCE: usize = 24;
/// Sequences whose credentials are tried at once: all of them, all the time, would keep the operator from its work.
const TRIED_AT_ONCE: usize = 8;
/// The objects of a team, those first that others depend on.
const OBJECTS: [&str; 4] = ["customdomain/mail", "apitoken/pro", "apitoken/ci", "mailbox/box"];

/// What a team does to all of its objects; and what happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Pause,
    StripFinalizers,
    Retain,
    Delete,
    LoseGrant,
}

const ACTIONS: [Action; 5] =
    [Action::Pause, Action::StripFinalizers, Action::Retain, Action::Delete, Action::LoseGrant];

/// Every order of up to `longest` different actions, the loss of the grant among them.
fn sequences(longest: usize) -> Vec<Vec<Action>> {
    let (mut all, mut last) = (Vec::new(), vec![Vec::new()]);
    for _ in 0..longest {
        let longer = |sequence: &Vec<Action>| {
            let next = ACTIONS.into_iter().filter(|action| !sequence.contains(action));
            next.map(|action| [sequence.as_slice(), &[action]].concat()).collect::<Vec<_>>()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().filter(|sequence| sequence.contains(&Action::LoseGrant)).cloned());
    }
    all
}

/// Whether the team may have deleted the mail of its objects while it had the grant: it deleted them, by their first
/// policy, and they may have had their finalizers.
fn may_be_deleted(sequence: &[Action]) -> bool {
    let position = |action| sequence.iter().position(|one| *one == action);
    let is_before = |first, second| match (position(first), position(second)) {
        (Some(first), Some(second)) => first < second,
        (first, _) => first.is_some(),
    };
    let is_stripped = is_before(Action::Pause, Action::StripFinalizers)
        && is_before(Action::StripFinalizers, Action::Delete);
    position(Action::Delete).is_some()
        && is_before(Action::Delete, Action::LoseGrant)
        && !is_before(Action::Retain, Action::Delete)
        && !is_stripped
}

/// What a request creates. Where many teams are prepared at once, it may wait too long for a connection, and be answered
/// 503: it is repeated then.
async fn created<F: Future<Output = Response>>(mut request: impl FnMut() -> F) -> Value {
    let answer = eventually("it is created", || {
        let answer = request();
        async {
            let answer = answer.await;
            (answer.status != 503).then_some(answer)
        }
    });
    answer.await.expect(201)
}

/// A team with a domain, tokens and mailboxes.
struct Suspect {
    installation: &'static SharedInstallation,
    team: Team,
    tenant: String,
    credentials: Vec<Credential>,
}

impl Suspect {
    /// Declares the objects, and makes a token and a mailbox over HTTP. Each mailbox has a mail.
    async fn start() -> Self {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        team.apply("CustomDomain", "mail", &format!("domain: {}", team.domain("mail"))).await;
        team.wait_for_condition("customdomain/mail", "Accepted").await;
        team.apply_ready("ApiToken", "pro", "type: Pro").await;
        let pro = team.secret_value("pro-token", "token").await;
        let mut credentials =
            vec![declare_live_token(&team).await, declare_mailbox(installation, &team, "").await];
        let body = json!({"name": "http", "kind": "live"});
        let live =
            created(|| installation.request(Method::POST, "/pro/api/tokens").bearer(&pro).json(&body).send());
        let live = live.await["token"].as_str().expect("a token").to_owned();
        let http = format!("{}-http@{SYSTEM_DOMAIN}", team.tenant);
        let mailbox = created(|| installation.create_mailbox(Some(&pro), &http, "correct horse")).await;
        let jwt = mailbox["token"].as_str().expect("a JWT").to_owned();
        credentials.extend([Credential::Live(live), Credential::Jwt(jwt), Credential::Pro(pro)]);
        for address in [address(&team), http] {
            installation.app.deliver(&address, "kept", "").await;
        }
        Self { tenant: team.tenant_id().await, installation, team, credentials }
    }

    /// Does it to every object that is left.
    async fn act(&self, action: Action) {
        if action == Action::LoseGrant {
            self.team.revoke_grant().await;
            return;
        }
        for object in OBJECTS {
            if self.team.get_opt(object).await.is_some() {
                self.act_on(action, object).await;
            }
        }
    }

    async fn act_on(&self, action: Action, object: &str) {
        let team = &self.team;
        match action {
            Action::Pause => pause(team, object).await,
            Action::StripFinalizers => {
                team.patch(object, &json!({"metadata": {"finalizers": null}})).await;
            }
            Action::Retain if object.starts_with("apitoken") => {}
            Action::Retain => {
                team.patch(object, &json!({"spec": {"deletionPolicy": "Retain"}})).await;
            }
            Action::Delete => team.delete(object).await,
            Action::LoseGrant => unreachable!("it is about no object"),
        }
    }

    /// Carries out a sequence; after the loss no credential works, to the end.
    async fn run(&self, sequence: &[Action], trying: &Semaphore, bound: Duration) {
        for action in sequence {
            self.act(*action).await;
            if *action == Action::LoseGrant {
                let lost_at = Instant::now();
                let _trying = trying.acquire().await.expect("it is never closed");
                assert_refused(self.installation, &self.credentials, lost_at, bound).await;
            }
        }
        for object in OBJECTS {
            if self.team.get_opt(object).await.is_some() {
                self.team.remove_annotation(object, PAUSED).await;
            }
        }
        for credential in &self.credentials {
            assert_eq!(credential.status(self.installation).await, 401, "{sequence:?}: {credential:?}");
        }
        self.assert_kept(sequence).await;
    }

    /// Asserts that nothing of the tenant was destroyed.
    async fn assert_kept(&self, sequence: &[Action]) {
        let mails = self.installation.visible_messages(&self.tenant).await;
        if may_be_deleted(sequence) {
            assert!(mails >= 1, "{sequence:?}: the mail of what no object declares");
            return;
        }
        assert_eq!(mails, 2, "{sequence:?}");
        assert!(self.installation.domain_exists(&self.team.domain("mail")).await, "{sequence:?}");
    }
}

/// Carries out all sequences of up to `longest` actions, many at once, each in a namespace and a tenant of its own, and
/// asserts that no credential is accepted later than `bound` after the loss of its grant.
pub(super) async fn run_all(longest: usize, bound: Duration) {
    let suspects =
        stream::iter(sequences(longest)).map(|sequence| async { (sequence, Suspect::start().await) });
    let suspects: Vec<_> = suspects.buffer_unordered(PREPARED_AT_ONCE).collect().await;
    let [carrying_out, trying] =
        [CARRIED_OUT_AT_ONCE, TRIED_AT_ONCE].map(|permits| Arc::new(Semaphore::new(permits)));
    let mut running = JoinSet::new();
    for (sequence, suspect) in suspects {
        let [carrying_out, trying] = [&carrying_out, &trying].map(Arc::clone);
        running.spawn(async move {
            let _carrying_out = carrying_out.acquire().await.expect("it is never closed");
            suspect.run(&sequence, &trying, bound).await;
        });
    }
    running.join_all().await;
}

#[test]
fn every_order_is_among_the_sequences() {
    let all = sequences(4);
    assert_eq!(all.len(), 1 + 2 * 4 + 3 * 12 + 4 * 24);
    assert!(all.contains(&vec![Action::Pause, Action::StripFinalizers, Action::Delete, Action::LoseGrant]));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_team_does_keeps_its_access_or_destroys_data() {
    run_all(2, DEADLINE).await;
}
