use std::fmt::{self, Display};

/// The kind and name of an object, for messages: `Pod "web-x"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Named {
    /// An object of a kind.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), name: name.into() }
    }
}

impl Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.kind, self.name)
    }
}
