//! JSON that is decoded only so deep.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Levels that are decoded: fewer than the 128 at which `serde_json` gives an object up, and more than any schema,
/// template or rule goes down. The API server takes 10,000.
const DEEPEST: usize = 100;

/// A value in which everything that is nested deeper than a hundred levels is null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounded(pub Value);

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        Levels(DEEPEST).deserialize(decoder).map(Self)
    }
}

/// So many levels are still decoded.
#[derive(Clone, Copy)]
struct Levels(usize);

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, decoder: D) -> Result<Value, D::Error> {
        if self.0 > 0 {
            return decoder.deserialize_any(self);
        }
        IgnoredAny::deserialize(decoder)?;
        Ok(Value::Null)
    }
}

impl<'de> Visitor<'de> for Levels {
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
        while let Some(item) = items.next_element_seed(Self(self.0 - 1))? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            map.insert(key, fields.next_value_seed(Self(self.0 - 1))?);
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
        assert_eq!(serde_json::from_str::<Bounded>(&plain.to_string()).unwrap().0, plain);

        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        let Bounded(mut value) = serde_json::from_str(&deep).unwrap();
        let mut levels = 0;
        while let Some(inner) = value.get_mut(0) {
            value = inner.take();
            levels += 1;
        }
        assert_eq!((levels, value), (DEEPEST, Value::Null));
    }
}
