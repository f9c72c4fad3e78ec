//! An address that nobody used, with the cursor of its first mail: what a wait from there finds is never an old mail.

use std::time::Duration;

use rand::TryRng as _;
use rand::rngs::SysRng;
use serde::Serialize;

use crate::client::{Client, WaitAnswer};
use crate::error::Error;
use crate::request::{Scope, WaitRequest};

/// Characters of a random local part: with 36 of them, 103 bits. Who knows the address of a shared inbox may read it.
const LOCAL_PART_LENGTH: usize = 20;
/// What a random local part is made of.
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// How long a token lives that is minted only for its cursor.
const TOKEN_LIFETIME: Duration = Duration::from_secs(1);

/// Which address is made.
#[derive(Debug, Clone, Default)]
pub struct RequestedAddress {
    /// A system domain or a verified domain of the tenant; the default one where it is `None`.
    pub domain: Option<String>,
    /// The local part; random where it is `None`.
    pub local_part: Option<String>,
}

/// An address and a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewAddress {
    /// The address.
    pub address: String,
    /// The cursor: every mail after it came later.
    pub since: String,
}

impl Client {
    /// Makes an address. Nothing is created: the server receives mail to every address of a domain with shared inboxes,
    /// and of a verified domain.
    ///
    /// # Errors
    /// [`Error`]: a refusal with the code `not_found` where this token may not read the address.
    pub async fn make_address(&self, requested: &RequestedAddress) -> Result<NewAddress, Error> {
        let local_part = match &requested.local_part {
            Some(local_part) => local_part.clone(),
            None => random_local_part()?,
        };
        let domain = match &requested.domain {
            Some(domain) => domain.clone(),
            None => self.default_domain().await?,
        };
        let address = format!("{local_part}@{domain}");
        let since = self.cursor_of_now(&address).await?;
        Ok(NewAddress { address, since })
    }

    async fn default_domain(&self) -> Result<String, Error> {
        let domains = self.config().await?.system_domains;
        let default = domains.iter().find(|domain| domain.default).or(domains.first());
        let default =
            default.ok_or_else(|| Error::Invalid("the server has no system domain: name a domain".into()))?;
        Ok(default.domain.clone())
    }

    /// A cursor behind all mail that an address has.
    async fn cursor_of_now(&self, address: &str) -> Result<String, Error> {
        let request = WaitRequest::new(Scope::Address(address.to_owned()));
        let cursor = match self.wait_once(&request, 0).await {
            Ok(WaitAnswer::Found(found)) => found.next_since,
            Ok(WaitAnswer::Nothing(cursor)) => cursor,
            // Another wait of this token is open; to mint a token is no wait, and gives a cursor, too.
            Err((error, _)) if error.code() == "token_busy" => {
                self.mint_token(address, TOKEN_LIFETIME).await?.since
            }
            Err((_, Some(pause))) => {
                tokio::time::sleep(pause).await;
                match self.wait_once(&request, 0).await.map_err(|(error, _)| error)? {
                    WaitAnswer::Found(found) => found.next_since,
                    WaitAnswer::Nothing(cursor) => cursor,
                }
            }
            Err((error, None)) => return Err(error),
        };
        if cursor.is_empty() {
            return Err(Error::Unexpected("it has no cursor"));
        }
        Ok(cursor)
    }
}

/// A local part that nobody guesses.
fn random_local_part() -> Result<String, Error> {
    let mut local_part = String::with_capacity(LOCAL_PART_LENGTH);
    let mut bytes = [0; 64];
    while local_part.len() < LOCAL_PART_LENGTH {
        SysRng
            .try_fill_bytes(&mut bytes)
            .map_err(|_none| Error::Invalid("the operating system provides no randomness".into()))?;
        // 252 is the largest multiple of 36 that a byte holds: each character is as likely as the others.
        let characters = bytes.iter().filter(|byte| **byte < 252);
        let characters = characters.map(|byte| char::from(ALPHABET[usize::from(byte % 36)]));
        local_part.extend(characters.take(LOCAL_PART_LENGTH - local_part.len()));
    }
    Ok(local_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_local_parts_are_valid_and_differ() {
        let (one, two) = (random_local_part().unwrap(), random_local_part().unwrap());
        assert_ne!(one, two);
        for local_part in [one, two] {
            assert_eq!(local_part.len(), LOCAL_PART_LENGTH);
            assert!(local_part.bytes().all(|byte| ALPHABET.contains(&byte)), "{local_part}");
        }
    }
}
