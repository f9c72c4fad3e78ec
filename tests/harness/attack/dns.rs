//! Custom domains whose name servers never answer.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tokio::time::sleep;

use super::http::{client, count};
use super::{Attack, AttackLog, AttackTarget};
use crate::dns::{NameServerFault, TestDns};
use crate::http::{self, Request};

/// Domains of the attacker, as many as its tenant may have.
const DOMAINS: usize = 10;
/// Name servers of each.
const SERVERS: usize = 2;
/// Time between two checks of a domain: more often than it is allowed.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A DNS in which the name servers of the attacker's domains are silent.
pub async fn silent_dns() -> TestDns {
    let dns = TestDns::start().await;
    for number in 0..DOMAINS {
        for server in dns.domain(&domain(number), SERVERS).await {
            server.set_fault(NameServerFault::Silent);
        }
    }
    dns
}

fn domain(number: usize) -> String {
    format!("silent{number}.test")
}

/// Checks of domains whose name servers never answer, as often as their tenant may ask for them.
pub(super) struct SilentNameServers {
    ids: Vec<String>,
}

impl SilentNameServers {
    pub(super) async fn prepare(target: &AttackTarget) -> Self {
        let mut ids = Vec::new();
        for number in 0..DOMAINS {
            let request = Request::new(&http::client(), Method::POST, &target.url("/pro/api/domains"));
            let request = request.bearer(&target.attacker.pro).json(&json!({ "domain": domain(number) }));
            let created = request.send().await.expect(201);
            ids.push(created["id"].as_str().expect("the creation returns an id").to_owned());
        }
        Self { ids }
    }

    async fn check_again_and_again(target: &AttackTarget, log: &AttackLog, id: &str) {
        let client = client(target);
        let url = target.url(&format!("/pro/api/domains/{id}/verify"));
        loop {
            count(log, "", client.post(&url).bearer_auth(&target.attacker.pro)).await;
            sleep(CHECK_EVERY).await;
        }
    }
}

#[async_trait::async_trait]
impl Attack for SilentNameServers {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        let ids = self.ids.iter().map(String::as_str);
        join_all(ids.map(|id| Self::check_again_and_again(target, log, id))).await;
    }
}
