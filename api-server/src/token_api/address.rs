//! Addresses in paths and queries.

use tempmail_model::address::{AddressError, RecipientAddress};

use crate::http::error::ApiError;

/// Parses an address.
///
/// # Errors
/// [`ApiError::InvalidRequest`] where it is malformed, [`ApiError::NotFound`] where it is valid but can't
/// exist here.
pub(super) fn parse_address(text: &str) -> Result<RecipientAddress, ApiError> {
    RecipientAddress::parse(text).map_err(|error| match error {
        AddressError::Malformed => ApiError::InvalidRequest("The address is malformed.".into()),
        AddressError::NeedsQuotes | AddressError::AddressLiteral => ApiError::NotFound,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_malformed_addresses_from_those_that_cannot_exist_here() {
        let parsed = parse_address("Name+Tag@Inbox.Localhost").unwrap();
        assert_eq!(parsed.as_str(), "name+tag@inbox.localhost");
        for malformed in ["name", "@inbox.localhost", "a b@inbox.localhost", "a@-x.localhost"] {
            let error = parse_address(malformed).unwrap_err();
            assert!(matches!(error, ApiError::InvalidRequest(_)), "{malformed}");
        }
        for elsewhere in ["a@[192.0.2.1]", "\"a b\"@inbox.localhost"] {
            assert_eq!(parse_address(elsewhere).unwrap_err(), ApiError::NotFound, "{elsewhere}");
        }
    }
}
