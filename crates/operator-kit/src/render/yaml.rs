//! JSON that every YAML parser takes for the same: for what is put into templates, and for the bodies of server-side
//! apply, which the API server reads as YAML.

/// Escapes the characters that are plain in JSON and not in YAML: line breaks and what is not printable. A parser
/// folds U+0085 in a quoted text into a space, for example.
pub(crate) fn escape(json: &str) -> String {
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
