//! What a local part is on a system domain, as SQL functions take it.

use tempmail_model::address::{RecipientAddress, Reservation};

/// What `address_owner` of the schema takes for the local part of an address.
pub(crate) fn reserved_code(address: &RecipientAddress, reserved: Reservation) -> i16 {
    match reserved {
        Reservation::Sink => 4,
        // System domains have none of it, even where its normal form is ASCII, as SMTP says.
        _ if address.has_non_ascii_local_part() => 3,
        Reservation::None => 0,
        Reservation::Refused => 1,
        Reservation::Platform => 2,
    }
}
