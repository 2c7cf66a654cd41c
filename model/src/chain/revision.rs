//! The revisions of a `BasicDeployment`, by what is written on the server: counted independently of its controller.

use catena_api::{
    Pin,
    keys::{HASH, PINNED_REVISION},
};

use super::{
    content::{Object, Server, Stored},
    controllers,
};
use crate::server::object::{Kind, Text};

/// The hash of the present rendering.
pub fn rendering(deployment: &Stored) -> Text {
    controllers::rendered(deployment).expect("the model's templates are valid").hash.into()
}

/// The rollback that is recorded on a `BasicDeployment` and meant for it.
pub fn pin(deployment: &Object) -> Option<Pin> {
    let pin: Pin = serde_json::from_str(deployment.meta.annotations.get(PINNED_REVISION)?).ok()?;
    (*pin.uid == *deployment.meta.uid).then_some(pin)
}

/// The rollback that holds a `BasicDeployment`.
pub fn holding_pin(deployment: &Stored) -> Option<Pin> {
    pin(deployment).filter(|pin| *pin.rejects == *rendering(deployment))
}

/// Whether a rollback is recorded that holds no longer.
pub fn has_spent_pin(deployment: &Stored) -> bool {
    deployment.meta.annotations.contains_key(PINNED_REVISION) && holding_pin(deployment).is_none()
}

/// The hash of the revision that a `BasicDeployment` is to have.
pub fn wanted_revision(deployment: &Stored) -> Text {
    holding_pin(deployment).map_or_else(|| rendering(deployment), |pin| pin.hash.into())
}

/// The hash of the revision before the newest one: stored, or where nobody stores any, reported.
pub fn previous(server: &Server, deployment: &Object) -> Option<Text> {
    let is_stored = |object: &&Stored| {
        object.meta.key.kind == Kind::Revision && object.meta.controller() == Some(&deployment.meta.uid)
    };
    let mut stored: Vec<_> = server.objects().filter(is_stored).collect();
    stored.sort_by_key(|revision| revision.spec.value()["revision"].as_i64());
    let hash = |revision: &&Stored| revision.meta.annotations.get(HASH).cloned();
    if !stored.is_empty() {
        return stored.iter().rev().nth(1).and_then(hash);
    }
    let reported = deployment.status.value()["revisions"].as_array()?;
    reported.iter().rev().nth(1)?["hash"].as_str().map(Into::into)
}
