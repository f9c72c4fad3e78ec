//! The table of all keys: what the environment may set, how its text is read, and the
//! reference that `tempmail config` prints.

use std::fmt::Write as _;

use super::Config;

/// How the text of an environment variable is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// As it stands.
    Text,
    /// As it stands, never printed, and `…_FILE` names a file that holds it.
    Secret,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Switch,
    /// `a,b` or a JSON array.
    List,
    /// A JSON or YAML list of `{kid, secret}`; `…_FILE` names a file that holds it.
    KeyList,
}

/// One key.
pub(super) struct KeyDoc {
    /// Its name with dots, as in the file.
    pub path: &'static str,
    /// How a variable's text is read.
    pub kind: Kind,
    /// What a right value is, to complete "must be …".
    pub expected: &'static str,
    /// What it does.
    pub doc: &'static str,
}

const fn key(path: &'static str, kind: Kind, expected: &'static str, doc: &'static str) -> KeyDoc {
    KeyDoc { path, kind, expected, doc }
}

const fn count(path: &'static str, doc: &'static str) -> KeyDoc {
    key(path, Kind::Number, "a whole number above 0", doc)
}

const SOCKET: &str = "an IP address with port, such as 0.0.0.0:8080 or [::]:8080";
const NETWORKS: &str = "a list of networks, such as 10.0.0.0/8";
const RING: &str = "a list of {kid, secret}";
const SWITCH: &str = "true or false";
const HOURS: &str = "1, 6, 24, 72, 168 or 720";

/// Every key there is.
pub(super) const KEYS: &[KeyDoc] = &[
    key(
        "postgres.url",
        Kind::Secret,
        "a URL, such as postgres://user:password@host/database",
        "Postgres; each role may have a database user of its own. Required, except by `up`.",
    ),
    count(
        "postgres.pool",
        "Connections a role holds at most; `api` holds one more, to follow the stream of mail.",
    ),
    key(
        "redis.url",
        Kind::Secret,
        "a URL, such as redis://user:password@host:6379/0, or with rediss:// for TLS",
        "Redis, over which the processes share limits and wake each other. Without it the bus is in process: one `api` process only sees its own limits.",
    ),
    key("http.listen", Kind::Text, SOCKET, "Address of the HTTP interface."),
    key(
        "http.base_url",
        Kind::Text,
        "an origin, such as https://mail.example.com",
        "The site's own address as clients see it.",
    ),
    key("http.trusted_proxies", Kind::List, NETWORKS, "Proxies whose `X-Forwarded-For` is believed."),
    key(
        "http.cors_origins",
        Kind::List,
        "a list of origins, such as https://app.example.com",
        "Further origins that browsers may call from.",
    ),
    key("http.unlimited_networks", Kind::List, NETWORKS, "Clients that limits by client do not apply to."),
    count("http.connections_per_client", "Connections a client may hold (IPv6: a /64)."),
    count(
        "http.unauthenticated_sockets_per_client",
        "WebSockets a client may hold that are not authenticated yet.",
    ),
    count("http.connections", "Connections in all; fewer where the process may open fewer files."),
    count("http.streams", "Streams of server-sent events in all, a process."),
    count("http.header_seconds", "Seconds for request headers to arrive."),
    count("http.body_seconds", "Seconds for a request body to arrive."),
    key("smtp.listen", Kind::Text, SOCKET, "Address of inbound SMTP."),
    key(
        "smtp.hostname",
        Kind::Text,
        "a host name, such as mx.example.com",
        "Name in greeting and trace fields; also `mx_host`, what MX records of custom domains name.",
    ),
    key(
        "smtp.tls.cert",
        Kind::Text,
        "a path",
        "PEM file of the certificate chain; STARTTLS is offered when it and the key are given.",
    ),
    key("smtp.tls.key", Kind::Text, "a path", "PEM file of the private key."),
    count("smtp.max_message_bytes", "Octets of a message (SIZE)."),
    count("smtp.max_recipients", "Recipients a mail transaction."),
    count("smtp.connections", "Connections a process."),
    count("smtp.connections_per_peer", "Connections a peer (IPv6: a /64)."),
    key("smtp.unlimited_networks", Kind::List, NETWORKS, "Peers that limits by peer do not apply to."),
    count("smtp.command_seconds", "Seconds a client may be silent between commands."),
    count("smtp.data_seconds", "Seconds between two blocks of message data."),
    count("smtp.min_data_rate", "Octets a second that message data must reach on average after 30 s."),
    count("smtp.max_errors", "Refused commands before 421."),
    count("smtp.memory_bytes", "Octets of message data in memory a process; beyond it mail is deferred."),
    count("smtp.max_header_bytes", "Octets of a header section."),
    count("smtp.max_header_fields", "Fields of a header section."),
    key("admin.listen", Kind::Text, SOCKET, "Address of `/livez`, `/readyz` and `/metrics`."),
    key(
        "jwt.keys",
        Kind::KeyList,
        RING,
        "Keys of mailbox JWTs: the first signs, all verify. Secrets of at least 32 octets, no two equal. Required, except by `up`.",
    ),
    key(
        "secrets.keys",
        Kind::KeyList,
        RING,
        "Keys that seal cursors and encrypt secrets at rest: the first encrypts, all decrypt. Required, except by `up`.",
    ),
    key(
        "retention.free_hours",
        Kind::Number,
        HOURS,
        "Hours that mail of free mailboxes and shared inboxes is kept: 1, 6, 24, 72, 168 or 720.",
    ),
    key("retention.pro_hours", Kind::Number, HOURS, "Hours that mail of a new Pro tenant is kept."),
    key(
        "addresses.reserved",
        Kind::List,
        "a list of local parts",
        "Local parts that nobody may have on system domains; `postmaster` and `abuse` are always among them.",
    ),
    key(
        "dns.mode",
        Kind::Text,
        "authoritative or recursive",
        "Whom the answer about a custom domain is taken from: `authoritative`, the domain's own name servers, each asked \
         directly; `recursive`, the servers of `dns.servers`, for networks that reach no other.",
    ),
    key(
        "dns.servers",
        Kind::List,
        "a list of IP addresses with port, such as 192.0.2.53:53",
        "Resolvers that tell where a domain's name servers are, or that answer (`recursive`); without any, the system's.",
    ),
    count("dns.port", "Port of the domains' name servers."),
    key(
        "dns.allow_private",
        Kind::Switch,
        SWITCH,
        "Whether a domain's name servers may have addresses that are not public. Tenants choose those servers.",
    ),
    count("dns.interval_seconds", "Seconds between two checks of a pending custom domain."),
    count("dns.pending_hours", "Hours after which a pending custom domain fails."),
    key(
        "webhooks.allowed_networks",
        Kind::List,
        NETWORKS,
        "Networks that deliveries to webhooks may reach although they are not public.",
    ),
    key(
        "webhooks.denied_networks",
        Kind::List,
        NETWORKS,
        "Networks that deliveries to webhooks never reach, allowed or public.",
    ),
    key(
        "webhooks.ca_file",
        Kind::Text,
        "a file of PEM certificates",
        "Certificate authorities that receivers' certificates may come from, besides those of the system.",
    ),
    count("webhooks.timeout_seconds", "Seconds that one delivery may take in all."),
    key(
        "worker.verify_domains",
        Kind::Switch,
        SWITCH,
        "Whether the worker checks the records of custom domains that are due. Several that do are harmless.",
    ),
    key(
        "operator.lease_name",
        Kind::Text,
        "the name of an object of Kubernetes, such as tempmail-operator",
        "Lease whose holder leads the operators, in their own namespace.",
    ),
    count(
        "operator.lease_seconds",
        "Seconds after which another operator may lead if the leader is silent; at least 2.",
    ),
    key(
        "operator.keys_secret",
        Kind::Text,
        "the name of an object of Kubernetes, or nothing",
        "Secret of the installation's keys, in the operator's own namespace: made by the operator if there is none, \
         and never changed. Its entries `jwt.yaml` and `secrets.yaml` are files for `TEMPMAIL_JWT__KEYS_FILE` and \
         `TEMPMAIL_SECRETS__KEYS_FILE` of the other roles; the operator itself needs no `secrets.keys` then.",
    ),
    count("limits.mailbox_bytes", "Octets a free mailbox may hold."),
    count("limits.inbox_bytes", "Octets an address without a mailbox may hold."),
    count("limits.shared_bytes", "Octets all shared inboxes may hold together."),
    count("limits.store_bytes", "Octets the installation may hold."),
    count(
        "limits.address_hold_days",
        "Days that the address of a removed mailbox is held on a system domain; more than the longest retention.",
    ),
    count("limits.idle_mailbox_days", "Days without sign-in or read after which a free mailbox is removed."),
    count("limits.password_min", "Fewest characters of a mailbox password."),
    count("limits.password_max", "Most characters of a mailbox password."),
    count("limits.v1_per_second", "Requests a second on `/v1`, a token; also the burst."),
    count("limits.pro_per_second", "Requests a second on `/pro/api`, a token; also the burst."),
    count("limits.api_per_second", "Requests a second on `/api`, a client."),
    count("limits.free_mailboxes_per_hour", "Mailboxes a client may create in an hour without a Pro token."),
    count("limits.sign_in_failures", "Failed sign-ins in 15 minutes, an address and client."),
    count(
        "limits.sign_in_failures_per_client",
        "Failed sign-ins in 15 minutes, a client over all addresses.",
    ),
    key(
        "telemetry.log",
        Kind::Text,
        "a log filter, such as info or warn,tempmail=debug",
        "Log filter. Other libraries than tempmail's own log warnings and errors only.",
    ),
    key(
        "telemetry.format",
        Kind::Text,
        "text or json",
        "Form of the log: `text` on a terminal, else `json`.",
    ),
];

/// The key with this path.
pub(super) fn find(path: &str) -> Option<&'static KeyDoc> {
    KEYS.iter().find(|key| key.path == path)
}

/// The environment variable of a key.
pub(super) fn variable(path: &str) -> String {
    format!("TEMPMAIL_{}", path.to_ascii_uppercase().replace('.', "__"))
}

/// The reference of all keys with their defaults, as Markdown.
pub fn reference() -> String {
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut text = String::from(INTRODUCTION);
    let mut section = "";
    for key in KEYS {
        let (group, _) = key.path.split_once('.').unwrap_or((key.path, ""));
        if group != section {
            section = group;
            let _ = write!(text, "\n## `{group}`\n\n| Key | Default | Meaning |\n|---|---|---|\n");
        }
        let default = match key.kind {
            Kind::Secret | Kind::KeyList => String::from("none"),
            _ => shown(defaults.pointer(&format!("/{}", key.path.replace('.', "/")))),
        };
        let _ = writeln!(text, "| `{}`<br>`{}` | {default} | {} |", key.path, variable(key.path), key.doc);
    }
    text
}

fn shown(default: Option<&serde_json::Value>) -> String {
    match default {
        None | Some(serde_json::Value::Null) => String::from("none"),
        Some(serde_json::Value::Array(items)) if items.is_empty() => String::from("none"),
        Some(serde_json::Value::Array(items)) => {
            items.iter().map(|item| shown(Some(item))).collect::<Vec<_>>().join(", ")
        }
        Some(serde_json::Value::String(text)) => format!("`{text}`"),
        Some(other) => format!("`{other}`"),
    }
}

const INTRODUCTION: &str = "# Configuration

Printed by `tempmail config`; do not edit.

One YAML file (`--config FILE`), and environment variables over it: `TEMPMAIL_`, then the key in
capitals with `__` for each dot. A key or variable that is not listed here stops the start. An
empty variable is as if it were not set. Lists are written `a,b` or as a JSON array. A secret can
come from a file: `TEMPMAIL_POSTGRES__URL_FILE`, `TEMPMAIL_REDIS__URL_FILE`,
`TEMPMAIL_JWT__KEYS_FILE` and `TEMPMAIL_SECRETS__KEYS_FILE` name one; keys are a JSON or YAML list of
`{kid, secret}`.

`tempmail up` takes the same keys; it listens on 127.0.0.1, exempts loopback from the limits by
client and peer, and makes its own keys and database unless they are given.
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn leaves(prefix: &str, value: &serde_json::Value, found: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    leaves(&path, value, found);
                }
            }
            _ => {
                found.insert(prefix.to_owned());
            }
        }
    }

    #[test]
    fn the_table_lists_exactly_the_keys_of_the_configuration() {
        let mut there = BTreeSet::new();
        leaves("", &serde_json::to_value(Config::default()).unwrap(), &mut there);
        let listed: BTreeSet<String> = KEYS.iter().map(|key| key.path.to_owned()).collect();
        assert_eq!(there, listed);
    }

    #[test]
    fn the_reference_shows_defaults_and_variables() {
        let text = reference();
        assert!(text.contains("| `http.listen`<br>`TEMPMAIL_HTTP__LISTEN` | `0.0.0.0:8080` |"), "{text}");
        assert!(text.contains("`TEMPMAIL_SMTP__TLS__CERT` | none |"));
    }
}
