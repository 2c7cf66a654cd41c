use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;

use minijinja::{
    Value,
    value::{Enumerator, Object},
};

/// The `parameters` of a template, which record those that it read, and the last missing one.
#[derive(Debug)]
pub(super) struct Parameters {
    values: BTreeMap<String, String>,
    /// Has a value for every name.
    probe: bool,
    missing: Mutex<Option<String>>,
    read: Mutex<BTreeSet<String>>,
}

impl Parameters {
    pub fn given(values: &BTreeMap<String, String>) -> Self {
        Self { values: values.clone(), probe: false, missing: Mutex::default(), read: Mutex::default() }
    }

    /// Parameters that have the value `1` under every other name, to try a template out.
    pub fn probe(values: &BTreeMap<String, String>) -> Self {
        Self { probe: true, ..Self::given(values) }
    }

    /// The names that were read.
    pub fn read(&self) -> BTreeSet<String> {
        self.read.lock().clone()
    }

    /// The last missing parameter that was read.
    pub fn missing(&self) -> Option<String> {
        self.missing.lock().clone()
    }
}

impl Object for Parameters {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let value = self.values.get(name).map(|value| Value::from(value.as_str()));
        if value.is_none() && self.probe {
            return Some(Value::from("1"));
        }
        self.read.lock().insert(name.to_owned());
        if value.is_none() {
            *self.missing.lock() = Some(name.to_owned());
        }
        value
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.values.keys().map(|name| Value::from(name.as_str())).collect())
    }
}
