//! Variables that Kubernetes sets in each pod for the Services of its namespace, unless the pod has
//! `enableServiceLinks: false`. Those of a Service whose name begins with `tempmail` look like settings.

use std::net::{IpAddr, SocketAddr};

/// Whether Kubernetes sets the variable `TEMPMAIL_<name>` to `value` for a Service.
pub(super) fn is_service_link(name: &str, value: &str) -> bool {
    let parts: Vec<&str> = name.split('_').collect();
    match parts[..] {
        [.., "SERVICE", "HOST"] => value.parse::<IpAddr>().is_ok(),
        [.., "PORT", number, protocol, field] if is_port(number) && is_protocol(protocol) => match field {
            "PROTO" => value.eq_ignore_ascii_case(protocol),
            "PORT" => value == number,
            "ADDR" => value.parse::<IpAddr>().is_ok(),
            _ => false,
        },
        [.., "PORT", number, protocol] if is_port(number) && is_protocol(protocol) => is_url(value),
        [.., "PORT"] if is_url(value) => true,
        // The name of the port may follow.
        _ => parts.windows(2).any(|pair| pair == ["SERVICE", "PORT"]) && is_port(value),
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

fn is_protocol(text: &str) -> bool {
    ["TCP", "UDP", "SCTP"].iter().any(|protocol| text.eq_ignore_ascii_case(protocol))
}

/// Whether a text is an address as in `tcp://10.0.0.1:25`.
fn is_url(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(protocol, address)| is_protocol(protocol) && address.parse::<SocketAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_what_kubernetes_sets_for_a_service() {
        for (name, value) in [
            ("SERVICE_HOST", "10.96.0.7"),
            ("SERVICE_PORT", "8080"),
            ("SERVICE_PORT_HTTP", "8080"),
            ("PORT", "tcp://10.96.0.7:8080"),
            ("PORT_8080_TCP", "tcp://10.96.0.7:8080"),
            ("PORT_8080_TCP_PROTO", "tcp"),
            ("PORT_8080_TCP_PORT", "8080"),
            ("PORT_8080_TCP_ADDR", "10.96.0.7"),
            ("API_SERVICE_HOST", "fd00::7"),
            ("API_PORT", "tcp://[fd00::7]:8080"),
            ("SMTP_IN_SERVICE_PORT_SMTP", "25"),
            ("DNS_PORT_53_UDP", "udp://10.96.0.10:53"),
        ] {
            assert!(is_service_link(name, value), "{name}={value}");
        }
    }

    #[test]
    fn leaves_misspelt_settings_and_other_values_alone() {
        for (name, value) in [
            ("HTTP_PORT", "8080"),
            ("PORT", "8080"),
            ("SMTP__LISTEN_PORT", "25"),
            ("API_SERVICE_HOST", "mail.example.com"),
            ("SERVICE_PORT", "http"),
            ("PORT_8080_TCP", "8080"),
            ("PORT_8080_TCP_MODE", "8080"),
            ("PORT_8080_TCP_PORT", "8081"),
            ("PORT", "http://10.96.0.7:8080"),
            ("SMTP__HOTS", "tcp://10.96.0.7:25"),
        ] {
            assert!(!is_service_link(name, value), "{name}={value}");
        }
    }
}
