use sha2::{Digest, Sha256};

/// sha256 of a text, as 64 hexadecimal digits.
#[must_use]
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
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
}
