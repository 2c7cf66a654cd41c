use std::borrow::Cow;

use kube::{api::ObjectMeta, core::Status};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::interruption::Interruption;
use crate::watch::lenient::Lenient;

/// The content of a line of a watch.
pub(super) enum Change<K> {
    /// An object is new or changed.
    Applied(Lenient<K>),
    /// An object is gone.
    Deleted(Lenient<K>),
    /// The watch is as far as this version.
    Reached(String),
}

/// A line of a watch. kube's `WatchEvent` decodes the object with the line, and fails with it.
#[derive(Deserialize)]
struct Line<'t> {
    r#type: Cow<'t, str>,
    #[serde(borrow)]
    object: &'t RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: ObjectMeta,
}

impl<K: DeserializeOwned> Change<K> {
    pub fn read(text: &str) -> Result<Self, Interruption> {
        let Line { r#type, object } = serde_json::from_str(text).map_err(kube::Error::SerdeError)?;
        Ok(match &*r#type {
            "ADDED" | "MODIFIED" => Self::Applied(Lenient::read(object)),
            "DELETED" => Self::Deleted(Lenient::read(object)),
            "BOOKMARK" => {
                let Bookmark { metadata } =
                    serde_json::from_str(object.get()).map_err(kube::Error::SerdeError)?;
                Self::Reached(metadata.resource_version.unwrap_or_default())
            }
            _ => {
                let status: Status = serde_json::from_str(object.get()).map_err(kube::Error::SerdeError)?;
                return Err(kube::Error::Api(Box::new(status)).into());
            }
        })
    }
}
