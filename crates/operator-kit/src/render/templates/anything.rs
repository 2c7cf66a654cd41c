use std::{fmt, sync::Arc};

use minijinja::{
    Value,
    value::{Enumerator, Object, ObjectRepr},
};

/// A value that has every field, each of which is like it, and is written as `1`: to try a template out.
#[derive(Debug)]
pub(super) struct Anything;

impl Object for Anything {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, _key: &Value) -> Option<Value> {
        Some(Value::from_object(Self))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Empty
    }

    fn render(self: &Arc<Self>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("1")
    }
}
