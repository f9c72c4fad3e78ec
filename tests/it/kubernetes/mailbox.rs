//! Mailboxes, declared.

mod address;
mod cost;
mod deletion;
mod rights;
mod secret;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::World;
use tempmail_tests::http::Response;
use tempmail_tests::kubernetes::{SharedWorld, Team};

/// A team of the test's own, and a system domain.
struct Scene {
    world: &'static SharedWorld,
    team: Team<'static>,
    domain: String,
}

impl Scene {
    async fn start() -> Self {
        Self::with("").await
    }

    /// The tenant's spec has these further lines.
    async fn with(spec: &str) -> Self {
        let world = World::shared().await;
        let team = Team::with(world.cluster, spec).await;
        let domain = team.domain("sys");
        world.app.tempmail(&format!("system-domain add {domain}")).await.success();
        Self { world, team, domain }
    }

    fn address(&self, local_part: &str) -> String {
        format!("{local_part}@{}", self.domain)
    }

    /// Declares a mailbox of this local part and name, with more of its spec.
    async fn declare(&self, name: &str, more: &str) {
        let spec = format!("address: {}{more}", self.address(name));
        self.team.apply("Mailbox", name, &spec).await.expect("it is taken");
    }

    /// Declares it, and waits until it is ready.
    async fn ready(&self, name: &str, more: &str) -> Value {
        self.declare(name, more).await;
        self.team.wait(&format!("mailbox/{name}"), "Ready").await
    }

    /// Waits until it is not ready, for this reason.
    async fn refused(&self, name: &str, reason: &str) -> Value {
        self.team.wait_for_reason(&format!("mailbox/{name}"), "Ready", reason).await
    }

    /// Has the operator look at it now.
    async fn nudge(&self, name: &str) {
        let object = format!("mailbox/{name}");
        self.team
            .kubectl(&["annotate", &object, &format!("test={}", uuid::Uuid::new_v4()), "--overwrite"])
            .await
            .expect("it is there");
    }

    /// A value of the mailbox's Secret.
    async fn told(&self, name: &str, key: &str) -> String {
        let (secret, template) =
            (format!("{name}-mailbox"), format!("go-template={{{{.data.{key} | base64decode}}}}"));
        self.team.kubectl(&["get", "secret", &secret, "-o", &template]).await.expect("the Secret is there")
    }

    async fn try_to_sign_in(&self, name: &str, password: &str) -> Response {
        let credentials = json!({"address": self.address(name), "password": password});
        self.world.request(Method::POST, "/api/token").json(&credentials).send().await
    }

    /// Signs in with the password of the Secret; a JWT.
    async fn sign_in(&self, name: &str) -> String {
        let signed_in = self.try_to_sign_in(name, &self.told(name, "password").await).await.expect(200);
        signed_in["token"].as_str().expect("a JWT").to_owned()
    }

    async fn messages(&self, jwt: &str) -> Response {
        self.world.request(Method::GET, "/api/messages").bearer(jwt).send().await
    }

    /// Asserts that its only mail has this subject.
    async fn shows(&self, jwt: &str, subject: &str) {
        let messages = self.messages(jwt).await.expect(200)["messages"].clone();
        let subjects: Vec<&Value> =
            messages.as_array().expect("a list").iter().map(|message| &message["subject"]).collect();
        assert_eq!(subjects, [subject]);
    }

    /// Makes a mailbox over HTTP: a free one, or with a Pro token its tenant's.
    async fn create(&self, name: &str, pro: Option<&str>) -> Response {
        let request = self.world.request(Method::POST, "/api/accounts");
        let request = match pro {
            Some(token) => request.bearer(token),
            None => request,
        };
        request.json(&json!({"address": self.address(name), "password": "correct horse"})).send().await
    }

    /// A Pro token of a team's tenant.
    async fn pro(&self, team: &Team<'_>) -> String {
        let made = self.world.app.tempmail(&format!("token create {} --kind pro", team.tenant)).await;
        made.success().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_is_signed_in_to_with_what_its_secret_says() {
    let scene = Scene::start().await;
    let shown = scene.ready("box", "").await;
    assert_eq!(shown["status"]["secretName"], "box-mailbox");
    assert_eq!(scene.told("box", "address").await, scene.address("box"));
    assert_eq!(scene.told("box", "password").await.len(), 32);
    let jwt = scene.sign_in("box").await;
    scene.world.app.deliver(&scene.address("box"), "hello", "").await;
    scene.shows(&jwt, "hello").await;
    let me = scene.world.request(Method::GET, "/api/me").bearer(&jwt).send().await.expect(200);
    assert_eq!((&me["id"], &me["role"]), (&shown["status"]["mailboxId"], &json!("pro")));
}

#[tokio::test(flavor = "multi_thread")]
async fn http_leaves_it_as_it_is() {
    let scene = Scene::start().await;
    let shown = scene.ready("box", "").await;
    let (jwt, pro) = (scene.sign_in("box").await, scene.pro(&scene.team).await);
    let path = format!("/pro/api/accounts/{}", shown["status"]["mailboxId"].as_str().expect("an id"));
    let request = |method, path: &str, token: &str| scene.world.request(method, path).bearer(token);
    let password = json!({"password": "correct horse"});
    let reset = request(Method::PUT, &format!("{path}/reset-password"), &pro).json(&password).send().await;
    reset.assert_api_error(409, "managed_by_kubernetes");
    request(Method::DELETE, &path, &pro).send().await.assert_api_error(409, "managed_by_kubernetes");
    request(Method::DELETE, "/api/me", &jwt).send().await.assert_api_error(409, "managed_by_kubernetes");
    scene.messages(&jwt).await.expect(200);
}
