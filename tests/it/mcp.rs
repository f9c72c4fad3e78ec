//! The Model Context Protocol, over `POST /mcp` and `tempmail mcp`.

mod authorization;
mod tools;

use std::collections::HashMap;
use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::Value;
use tempmail_runtime::config::Config;
use tempmail_tests::binary::program;
use tempmail_tests::{App, send_mail};
use tokio::process::{Child, Command};

/// How a client reaches the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http,
}

const TRANSPORTS: [Transport; 2] = [Transport::Stdio, Transport::Http];

/// An app in which the rate of a token is no obstacle, and `mcp.allow_delete` is this.
async fn app(allow_delete: bool) -> App {
    let settings = |config: &mut Config| {
        config.limits.v1_per_second = 1_000;
        config.mcp.allow_delete = allow_delete;
    };
    App::builder().config(settings).start().await
}

/// A client of the tools, as the official SDK has it.
struct Session {
    client: RunningService<RoleClient, ()>,
    _program: Option<Child>,
}

impl Session {
    /// As the tenant of the test. `allow_delete` is the argument of `tempmail mcp`; over HTTP it is a setting of the app.
    async fn open(app: &App, transport: Transport, allow_delete: bool) -> Self {
        match transport {
            Transport::Stdio => Self::start(app, allow_delete).await,
            Transport::Http => Self::connect(app, &app.tenant.live).await,
        }
    }

    async fn start(app: &App, allow_delete: bool) -> Self {
        let mut command = Command::new(program());
        command.arg("mcp").args(allow_delete.then_some("--allow-delete")).env_clear();
        command.env("TEMPMAIL_CLIENT_URL", format!("http://{}", app.http()));
        command.env("TEMPMAIL_CLIENT_TOKEN", &app.tenant.live);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut program = command.spawn().expect("the program starts");
        let (stdout, stdin) = (program.stdout.take().unwrap(), program.stdin.take().unwrap());
        let client = ().serve((stdout, stdin)).await.expect("the program speaks the protocol");
        Self { client, _program: Some(program) }
    }

    async fn connect(app: &App, live: &str) -> Self {
        let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", app.http()))
            .custom_headers(HashMap::from([("x-api-token".parse().unwrap(), live.parse().unwrap())]));
        let client = reqwest_client();
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let client = ().serve(transport).await.expect("the server speaks the protocol");
        Self { client, _program: None }
    }

    /// Names of the tools.
    async fn tools(&self) -> Vec<String> {
        let tools = self.client.list_all_tools().await.expect("tools are listed");
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    /// The result of a tool, which may be an error.
    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.client.call_tool(params).await.expect("the tool answers")
    }

    /// What a tool says of itself, and what it has fenced.
    async fn success(&self, tool: &'static str, arguments: Value) -> (Value, String) {
        let result = self.call(tool, arguments).await;
        let texts = texts(&result);
        assert_ne!(result.is_error, Some(true), "{tool}: {texts:?}");
        let facts: Value = serde_json::from_str(&texts[0]).expect("facts are JSON");
        if let Some(structured) = &result.structured_content {
            assert!(*structured == facts && texts.len() == 1, "{result:?}");
        }
        (facts, texts.get(1).cloned().unwrap_or_default())
    }

    /// The sentence of a tool that failed.
    async fn failure(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        let texts = texts(&result);
        assert!(result.is_error == Some(true) && texts.len() == 1, "{tool}: {texts:?}");
        texts[0].clone()
    }
}

/// A client without a proxy.
fn reqwest_client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn texts(result: &CallToolResult) -> Vec<String> {
    result.content.iter().map(|block| block.as_text().expect("tools answer with text").text.clone()).collect()
}

/// Delivers a mail of `tests/fixtures/orders` or of this text.
async fn deliver(app: &App, address: &str, message: &[u8]) {
    let reply = send_mail(app.smtp(), "sender@client.example", address, message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}
