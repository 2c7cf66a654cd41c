//! Names of objects, and digests as their parts.

use sha2::{Digest, Sha256};

/// sha256 of a text, as 64 hexadecimal digits.
#[must_use]
pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
        for digit in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
        hex
    })
}

/// Eight characters that follow from the parts, fit for the end of an object's name.
///
/// The alphabet is the one of Kubernetes' own name suffixes: no vowels, so that no words come out.
#[must_use]
pub fn short_digest(parts: &[&str]) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hasher = Sha256::new();
    for part in parts {
        // The length before each part keeps ("ab", "c") and ("a", "bc") apart.
        hasher.update(part.len().to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher
        .finalize()
        .iter()
        .take(8)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}

/// Whether a text is safe in the path of a URL as the name of an object or a namespace. The client does not escape
/// names in URLs: a GET of an empty name is a list, and a GET of `?watch=true` never ends.
#[must_use]
pub fn is_object_name(text: &str) -> bool {
    let may_stand = |character: char| character.is_ascii_alphanumeric() || "-._:@~+=".contains(character);
    !matches!(text, "" | "." | "..") && text.len() <= 253 && text.chars().all(may_stand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_is_the_well_known_one() {
        assert_eq!(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_short_digest_is_stable_and_tells_its_parts_apart() {
        assert_eq!(short_digest(&["a", "b"]), short_digest(&["a", "b"]));
        assert_ne!(short_digest(&["ab", "c"]), short_digest(&["a", "bc"]));
        assert_eq!(short_digest(&["x"]).len(), 8);
    }

    #[test]
    fn what_would_be_another_request_is_no_name() {
        for name in ["web", "web-1.shop", "system:node", "a@b", "A_b"] {
            assert!(is_object_name(name), "{name}");
        }
        let too_long = "a".repeat(254);
        for text in [
            "",
            ".",
            "..",
            "?watch=true",
            "a?b",
            "a#b",
            "a/b",
            "../x",
            "%2e%2e",
            "a b",
            "a\nb",
            "ü",
            &too_long,
        ] {
            assert!(!is_object_name(text), "{text:?}");
        }
    }
}
