//! Addresses in paths and queries.

use tempmail_model::address::{AddressError, AddressSyntax, RecipientAddress};

use crate::http::error::ApiError;

/// Parses an address of a query: a space stands for the `+` that was not encoded, except in a quoted local part.
///
/// # Errors
/// As [`parse_address`].
pub(super) fn parse_query_address(syntax: AddressSyntax, text: &str) -> Result<RecipientAddress, ApiError> {
    if text.starts_with('"') {
        parse_address(syntax, text)
    } else {
        parse_address(syntax, &text.replace(' ', "+"))
    }
}

/// Parses an address.
///
/// # Errors
/// [`ApiError::InvalidRequest`] where it is malformed, [`ApiError::NotFound`] where it is valid but can't
/// exist here.
pub(super) fn parse_address(syntax: AddressSyntax, text: &str) -> Result<RecipientAddress, ApiError> {
    syntax.parse(text).map_err(|error| match error {
        AddressError::Malformed => ApiError::InvalidRequest("The address is malformed.".into()),
        AddressError::NeedsQuotes | AddressError::AddressLiteral => ApiError::NotFound,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_malformed_addresses_from_those_that_cannot_exist_here() {
        let parse_address = |text| parse_address(AddressSyntax::Hosted, text);
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

    #[test]
    fn takes_a_space_of_a_query_for_a_plus_unless_it_is_quoted() {
        let parsed = |text| parse_query_address(AddressSyntax::Caught, text).unwrap();
        assert_eq!(parsed("name tag@b.example").as_str(), "name+tag@b.example");
        assert_eq!(parsed("\"a b\"@c.example").as_str(), "\"a b\"@c.example");
    }
}
