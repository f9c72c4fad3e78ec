//! The header of the PROXY protocol, versions 1 and 2: a load balancer sends it before anything else, and it
//! carries the address of the client behind it.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

use ppp::{HeaderResult, v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Time in which the header must arrive.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Octets of a header of version 1 at most, with its CRLF.
const V1_MAX: usize = 107;
/// Octets of a header of version 2 at most, with its additional fields.
const V2_MAX: usize = 536;
/// Octets that every header has, of both versions.
const SHORTEST: usize = 15;
/// Octets of version 2 that say how many follow.
const V2_PREFIX: usize = 16;

/// Who is behind a load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CarriedClient {
    /// A client.
    Client(IpAddr),
    /// Nobody (`LOCAL`, `UNKNOWN`): the load balancer itself, which checks that the server is alive.
    HealthCheck,
}

/// Reads a header and no octet more.
///
/// # Errors
/// No header within 5 s, one that is malformed or too long, or one with an address that no client on a network
/// has (loopback, unspecified, multicast). The connection must be closed.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<CarriedClient> {
    let header = tokio::time::timeout(TIMEOUT, read_header(stream)).await??;
    let carried = match HeaderResult::parse(&header) {
        HeaderResult::V1(Ok(header)) => v1_client(&header),
        HeaderResult::V2(Ok(header)) => v2_client(&header),
        _ => None,
    };
    carried.filter(CarriedClient::is_possible).ok_or_else(|| ErrorKind::InvalidData.into())
}

async fn read_header(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut header = vec![0; SHORTEST];
    stream.read_exact(&mut header).await?;
    if header.starts_with(v2::PROTOCOL_PREFIX) {
        header.resize(V2_PREFIX, 0);
        stream.read_exact(&mut header[SHORTEST..]).await?;
        let length =
            V2_PREFIX + usize::from(u16::from_be_bytes([header[V2_PREFIX - 2], header[V2_PREFIX - 1]]));
        if length > V2_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        header.resize(length, 0);
        stream.read_exact(&mut header[V2_PREFIX..]).await?;
        return Ok(header);
    }
    // Only its end says how long version 1 is, and what follows belongs to the session.
    while header.starts_with(v1::PROTOCOL_PREFIX.as_bytes()) && !header.ends_with(b"\r\n") {
        if header.len() == V1_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        header.push(stream.read_u8().await?);
    }
    Ok(header)
}

fn v1_client(header: &v1::Header<'_>) -> Option<CarriedClient> {
    Some(match header.addresses {
        v1::Addresses::Tcp4(addresses) => CarriedClient::Client(addresses.source_address.into()),
        v1::Addresses::Tcp6(addresses) => {
            CarriedClient::Client(IpAddr::from(addresses.source_address).to_canonical())
        }
        v1::Addresses::Unknown => CarriedClient::HealthCheck,
    })
}

fn v2_client(header: &v2::Header<'_>) -> Option<CarriedClient> {
    if header.command == v2::Command::Local {
        return Some(CarriedClient::HealthCheck);
    }
    match header.addresses {
        v2::Addresses::IPv4(addresses) => Some(CarriedClient::Client(addresses.source_address.into())),
        v2::Addresses::IPv6(addresses) => {
            Some(CarriedClient::Client(IpAddr::from(addresses.source_address).to_canonical()))
        }
        v2::Addresses::Unspecified => Some(CarriedClient::HealthCheck),
        v2::Addresses::Unix(_) => None,
    }
}

impl CarriedClient {
    /// Whether a client on a network can have the address.
    fn is_possible(&self) -> bool {
        match self {
            Self::Client(address) => {
                !(address.is_loopback() || address.is_unspecified() || address.is_multicast())
            }
            Self::HealthCheck => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

    /// A header of version 2 with `rest` behind the length.
    fn v2_header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[0x20 | command, family], &length, rest].concat()
    }

    /// What is read of `input`, and what is left of it.
    async fn read_from(input: &[u8]) -> (Option<CarriedClient>, Vec<u8>) {
        let mut rest = input;
        let carried = read(&mut rest).await.ok();
        (carried, rest.to_vec())
    }

    fn client(address: &str) -> Option<CarriedClient> {
        Some(CarriedClient::Client(address.parse().unwrap()))
    }

    #[tokio::test]
    async fn reads_version_1_and_nothing_behind_it() {
        for (header, expected) in [
            ("PROXY TCP4 203.0.113.7 10.0.0.1 40000 25\r\n", client("203.0.113.7")),
            ("PROXY TCP6 2001:db8::7 2001:db8::1 40000 25\r\n", client("2001:db8::7")),
            ("PROXY TCP6 ::ffff:203.0.113.7 ::1 40000 25\r\n", client("203.0.113.7")),
            ("PROXY UNKNOWN\r\n", Some(CarriedClient::HealthCheck)),
            ("PROXY UNKNOWN a b c\r\n", Some(CarriedClient::HealthCheck)),
        ] {
            let input = format!("{header}EHLO a\r\n");
            assert_eq!(read_from(input.as_bytes()).await, (expected, b"EHLO a\r\n".to_vec()), "{header}");
        }
    }

    #[tokio::test]
    async fn reads_version_2_and_nothing_behind_it() {
        let v4 = [203, 0, 113, 7, 10, 0, 0, 1, 0x9c, 0x40, 0, 25];
        let mut v6 = [0_u8; 36];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        v6[15] = 7;
        let with_field = [&v4[..], &[0x04, 0, 3, 1, 2, 3]].concat();
        for (header, expected) in [
            (v2_header(1, 0x11, &v4), client("203.0.113.7")),
            (v2_header(1, 0x11, &with_field), client("203.0.113.7")),
            (v2_header(1, 0x21, &v6), client("2001:db8::7")),
            (v2_header(0, 0x00, &[]), Some(CarriedClient::HealthCheck)),
            (v2_header(0, 0x11, &v4), Some(CarriedClient::HealthCheck)),
            (v2_header(1, 0x00, &[]), Some(CarriedClient::HealthCheck)),
        ] {
            let input = [&header[..], b"EHLO a\r\n"].concat();
            assert_eq!(read_from(&input).await, (expected, b"EHLO a\r\n".to_vec()), "{header:?}");
        }
    }

    #[tokio::test]
    async fn refuses_what_is_malformed_or_too_long() {
        let long_v1 = format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_MAX));
        for input in [
            b"EHLO client.example\r\n".to_vec(),
            b"PROXY TCP4 203.0.113.7\r\n".to_vec(),
            b"PROXY TCP4 203.0.113.700 10.0.0.1 1 25\r\n".to_vec(),
            b"PROXY TCP4 203.0.113.7 10.0.0.1 1 25\n".to_vec(),
            long_v1.into_bytes(),
            v2_header(1, 0x11, &[1, 2, 3]),
            v2_header(1, 0x31, &[b'/'; 216]),
            v2_header(1, 0x11, &[0; V2_MAX]),
            v2_header(2, 0x11, &[0; 12]),
            SIGNATURE.to_vec(),
        ] {
            assert_eq!(read_from(&input).await.0, None, "{input:?}");
        }
    }

    #[tokio::test]
    async fn refuses_addresses_that_no_client_has() {
        for address in ["127.0.0.1", "0.0.0.0", "224.0.0.1"] {
            let header = format!("PROXY TCP4 {address} 10.0.0.1 1 25\r\n");
            assert_eq!(read_from(header.as_bytes()).await.0, None, "{address}");
        }
        for address in ["::1", "::", "ff02::1", "::ffff:127.0.0.1"] {
            let header = format!("PROXY TCP6 {address} 2001:db8::1 1 25\r\n");
            assert_eq!(read_from(header.as_bytes()).await.0, None, "{address}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_5_s_for_a_header() {
        let (_client, mut server) = tokio::io::duplex(64);
        let started = tokio::time::Instant::now();
        assert!(read(&mut server).await.is_err());
        assert_eq!(started.elapsed(), TIMEOUT);
    }
}
