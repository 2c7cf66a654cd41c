//! The report on a kind: field by field, or requirement by requirement.

use kube::discovery::ApiResource;
use serde::Serialize;

use crate::{paint::Paint, table::Table};

/// The result for a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report<R> {
    /// API version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Whether it has all that is required.
    pub honours: bool,
    /// The result for each item.
    #[serde(flatten)]
    pub results: R,
}

/// The result for each item of a contract.
pub trait Results: Serialize {
    /// The number of required items that a kind lacks.
    fn lacking(&self) -> usize;
    /// The sentence about a kind.
    fn verdict(&self, kind: &str) -> String;
    /// The items.
    fn table(&self) -> Table;
}

impl<R: Results> Report<R> {
    /// The report on a kind with these results.
    pub fn new(kind: &ApiResource, results: R) -> Self {
        Self {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            honours: results.lacking() == 0,
            results,
        }
    }

    /// The report for people.
    pub fn text(&self, paint: Paint) -> String {
        self.results.table().render_under(&self.results.verdict(&self.kind), self.honours, paint)
    }
}
