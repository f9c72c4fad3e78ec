//! Default values. Key rings and connection URLs have none.

use std::net::{Ipv6Addr, SocketAddr};

use tempmail_model::address::ReservedLocalParts;
use tempmail_model::retention::RetentionClass;
use tempmail_model::role_prefix::RolePrefix;

use super::secret::Secret;
use super::settings::{
    Addresses, Admin, Dns, DnsMode, Http, Mcp, Operator, Postgres, Retention, Smtp, SmtpTls, Telemetry,
    Webhooks, Worker,
};

/// Every address of the machine, of both families.
fn any_address(port: u16) -> SocketAddr {
    (Ipv6Addr::UNSPECIFIED, port).into()
}

impl Default for Postgres {
    fn default() -> Self {
        Self { url: Secret::default(), pool: 10, role_prefix: RolePrefix::default() }
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: any_address(8080),
            base_url: "http://localhost:8080".into(),
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            page: true,
            check_host: false,
            hosts: Vec::new(),
            unlimited_networks: Vec::new(),
            connections_per_client: 200,
            unauthenticated_sockets_per_client: 20,
            connections: 20_000,
            streams: 15_000,
            header_seconds: 10,
            body_seconds: 30,
            min_drain_rate: 4_096,
        }
    }
}

impl Default for Mcp {
    fn default() -> Self {
        Self { enabled: true, allow_delete: false }
    }
}

impl Default for Smtp {
    fn default() -> Self {
        Self {
            listen: any_address(2525),
            hostname: "localhost".into(),
            tls: SmtpTls::default(),
            max_message_bytes: 26_214_400,
            max_recipients: 100,
            connections: 10_000,
            connections_per_peer: 100,
            idle_seconds: 5,
            unlimited_networks: Vec::new(),
            proxy_networks: Vec::new(),
            command_seconds: 60,
            data_seconds: 180,
            min_data_rate: 1024,
            transaction_seconds: 1_800,
            session_seconds: 3_600,
            max_errors: 20,
            unknown_recipients_per_minute: 60,
            tenant_messages_per_minute: 240_000,
            tenant_messages_per_minute_per_peer: 60_000,
            address_messages_per_minute: 24_000,
            address_messages_per_minute_per_peer: 6_000,
            memory_bytes: 512 << 20,
            memory_bytes_per_peer: 128 << 20,
            memory_bytes_per_tenant: 256 << 20,
            max_header_bytes: 256 << 10,
            max_header_fields: 1000,
        }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self { listen: any_address(9090), connections: 64, request_seconds: 10 }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { free_hours: RetentionClass::FREE, pro_hours: RetentionClass::PRO }
    }
}

impl Default for Addresses {
    fn default() -> Self {
        Self { reserved: ReservedLocalParts::DEFAULT.map(str::to_owned).to_vec() }
    }
}

impl Default for Dns {
    fn default() -> Self {
        Self {
            mode: DnsMode::default(),
            servers: Vec::new(),
            port: 53,
            allow_private: false,
            interval_seconds: 300,
            pending_hours: 72,
        }
    }
}

impl Default for Webhooks {
    fn default() -> Self {
        Self { allowed_networks: Vec::new(), denied_networks: Vec::new(), ca_file: None, timeout_seconds: 30 }
    }
}

impl Default for Operator {
    fn default() -> Self {
        Self {
            lease_name: "tempmail-operator".into(),
            lease_seconds: 15,
            keys_secret: String::new(),
            watch_namespaces: Vec::new(),
            secret_check_seconds: 300,
            pod_name: String::new(),
        }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self { verify_domains: true }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { log: "info".into(), format: None, otlp_endpoint: None, trace_one_in: 1 }
    }
}
