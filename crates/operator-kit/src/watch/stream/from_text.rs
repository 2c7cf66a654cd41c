//! What comes out of the texts of a server, for tests that make them up.

use serde::de::DeserializeOwned;

use super::{change::Change, page::read_text};
use crate::watch::lenient::Lenient;

/// The objects of a page of a list.
pub(crate) fn read_page<K: DeserializeOwned>(text: &str) -> serde_json::Result<Vec<Lenient<K>>> {
    read_text(text)
}

/// Whether a line of a watch is understood.
pub(crate) fn read_change<K: DeserializeOwned>(line: &str) -> bool {
    Change::<K>::read(line).is_ok()
}
