//! JSON that is decoded to a limited depth.

use std::{cell::Cell, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Number of decoded levels: fewer than the 128 at which `serde_json` gives up, and more than any schema, template or
/// rule needs. The API server accepts 10,000.
const DEEPEST: usize = 100;

/// A value in which everything below a hundred levels is null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounded {
    /// The value.
    pub value: Value,
    /// Whether nothing was nested deeper.
    pub is_whole: bool,
}

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        let is_whole = Cell::new(true);
        let value = Levels { left: DEEPEST, is_whole: &is_whole }.deserialize(decoder)?;
        Ok(Self { value, is_whole: is_whole.get() })
    }
}

/// The remaining levels.
#[derive(Clone, Copy)]
struct Levels<'w> {
    left: usize,
    is_whole: &'w Cell<bool>,
}

impl Levels<'_> {
    fn below(self) -> Self {
        Self { left: self.left - 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Levels<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, decoder: D) -> Result<Value, D::Error> {
        if self.left > 0 {
            return decoder.deserialize_any(self);
        }
        self.is_whole.set(false);
        IgnoredAny::deserialize(decoder)?;
        Ok(Value::Null)
    }
}

impl<'de> Visitor<'de> for Levels<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below())? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            map.insert(key, fields.next_value_seed(self.below())?);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_decoded_as_it_is_and_what_is_nested_deeper_than_anyone_reads_is_null() {
        let plain = json!({"a": [1, -2, 0.5, true, null, "x", {}], "b": {"c": []}});
        let read = serde_json::from_str::<Bounded>(&plain.to_string()).unwrap();
        assert_eq!(read, Bounded { value: plain, is_whole: true });

        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        let Bounded { mut value, is_whole } = serde_json::from_str(&deep).unwrap();
        let mut levels = 0;
        while let Some(inner) = value.get_mut(0) {
            value = inner.take();
            levels += 1;
        }
        assert_eq!((levels, value, is_whole), (DEEPEST, Value::Null, false));
    }
}
