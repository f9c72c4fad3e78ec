//! What the tools do.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempmail_client::{
    Client, FoundCode, FoundLink, LinkOutcome, RequestedAddress, WaitOutcome, is_safe_code, safe_link,
};

use crate::arguments::{
    DeleteAllMail, DeleteMail, GetCode, GetLink, ListMail, MakeAddress, ReadMail, ToolError, WaitForMail,
};
use crate::catalogue::ToolName;
use crate::reading::{self, Untrusted, safe_id};

/// Whether there are tools that delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// There are.
    Allowed,
    /// There are none.
    Forbidden,
}

/// The result of a tool: what this program says, and what senders wrote.
struct ToolResult {
    facts: Value,
    untrusted: Option<Untrusted>,
}

/// Calls a tool. An error is a result, too: what called it reads it and may do something else.
pub(crate) async fn call(client: &Client, tool: ToolName, arguments: JsonObject) -> CallToolResult {
    match run(client, tool, arguments).await.and_then(result) {
        Ok(result) => result,
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}

/// Facts alone are structured content as well. Beside untrusted text they are not: a client that shows its model only
/// structured content would show it nothing of the fence.
fn result(result: ToolResult) -> Result<CallToolResult, ToolError> {
    let ToolResult { facts, untrusted } = result;
    Ok(match untrusted {
        None => CallToolResult::structured(facts),
        Some(untrusted) => {
            let facts = ContentBlock::text(facts.to_string());
            CallToolResult::success(vec![facts, ContentBlock::text(untrusted.fenced()?)])
        }
    })
}

async fn run(client: &Client, tool: ToolName, arguments: JsonObject) -> Result<ToolResult, ToolError> {
    match tool {
        ToolName::MakeAddress => make_address(client, parse(arguments)?).await,
        ToolName::WaitForMail => wait_for_mail(client, &parse(arguments)?).await,
        ToolName::GetCode => get_code(client, &parse(arguments)?).await,
        ToolName::GetLink => get_link(client, &parse(arguments)?).await,
        ToolName::ListMail => list_mail(client, &parse(arguments)?).await,
        ToolName::ReadMail => read_mail(client, &parse(arguments)?).await,
        ToolName::DeleteMail => delete_mail(client, &parse(arguments)?).await,
        ToolName::DeleteAllMail => delete_all_mail(client, &parse(arguments)?).await,
    }
}

/// Reads arguments as models and their clients write them: an optional one that is not meant may be `null` or `""`,
/// and an integer may be `30.0`.
fn parse<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ToolError> {
    let given = arguments.into_iter().filter(|(_, value)| !value.is_null() && value != "");
    let arguments = given.map(|(name, value)| (name, whole(&value).unwrap_or(value)));
    serde_json::from_value(Value::Object(arguments.collect()))
        .map_err(|error| ToolError::Arguments(format!("The arguments are invalid: {error}.")))
}

/// The integer that a number without a fraction is.
fn whole(value: &Value) -> Option<Value> {
    let number = value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0 && *number >= 0.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is cut off is beyond all bounds"
    )]
    Some((number as u64).into())
}

fn facts(facts: Value) -> ToolResult {
    ToolResult { facts, untrusted: None }
}

async fn make_address(client: &Client, arguments: MakeAddress) -> Result<ToolResult, ToolError> {
    let MakeAddress { domain, local_part } = arguments;
    let made = client.make_address(&RequestedAddress { domain, local_part }).await?;
    Ok(facts(json!(made)))
}

async fn wait_for_mail(client: &Client, arguments: &WaitForMail) -> Result<ToolResult, ToolError> {
    let (mut request, timeout) = arguments.wait()?;
    request.matching.has = arguments.features();
    let found = match client.wait(&request, timeout).await? {
        WaitOutcome::Found(found) => found,
        WaitOutcome::Nothing { next_since } => return Err(ToolError::NothingInTime { next_since }),
    };
    let codes = found.extraction.codes.iter().filter(|code| is_safe_code(&code.code)).count();
    let links = found.extraction.links.iter().filter_map(safe_link).count();
    let mut untrusted = Untrusted::default();
    reading::summary(&found.email, &mut untrusted);
    let facts = json!({
        "id": safe_id(&found.email.id),
        "received": found.email.created_at,
        "codes": codes,
        "links": links,
        "next_since": found.next_since,
    });
    Ok(ToolResult { facts, untrusted: Some(untrusted) })
}

async fn get_code(client: &Client, arguments: &GetCode) -> Result<ToolResult, ToolError> {
    let (request, timeout) = arguments.wait()?;
    match client.wait_for_code(&request, timeout).await? {
        WaitOutcome::Nothing { next_since } => Err(ToolError::NothingInTime { next_since }),
        WaitOutcome::Found(FoundCode { code, confidence, email, next_since, .. }) => Ok(facts(json!({
            "code": code,
            "confidence": confidence,
            "mail_id": safe_id(&email.id),
            "next_since": next_since,
        }))),
    }
}

async fn get_link(client: &Client, arguments: &GetLink) -> Result<ToolResult, ToolError> {
    let filter = arguments.filter()?;
    let (request, timeout) = arguments.wait()?;
    let FoundLink { link, email, next_since } = match client.wait_for_link(&request, &filter, timeout).await?
    {
        WaitOutcome::Nothing { next_since } => return Err(ToolError::NothingInTime { next_since }),
        WaitOutcome::Found(LinkOutcome::OtherHost { hosts, next_since }) => {
            return Err(ToolError::OtherHost { hosts, next_since });
        }
        WaitOutcome::Found(LinkOutcome::Found(found)) => *found,
    };
    let mut answer = json!(link);
    answer["mail_id"] = json!(safe_id(&email.id));
    answer["next_since"] = json!(next_since);
    Ok(facts(answer))
}

async fn list_mail(client: &Client, arguments: &ListMail) -> Result<ToolResult, ToolError> {
    let listed = client.list(&arguments.scope()?, arguments.limit()?).await?;
    let mut untrusted = Untrusted::default();
    for (number, email) in listed.emails.iter().enumerate() {
        untrusted.field("mail", &(number + 1).to_string());
        reading::summary(email, &mut untrusted);
    }
    let mails = listed.emails.iter().enumerate().map(
        |(number, email)| json!({"mail": number + 1, "id": safe_id(&email.id), "received": email.created_at}),
    );
    let facts = json!({"mails": mails.collect::<Vec<_>>(), "next_since": listed.next_since});
    Ok(ToolResult { facts, untrusted: (!listed.emails.is_empty()).then_some(untrusted) })
}

async fn read_mail(client: &Client, arguments: &ReadMail) -> Result<ToolResult, ToolError> {
    let (id, characters) = (arguments.id()?, arguments.characters()?);
    let reading::Reading { facts, untrusted } = reading::read(&client.email(id).await?, characters);
    Ok(ToolResult { facts, untrusted: Some(untrusted) })
}

async fn delete_mail(client: &Client, arguments: &DeleteMail) -> Result<ToolResult, ToolError> {
    client.delete_email(arguments.id()?).await?;
    Ok(facts(json!({"deleted": true})))
}

async fn delete_all_mail(client: &Client, arguments: &DeleteAllMail) -> Result<ToolResult, ToolError> {
    client.clear_inbox(&arguments.address).await?;
    Ok(facts(json!({"deleted": true})))
}
