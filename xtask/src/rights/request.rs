//! Requests of controllers.

use std::fmt;

/// A controller, by the name of its ServiceAccount in the namespace of the charts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account(pub String);

/// A request, in the terms of an authorizer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    pub account: Account,
    pub verb: String,
    /// With group and subresource, such as `basicdeployments.catena.dev/status`; a path if it is for no resource.
    pub resource: String,
    /// Empty for a cluster-wide resource.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
}

/// A resource in this notation: `pods`, `basicdeployments.catena.dev/status`.
pub fn resource(group: &str, name: &str, subresource: &str) -> String {
    let mut text = name.to_owned();
    for (separator, part) in [('.', group), ('/', subresource)] {
        if !part.is_empty() {
            text.push(separator);
            text.push_str(part);
        }
    }
    text
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
