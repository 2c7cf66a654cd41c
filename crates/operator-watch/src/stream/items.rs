//! Splits the text of a list into its items while it arrives.

use std::{mem::take, ops::Range};

/// Splits the text of a list into its items, in whatever pieces it arrives. Only one item is in memory at a time: a whole
/// page of large objects would take many times as much as is kept of them.
#[derive(Default)]
pub(super) struct Items {
    /// The list itself, in which `0` stands for each item.
    list: Vec<u8>,
    /// The item that is arriving.
    item: Vec<u8>,
    /// The number of open brackets.
    depth: usize,
    place: Place,
    /// The last string of the list itself, which is the key of the value that follows.
    key: Range<usize>,
    /// Whether the present array is `items`.
    is_inside: bool,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    #[default]
    Plain,
    String,
    /// In a string, after a backslash.
    Escaped,
}

/// The depth of the fields of the list.
const FIELDS: usize = 1;
/// The depth of its items.
const ITEMS: usize = 2;

impl Items {
    /// Takes the next piece of the text, and passes each item that it completes to `found`.
    pub fn read(&mut self, mut piece: &[u8], mut found: impl FnMut(&[u8])) {
        while !piece.is_empty() {
            // Everything up to the next byte that matters.
            let length = match self.place {
                Place::Plain => piece.iter().position(|byte| b"\"{}[],".contains(byte)),
                Place::String => memchr::memchr2(b'"', b'\\', piece),
                Place::Escaped => Some(0),
            };
            let (run, rest) = piece.split_at(length.unwrap_or(piece.len()));
            self.text().extend_from_slice(run);
            let Some((byte, rest)) = rest.split_first() else { return };
            self.step(*byte, &mut found);
            piece = rest;
        }
    }

    /// The list itself, at its end.
    pub fn list(&self) -> &[u8] {
        &self.list
    }

    fn step(&mut self, byte: u8, found: &mut impl FnMut(&[u8])) {
        match (self.place, byte) {
            (Place::Plain, b'"') => {
                self.place = Place::String;
                if self.depth == FIELDS {
                    self.key = self.list.len()..self.list.len();
                }
            }
            (Place::Plain, b'{' | b'[') => {
                self.depth += 1;
                if self.depth == ITEMS
                    && byte == b'['
                    && self.list.get(self.key.clone()) == Some(b"\"items\"")
                {
                    self.list.push(byte);
                    self.is_inside = true;
                    return;
                }
            }
            (Place::Plain, b'}' | b']') => {
                if self.is_inside && self.depth == ITEMS {
                    self.end_item(found);
                    self.is_inside = false;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            (Place::Plain, b',') if self.is_inside && self.depth == ITEMS => {
                self.end_item(found);
                self.list.push(byte);
                return;
            }
            (Place::String, b'\\') => self.place = Place::Escaped,
            (Place::String, b'"') => self.place = Place::Plain,
            (Place::Escaped, _) => self.place = Place::String,
            _ => {}
        }
        self.text().push(byte);
        if byte == b'"' && self.place == Place::Plain && self.depth == FIELDS {
            self.key.end = self.list.len();
        }
    }

    /// The destination of the next byte.
    fn text(&mut self) -> &mut Vec<u8> {
        if self.is_inside { &mut self.item } else { &mut self.list }
    }

    fn end_item(&mut self, found: &mut impl FnMut(&[u8])) {
        let mut item = take(&mut self.item);
        if !item.trim_ascii().is_empty() {
            found(&item);
            self.list.push(b'0');
        }
        // Its memory serves the next item.
        item.clear();
        self.item = item;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str, pieces: usize) -> (Vec<String>, String) {
        let (mut items, mut found) = (Items::default(), Vec::new());
        for piece in text.as_bytes().chunks(pieces) {
            items.read(piece, |item| found.push(String::from_utf8(item.to_vec()).unwrap()));
        }
        (found, String::from_utf8(items.list().to_vec()).unwrap())
    }

    #[test]
    fn only_the_items_of_the_list_itself_are_items() {
        let text = r#"{"kind":"items", "other": {"items": [1]}, "items": [ {"items": [2]} , "a,]\"", 7 ], "more": [3]}"#;
        let (found, list) = read(text, 1);
        assert_eq!(found, [r#" {"items": [2]} "#, r#" "a,]\"""#, " 7 "]);
        assert_eq!(list, r#"{"kind":"items", "other": {"items": [1]}, "items": [0,0,0], "more": [3]}"#);
    }

    #[test]
    fn a_list_without_items_is_a_list() {
        for text in [r#"{"items": null}"#, r#"{"items": []}"#, r#"{"items": [ ]}"#, "{}"] {
            let (found, list) = read(text, 3);
            assert!(found.is_empty() && serde_json::from_str::<Value>(&list).is_ok(), "{text}: {list}");
        }
    }

    #[test]
    fn what_is_no_list_is_still_none() {
        for text in [r#"{"items": [{},]}"#, r#"{"items": [{}"#, r#"{"items": [{}}"#, r#"{"items": [{}, {"a"#]
        {
            let (_, list) = read(text, 4);
            assert!(serde_json::from_str::<Value>(&list).is_err(), "{text}: {list}");
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let texts = r#"[\\"{}\[\],:a-cé\n]{0,6}|items"#;
        let leaf =
            prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), texts.prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(texts, inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_text_of_any_pieces_has_the_items_that_it_has_as_a_whole(
            items in prop::collection::vec(any_value(), 0..5),
            other in any_value(),
            is_first: bool,
            is_pretty: bool,
            pieces in 1_usize..40,
        ) {
            let list = json!({(if is_first { "zoo" } else { "all" }): other, "items": items});
            let text = if is_pretty { serde_json::to_string_pretty(&list) } else { serde_json::to_string(&list) };
            let (found, left) = read(&text.unwrap(), pieces);
            let found: Vec<Value> = found.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
            let mut left: Value = serde_json::from_str(&left).unwrap();
            prop_assert_eq!(left["items"].take(), json!(vec![0; items.len()]));
            prop_assert_eq!(&left[if is_first { "zoo" } else { "all" }], &list[if is_first { "zoo" } else { "all" }]);
            prop_assert_eq!(found, items);
        }
    }
}
