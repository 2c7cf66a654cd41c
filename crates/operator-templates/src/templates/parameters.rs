use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use minijinja::{
    Value,
    value::{Enumerator, Object},
};
use parking_lot::Mutex;

/// The `parameters` of a template, which record those that it read, and the last missing one.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    values: BTreeMap<String, String>,
    /// Whether every other name has the value `1`, to try a template out.
    is_probe: bool,
    missing: Mutex<Option<String>>,
    read: Mutex<BTreeSet<String>>,
}

impl Parameters {
    pub fn new(values: BTreeMap<String, String>, is_probe: bool) -> Arc<Self> {
        Arc::new(Self { values, is_probe, ..Self::default() })
    }

    /// The same parameters, and this one.
    pub fn with(&self, name: &str) -> Arc<Self> {
        let mut values = self.values.clone();
        values.insert(name.to_owned(), "1".to_owned());
        Self::new(values, self.is_probe)
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
        if value.is_none() && self.is_probe {
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
