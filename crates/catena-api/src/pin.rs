use serde::{Deserialize, Serialize};

use crate::{BasicDeployment, keys};

/// A rollback that holds a `BasicDeployment` on a revision: the value of the annotation
/// [`PINNED_REVISION`](keys::PINNED_REVISION). It holds for as long as spec and template give the rejected rendering, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The uid of the `BasicDeployment`: on a copy of it, nothing is held.
    pub uid: String,
    /// The hash of the revision.
    pub hash: String,
    /// The hash of the rejected rendering. It is that of the revision itself if nothing was rejected.
    pub rejects: String,
}

impl Pin {
    /// The one that is recorded on a `BasicDeployment` and meant for it.
    #[must_use]
    pub fn on(deployment: &BasicDeployment) -> Option<Self> {
        let metadata = &deployment.metadata;
        let recorded = metadata.annotations.as_ref()?.get(keys::PINNED_REVISION)?;
        let pin: Self = serde_json::from_str(recorded).ok()?;
        (metadata.uid.as_ref() == Some(&pin.uid)).then_some(pin)
    }

    /// Whether it rejects a rendering, and not only goes back to the one that spec and template give.
    #[must_use]
    pub fn is_rejection(&self) -> bool {
        self.hash != self.rejects
    }

    /// The value of the annotation.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_holds_only_the_object_that_it_was_made_for() {
        let pin = Pin { uid: "own".into(), hash: "good".into(), rejects: "bad".into() };
        let on = |uid: &str, value: String| {
            let mut deployment = BasicDeployment::default();
            deployment.metadata.uid = Some(uid.into());
            deployment.metadata.annotations = Some([(keys::PINNED_REVISION.into(), value)].into());
            Pin::on(&deployment)
        };
        assert_eq!(on("own", pin.to_json()), Some(pin.clone()));
        assert_eq!(on("copy", pin.to_json()), None);
        assert_eq!(on("own", "good".into()), None);
    }
}
