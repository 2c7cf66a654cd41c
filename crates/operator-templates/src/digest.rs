//! Digests of texts, also as parts of names.

use sha2::{Digest as _, Sha256};

/// Digests of texts.
pub struct Digest;

impl Digest {
    /// sha256 of a text, as 64 hexadecimal digits.
    #[must_use]
    pub fn sha256(text: &str) -> String {
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(text) {
            hex.extend(
                [byte >> 4, byte & 15].into_iter().filter_map(|digit| char::from_digit(digit.into(), 16)),
            );
        }
        hex
    }

    /// Eight characters that follow from the parts, fit for the end of an object's name.
    ///
    /// The alphabet is the one of Kubernetes' own name suffixes: no vowels, so that no words come out.
    #[must_use]
    pub fn short(parts: &[&str]) -> String {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut hasher = Sha256::new();
        for part in parts {
            // The length before each part keeps ("ab", "c") and ("a", "bc") apart.
            hasher.update(part.len().to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let digest = hasher.finalize();
        digest.iter().take(8).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_is_the_well_known_one() {
        assert_eq!(Digest::sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_short_digest_is_stable_and_tells_its_parts_apart() {
        assert_eq!(Digest::short(&["a", "b"]), Digest::short(&["a", "b"]));
        assert_ne!(Digest::short(&["ab", "c"]), Digest::short(&["a", "bc"]));
        assert_eq!(Digest::short(&["x"]).len(), 8);
    }
}
