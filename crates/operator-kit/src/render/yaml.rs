//! JSON that every YAML parser reads alike, for values in templates and for the bodies of server-side apply, which the
//! API server reads as YAML.

/// Escapes the characters that are plain in JSON but not in YAML: line breaks and unprintable characters. In a quoted
/// text, for example, a parser folds U+0085 into a space.
pub(crate) fn escape(json: &str) -> String {
    // Nearly all are plain, and none of these characters is.
    if json.bytes().all(|byte| byte < 0x7f) {
        return json.to_owned();
    }
    json.chars().fold(String::with_capacity(json.len()), |mut text, character| {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                text.extend(format!("\\u{:04x}", u32::from(character)).chars());
            }
            plain => text.push(plain),
        }
        text
    })
}
