//! The strings of a JSON text, in its order.

/// Gives the text before each string, and the string with its quotes.
pub(super) struct Strings<'j> {
    rest: &'j str,
}

impl<'j> Strings<'j> {
    pub fn of(json: &'j str) -> Self {
        Self { rest: json }
    }

    /// The text after the last string that was given.
    pub fn rest(&self) -> &'j str {
        self.rest
    }
}

impl<'j> Iterator for Strings<'j> {
    type Item = (&'j str, &'j str);

    fn next(&mut self) -> Option<Self::Item> {
        let (before, string) = self.rest.split_at(self.rest.find('"')?);
        let (string, rest) = string.split_at(length(string));
        self.rest = rest;
        Some((before, string))
    }
}

/// The length of the string at the start of a text, with its quotes.
fn length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_whatever_they_contain() {
        let mut strings = Strings::of(r#"{"a":["é\"",1,"\\"]}"#);
        let found: Vec<_> = strings.by_ref().collect();
        assert_eq!(found, [("{", r#""a""#), (":[", r#""é\"""#), (",1,", r#""\\""#)]);
        assert_eq!(strings.rest(), "]}");
        assert_eq!(Strings::of("[1,null]").count(), 0);
    }
}
