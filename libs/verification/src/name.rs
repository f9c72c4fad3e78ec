//! The names that a custom domain may have.

use tempmail_model::address::normalize_domain;
use tempmail_model::verify_token::txt_host;

/// Octets of a domain name at most.
const NAME_MAX: usize = 253;

/// Why a text is not the name of a custom domain. Displayed with what to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is not a host name of at least two labels, or is an IP address.
    #[error("`domain` must be a host name of at least two labels, such as example.com.")]
    NotAHostName,
    /// It is a public suffix, under which anyone can register a domain.
    #[error("`domain` must not be a public suffix; use a domain below it.")]
    PublicSuffix,
}

/// The normal form of a custom domain: A-labels in lower case, without a trailing dot.
///
/// # Errors
/// [`NameError`].
pub fn custom_domain_name(text: &str) -> Result<String, NameError> {
    let name = normalize_domain(text).map_err(|_malformed| NameError::NotAHostName)?;
    let Some((_, last)) = name.rsplit_once('.') else { return Err(NameError::NotAHostName) };
    // No top-level domain is a number: a name that ends in one is an IP address, or may be read as one.
    if last.bytes().all(|b| b.is_ascii_digit()) || txt_host(&name).len() > NAME_MAX {
        return Err(NameError::NotAHostName);
    }
    if psl::domain_str(&name).is_none() { Err(NameError::PublicSuffix) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_the_spellings_of_a_name() {
        for spelling in
            ["Bücher.Example", "bücher.example.", "xn--bcher-kva.example", "XN--BCHER-KVA.example"]
        {
            assert_eq!(custom_domain_name(spelling).as_deref(), Ok("xn--bcher-kva.example"), "{spelling}");
        }
    }

    #[test]
    fn refuses_a_text_that_is_not_a_host_name() {
        let label = "a".repeat(60);
        let no_room_for_txt = format!("{label}.{label}.{label}.{label}.com");
        for wrong in [
            "",
            ".",
            "localhost",
            "a b.example",
            "a_b.example",
            "-a.example",
            "a-.example",
            "a..example",
            "192.0.2.1",
            "192.0.2.1.",
            "１９２.0.2.1",
            "[192.0.2.1]",
            "2001:db8::1",
            "ada@ships.example",
            "https://ships.example",
            "*.ships.example",
            "ships.example/",
            "ships.example\0",
            &no_room_for_txt,
            &format!("{}.example", "a".repeat(64)),
        ] {
            assert_eq!(custom_domain_name(wrong), Err(NameError::NotAHostName), "{wrong}");
        }
    }

    #[test]
    fn refuses_public_suffixes_only() {
        for suffix in ["co.uk", "github.io", "s3.amazonaws.com", "x.ck", "xn--55qx5d.cn"] {
            assert_eq!(custom_domain_name(suffix), Err(NameError::PublicSuffix), "{suffix}");
        }
        for below in ["example.com", "ships.co.uk", "ships.github.io", "www.ck", "deep.below.ships.example"] {
            assert_eq!(custom_domain_name(below).as_deref(), Ok(below));
        }
    }
}
