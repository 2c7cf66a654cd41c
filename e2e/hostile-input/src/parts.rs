//! An input of several texts, which are separated by NUL so that a corpus can be read and edited.

/// The first text, and all others.
pub fn first_and_rest(input: &[u8]) -> (String, Vec<String>) {
    let mut parts = input.split(|&byte| byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    (parts.next().unwrap_or_default(), parts.collect())
}

/// Names and values in turn; the last name may have none.
pub fn pairs(texts: &[String]) -> impl Iterator<Item = (String, String)> {
    texts.chunks(2).map(|pair| (pair[0].clone(), pair.get(1).cloned().unwrap_or_default()))
}
