//! The table of all keys: names, kinds, and what the reference says of them.

/// How the text of an environment variable is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Any text.
    Text,
    /// Text that is never printed; `…_FILE` may name a file with it.
    Secret,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Switch,
    /// `a,b` or a JSON array.
    List,
    /// A JSON or YAML list of `{kid, secret}`; `…_FILE` may name a file with it.
    KeyList,
}

/// One key.
pub(super) struct ConfigKey {
    /// Its name, with dots between groups.
    pub path: &'static str,
    /// How a variable's text is parsed.
    pub kind: ValueKind,
    /// The largest number that is valid; 1 is the smallest.
    pub max: Option<u64>,
    /// What is valid, to complete "must be …".
    pub expected: &'static str,
    /// What it does.
    pub description: &'static str,
}

const fn key(
    path: &'static str,
    kind: ValueKind,
    expected: &'static str,
    description: &'static str,
) -> ConfigKey {
    ConfigKey { path, kind, max: None, expected, description }
}

const fn number(
    path: &'static str,
    max: u64,
    expected: &'static str,
    description: &'static str,
) -> ConfigKey {
    ConfigKey { path, kind: ValueKind::Number, max: Some(max), expected, description }
}

const fn count(path: &'static str, description: &'static str) -> ConfigKey {
    number(path, 1_000_000_000, "a whole number from 1 to 1000000000", description)
}

/// Sums of bytes, and products with numbers of things, stay far below what an i64 holds.
const fn bytes(path: &'static str, description: &'static str) -> ConfigKey {
    number(path, 1 << 50, "a whole number of bytes from 1 to 1125899906842624 (1 PiB)", description)
}

const fn seconds(path: &'static str, description: &'static str) -> ConfigKey {
    number(path, 86_400, "a whole number of seconds from 1 to 86400 (a day)", description)
}

const fn drop_in(path: &'static str, description: &'static str) -> ConfigKey {
    key(path, ValueKind::Text, SOCKET_ADDRESS, description)
}

const SOCKET_ADDRESS: &str = "an IP address with port, such as 127.0.0.1:8080 or [::]:8080";
const NETWORKS: &str = "a list of networks, such as 10.0.0.0/8 or fd00::/8";
const KEY_RING: &str = "a list of {kid, secret}";
const SWITCH: &str = "true or false";
const RETENTION_HOURS: &str = "1, 6, 24, 72, 168 or 720";

/// All keys, in the order of the reference.
pub(super) const KEYS: &[ConfigKey] = &[
    key(
        "postgres.url",
        ValueKind::Secret,
        "a URL, such as postgres://user:password@host/database",
        "Postgres connection URL; each role should have a login of its own. Required, except by `up`.",
    ),
    count(
        "postgres.pool",
        "Maximum connections of a role; `api` holds one more, to follow the message stream, and `operator` two, to end lost grants.",
    ),
    key(
        "postgres.role_prefix",
        ValueKind::Text,
        "1 to 54 of a-z, 0-9 and _ that begin with a letter or _, and not pg or pg_…",
        "Begins the names of the Postgres roles to which `migrate` grants rights: `tempmail_ingest`, `tempmail_api`, `tempmail_worker`, `tempmail_operator`. Roles are a server's: installations that share one need different prefixes.",
    ),
    key(
        "redis.url",
        ValueKind::Secret,
        "a URL, such as redis://user:password@host:6379/0, or with rediss:// for TLS",
        "Redis connection URL. The processes share limits and announce new mail over Redis. Without Redis, run a single `api` process: each enforces limits by itself.",
    ),
    key("http.listen", ValueKind::Text, SOCKET_ADDRESS, "Address of the HTTP interface."),
    key(
        "http.base_url",
        ValueKind::Text,
        "an origin, such as https://mail.example.com",
        "Public URL of the site.",
    ),
    key("http.trusted_proxies", ValueKind::List, NETWORKS, "Proxies whose `X-Forwarded-For` is trusted."),
    key(
        "http.cors_origins",
        ValueKind::List,
        "a list of origins, such as https://app.example.com",
        "Further origins that browsers may send requests from.",
    ),
    key(
        "http.page",
        ValueKind::Switch,
        SWITCH,
        "Whether `/` shows the web page and `/dashboard` the dashboard; without it they are `404`.",
    ),
    key(
        "http.check_host",
        ValueKind::Switch,
        SWITCH,
        "Whether requests must name a known host: that of `http.base_url`, loopback, or one of `http.hosts`; others are `421`, by `api` and the admin port of `up`. On in `up`, so that no page of another site reaches it by a name that it makes resolve to loopback.",
    ),
    key(
        "http.hosts",
        ValueKind::List,
        "a list of hosts without port, such as mail.example.com",
        "Further hosts that requests may name, where `http.check_host` is on.",
    ),
    key(
        "http.unlimited_networks",
        ValueKind::List,
        NETWORKS,
        "Networks of clients that are exempt from the limits per client.",
    ),
    count(
        "http.connections_per_client",
        "Maximum connections per client: an IPv4 address or a /64 of IPv6. A /56 may have twice as many and a /48 four times; one beyond that is closed at once.",
    ),
    count("http.connections", "Maximum connections of a process; fewer if its limit of open files is lower."),
    count("http.streams", "Maximum streams of server-sent events of a process."),
    key(
        "mcp.enabled",
        ValueKind::Switch,
        SWITCH,
        "Whether `api` serves the [Model Context Protocol](mcp.md) at `/mcp`.",
    ),
    key(
        "mcp.allow_delete",
        ValueKind::Switch,
        SWITCH,
        "Whether tools of `/mcp` may delete mail: a language model may call them, whatever it was told to do.",
    ),
    drop_in(
        "compat.mailpit.listen",
        "Address of the [API v1 of Mailpit](compat/mailpit.md); without one it is off.",
    ),
    drop_in(
        "compat.mailhog.listen",
        "Address of the [API v1 and v2 of MailHog](compat/mailhog.md); without one it is off.",
    ),
    drop_in(
        "compat.mailosaur.listen",
        "Address of the [API of Mailosaur](compat/mailosaur.md); without one it is off.",
    ),
    key("smtp.listen", ValueKind::Text, SOCKET_ADDRESS, "Address of the SMTP server."),
    key(
        "smtp.hostname",
        ValueKind::Text,
        "a host name, such as mx.example.com",
        "Host name in the greeting and in trace fields; also `mx_host`, which MX records of custom domains must name.",
    ),
    key(
        "smtp.tls.cert",
        ValueKind::Text,
        "the path of a PEM file",
        "PEM file of the certificate chain, read again within a minute when it is renewed. STARTTLS is offered if certificate and key are set.",
    ),
    key("smtp.tls.key", ValueKind::Text, "the path of a PEM file", "PEM file of the private key."),
    number(
        "smtp.max_message_bytes",
        1 << 30,
        "a whole number of bytes from 1 to 1073741824 (1 GiB)",
        "Maximum bytes of a message (SIZE).",
    ),
    number(
        "smtp.max_recipients",
        1_000,
        "a whole number from 1 to 1000",
        "Maximum recipients of a mail transaction.",
    ),
    count("smtp.connections", "Maximum connections of a process."),
    count(
        "smtp.connections_per_peer",
        "Maximum connections per peer: an IPv4 address or a /64 of IPv6. A /56 may have twice as many and a /48 four times; the same holds for all limits per peer.",
    ),
    key(
        "smtp.unlimited_networks",
        ValueKind::List,
        NETWORKS,
        "Networks of peers that are exempt from the limits per peer.",
    ),
    key(
        "smtp.proxy_networks",
        ValueKind::List,
        "a list of networks of load balancers, not of all addresses, such as 10.0.0.0/8",
        "Networks of load balancers: their connections must begin with a header of the PROXY protocol, version 1 or 2.",
    ),
    count(
        "smtp.unknown_recipients_per_minute",
        "Unknown recipients a minute that are rejected to a peer at once; further rejections are delayed.",
    ),
    count(
        "smtp.tenant_messages_per_minute",
        "Maximum messages a minute to a tenant, in each process. All mail without a tenant counts as that of one.",
    ),
    count(
        "smtp.tenant_messages_per_minute_per_peer",
        "Maximum messages a minute from a peer to a tenant, in each process.",
    ),
    count("smtp.address_messages_per_minute", "Maximum messages a minute to an address, in each process."),
    count(
        "smtp.address_messages_per_minute_per_peer",
        "Maximum messages a minute from a peer to an address, in each process.",
    ),
    bytes(
        "smtp.memory_bytes",
        "Maximum bytes of message data in memory of a process; beyond it mail is deferred.",
    ),
    bytes(
        "smtp.memory_bytes_per_peer",
        "Maximum bytes of message data in memory from a peer; at least `smtp.max_message_bytes`.",
    ),
    bytes(
        "smtp.memory_bytes_per_tenant",
        "Maximum bytes of message data in memory to a tenant; at least `smtp.max_message_bytes`. All mail without a tenant counts as that of one.",
    ),
    key("admin.listen", ValueKind::Text, SOCKET_ADDRESS, "Address of `/livez`, `/readyz` and `/metrics`."),
    key(
        "jwt.keys",
        ValueKind::KeyList,
        KEY_RING,
        "Keys of mailbox JWTs: the first signs, all verify. Secrets have at least 32 bytes, and no two are equal. Required, except by `up`.",
    ),
    key(
        "secrets.keys",
        ValueKind::KeyList,
        KEY_RING,
        "Keys that seal cursors and encrypt secrets at rest: the first encrypts, all decrypt. Required, except by `up`.",
    ),
    key(
        "retention.free_hours",
        ValueKind::Number,
        RETENTION_HOURS,
        "Retention of mail of free mailboxes and shared inboxes, in hours: 1, 6, 24, 72, 168 or 720.",
    ),
    key(
        "retention.pro_hours",
        ValueKind::Number,
        RETENTION_HOURS,
        "Default retention of a new Pro tenant, in hours: 1, 6, 24, 72, 168 or 720.",
    ),
    key(
        "addresses.reserved",
        ValueKind::List,
        "a list of local parts",
        "Local parts that can't be used on system domains; `postmaster` and `abuse` are always reserved.",
    ),
    key(
        "dns.mode",
        ValueKind::Text,
        "authoritative or recursive",
        "Which servers answer for a custom domain. `authoritative`: the domain's own name servers, queried directly. `recursive`: the resolvers of `dns.servers`, for networks that reach no other server.",
    ),
    key(
        "dns.servers",
        ValueKind::List,
        "a list of IP addresses with port, such as 192.0.2.53:53",
        "Resolvers that find a domain's name servers (`authoritative`) or answer themselves (`recursive`). By default those of the system.",
    ),
    count("dns.port", "Port of the name servers of domains."),
    key(
        "dns.allow_private",
        ValueKind::Switch,
        SWITCH,
        "Whether a domain's name servers may have private addresses. Tenants choose these servers, so this lets them send queries into your network.",
    ),
    key(
        "webhooks.allowed_networks",
        ValueKind::List,
        NETWORKS,
        "Networks that webhook deliveries may reach although they are not public. With any, a webhook's URL may have every host name and port.",
    ),
    key(
        "webhooks.denied_networks",
        ValueKind::List,
        NETWORKS,
        "Networks that webhook deliveries never reach; takes precedence over `webhooks.allowed_networks`.",
    ),
    key(
        "webhooks.ca_file",
        ValueKind::Text,
        "the path of a PEM file",
        "Certificate authorities that are trusted for webhook deliveries, in addition to the system's, and self-signed certificates of receivers (PEM); read again within a minute when they are renewed.",
    ),
    seconds("webhooks.timeout_seconds", "Maximum seconds of a webhook delivery."),
    key(
        "worker.verify_domains",
        ValueKind::Switch,
        SWITCH,
        "Whether the worker verifies custom domains. Several processes may do so.",
    ),
    key(
        "operator.lease_name",
        ValueKind::Text,
        "a Kubernetes object name, such as tempmail-operator",
        "Lease that elects the leading operator, in the operators' own namespace.",
    ),
    key(
        "operator.keys_secret",
        ValueKind::Text,
        "a Kubernetes object name, or empty",
        "Secret with the installation's keys, in the operator's own namespace. The operator creates it if it is missing, and never changes it. Its entries `jwt.yaml` and `secrets.yaml` are the files for `TEMPMAIL_JWT__KEYS_FILE` and `TEMPMAIL_SECRETS__KEYS_FILE` of the other roles; the operator itself needs no `secrets.keys` then.",
    ),
    key(
        "operator.watch_namespaces",
        ValueKind::List,
        "a list of namespaces, each once",
        "Namespaces whose CustomDomains, Webhooks, ApiTokens and Mailboxes are reconciled, so that the operator needs rights on Secrets in these alone. By default those of the whole cluster. Tenants and SystemDomains are in no namespace, and reconciled in any case.",
    ),
    seconds(
        "operator.secret_check_seconds",
        "Seconds within which the operator looks at each Secret of a Webhook, ApiToken or Mailbox, for a loss or a change: a request to the API server each; at least 5.",
    ),
    key(
        "operator.pod_name",
        ValueKind::Text,
        "a Kubernetes object name, or empty",
        "Name of the operator's pod, which the Lease shows as its holder; if it is empty, the holder is a random name. The chart sets it.",
    ),
    number(
        "limits.mailbox_bytes",
        tempmail_model::limits::TENANT_MAILBOX_BYTES_MAX.unsigned_abs(),
        "a whole number of bytes from 1 to 1099511627776 (1 TiB)",
        "Maximum bytes of a free mailbox.",
    ),
    bytes("limits.inbox_bytes", "Maximum bytes of an address without a mailbox."),
    bytes(
        "limits.shared_bytes",
        "Part of `limits.store_bytes` for mail without a tenant: of shared inboxes and of free mailboxes. Half of it at most: more counts as half.",
    ),
    bytes(
        "limits.store_bytes",
        "Maximum bytes of mail on the disk: compressed data, once a mail, and 1,024 for each message. What is not for mail without a tenant is for tenants, and one tenant may store as much of it as is left.",
    ),
    count("limits.free_mailboxes", "Maximum free mailboxes of the installation."),
    count(
        "limits.address_hold_days",
        "Days that the address of a removed mailbox stays reserved on a system domain; at least 31, more than the longest retention.",
    ),
    count("limits.idle_mailbox_days", "Days without sign-in or read after which a free mailbox is removed."),
    number(
        "limits.password_min",
        128,
        "a whole number from 1 to 128",
        "Minimum characters of a mailbox password.",
    ),
    count("limits.v1_per_second", "Requests per second and token on `/v1`; also the burst."),
    count("limits.minted_tokens", "Maximum minted tokens of a tenant that have not expired."),
    count("limits.pro_per_second", "Requests per second and token on `/pro/api`; also the burst."),
    count(
        "limits.api_per_second",
        "Requests per second and mailbox with a mailbox JWT, and per client where no credential is needed.",
    ),
    count(
        "limits.free_mailboxes_per_hour",
        "Mailboxes that a client may create per hour without a Pro token.",
    ),
    count("limits.sign_in_failures", "Failed sign-ins in 15 minutes per address and client."),
    key(
        "telemetry.log",
        ValueKind::Text,
        "a log filter, such as info or warn,tempmail=debug",
        "Log filter. Libraries log warnings and errors only, whatever the filter says.",
    ),
    key(
        "telemetry.format",
        ValueKind::Text,
        "text or json",
        "Log format: by default `text` on a terminal, else `json`.",
    ),
    key(
        "telemetry.otlp_endpoint",
        ValueKind::Text,
        "an http or https URL without user and query, such as http://otel-collector:4318",
        "Collector of OpenTelemetry that gets spans over OTLP/HTTP, at the path `/v1/traces` below this URL. Without it there are no traces.",
    ),
    count(
        "telemetry.trace_one_in",
        "One message in this many is traced, chosen by its id; 1 traces all of them.",
    ),
];

/// Whether the path names a setting, and not a bound that only `TEMPMAIL_TUNING` sets.
pub fn is_setting(path: &str) -> bool {
    find(path).is_some()
}

/// The key with this path.
pub(super) fn find(path: &str) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|key| key.path == path)
}
