//! Writes of statuses. A status that is this controller's as a whole says nothing else afterwards, whoever wrote
//! what: an apply takes away only what nobody else has a part of.

use json_patch::{PatchOperation, RemoveOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    api::{GetParams, Patch, PatchParams},
    discovery::ApiResource,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Status, Writer, Written, as_yaml, excess::excess, request};
use crate::{
    watch::{Source, Watched, Watermark, trimmed_metadata},
    write::WriteError,
};

/// An object as far as its status goes.
#[derive(Deserialize)]
struct Answer {
    #[serde(deserialize_with = "trimmed_metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Value,
}

/// Whose status is written, on whose behalf, and what will show it.
#[derive(Clone, Copy)]
struct StatusWrite<'p> {
    whose: &'p str,
    seen: &'p Watermark,
    resource: &'p ApiResource,
    meta: &'p ObjectMeta,
}

impl Writer {
    /// Makes the status of the object that is being reconciled say this and nothing else, conditions of other
    /// types than `types` aside.
    ///
    /// # Errors
    /// [`WriteError::Changed`] when the object was replaced by another one of its name, and
    /// [`WriteError::StatusRefused`].
    pub async fn write_status<K, S>(&self, object: &K, status: &S, types: &[&str]) -> Written<()>
    where
        K: Resource<DynamicType = ()>,
        S: Serialize + Sync,
    {
        let resource = ApiResource::erase::<K>(&());
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        self.write_status_for(uid, &self.primary, &resource, object.meta(), status, types).await?;
        self.wrote_status(uid);
        Ok(())
    }

    /// The same for an object that is not the one that is being reconciled, on behalf of the object with the uid
    /// `whose`; `seen` will show it.
    ///
    /// # Errors
    /// [`WriteError::Changed`] when the object was replaced by another one of its name, and
    /// [`WriteError::StatusRefused`].
    pub async fn write_status_for<S: Serialize + Sync>(
        &self,
        whose: &str,
        seen: &Watermark,
        resource: &ApiResource,
        meta: &ObjectMeta,
        status: &S,
        types: &[&str],
    ) -> Written<()> {
        let place = StatusWrite { whose, seen, resource, meta };
        self.replace_in(place, status, types).await.map_err(WriteError::of_status)
    }

    async fn replace_in<S: Serialize + Sync>(
        &self,
        place: StatusWrite<'_>,
        status: &S,
        types: &[&str],
    ) -> Written<()> {
        let said = serde_json::to_value(status).unwrap_or_default();
        let applied = match self.apply_in(place, &said).await {
            // What would be left of a condition that somebody else has a part of is not valid.
            Err(refused @ WriteError::Invalid { .. }) => {
                let found = self.read_in(place).await?;
                if !self.take_away(place, &found, &said, types).await? {
                    return Err(refused);
                }
                self.apply_in(place, &said).await?
            }
            applied => applied?,
        };
        self.take_away(place, &applied, &said, types).await?;
        Ok(())
    }

    /// Applies the part of a status that is this controller's, of an object of one of several kinds.
    ///
    /// # Errors
    /// [`WriteError::Changed`] when the object was replaced by another one of its name, and
    /// [`WriteError::StatusRefused`].
    pub async fn apply_status_of<R, S: Serialize + Sync>(
        &self,
        object: &Watched<R>,
        status: &S,
    ) -> Written<()> {
        let Source { resource, seen, .. } = &*object.source;
        let whose = object.metadata.uid.as_deref().unwrap_or_default();
        let place = StatusWrite { whose, seen, resource, meta: &object.metadata };
        let said = serde_json::to_value(status).unwrap_or_default();
        self.apply_in(place, &said).await.map_err(WriteError::of_status)?;
        self.wrote_status(whose);
        Ok(())
    }

    fn wrote_status(&self, uid: &str) {
        self.statuses().insert(uid.to_owned(), Status::Written(Instant::now()));
    }

    async fn apply_in(&self, place: StatusWrite<'_>, status: &Value) -> Written<Answer> {
        let StatusWrite { whose, seen, resource, .. } = place;
        let (namespace, name, uid) = place.parts();
        let patch = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "uid": uid},
            "status": status,
        });
        let params = PatchParams::apply(self.manager).force();
        let build = || {
            request(resource, namespace)
                .patch_subresource("status", name, &params, &Patch::Apply(&patch))
                .map(as_yaml)
        };
        let answer: Answer = self.send(whose, "apply_status", &resource.kind, name, build).await?;
        self.remember(whose, seen, answer.metadata.resource_version.as_deref());
        Ok(answer)
    }

    async fn read_in(&self, place: StatusWrite<'_>) -> Written<Answer> {
        let (namespace, name, _) = place.parts();
        let kind = &place.resource.kind;
        let refused = |error| WriteError::of(error, kind, name);
        let read = request(place.resource, namespace).get(name, &GetParams::default());
        let read = read.map_err(|error| refused(kube::Error::BuildRequest(error)))?;
        self.client.request(read).await.map_err(refused)
    }

    /// Removes what a status says beyond `said`, from the very object that was found, as it was found; whether
    /// there was anything.
    async fn take_away(
        &self,
        place: StatusWrite<'_>,
        found: &Answer,
        said: &Value,
        types: &[&str],
    ) -> Written<bool> {
        let excess = excess(said, &found.status, types);
        if excess.is_empty() {
            return Ok(false);
        }
        let StatusWrite { whose, seen, resource, .. } = place;
        let (namespace, name, uid) = place.parts();
        let version = found.metadata.resource_version.as_deref().unwrap_or_default();
        let tests = [("uid", uid), ("resourceVersion", version)].map(|(field, value)| {
            let path = PointerBuf::from_tokens(["metadata", field]);
            PatchOperation::Test(TestOperation { path, value: value.into() })
        });
        let removals = excess.into_iter().map(|path| PatchOperation::Remove(RemoveOperation { path }));
        let patch: Patch<()> = Patch::Json(json_patch::Patch(tests.into_iter().chain(removals).collect()));
        let params = PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() };
        let build = || request(resource, namespace).patch_subresource("status", name, &params, &patch);
        let answer: Answer = self
            .send(whose, "amend_status", &resource.kind, name, build)
            .await
            .map_err(WriteError::of_failed_test)?;
        self.remember(whose, seen, answer.metadata.resource_version.as_deref());
        Ok(true)
    }
}

impl StatusWrite<'_> {
    /// Namespace, name and uid.
    fn parts(&self) -> (&str, &str, &str) {
        let ObjectMeta { namespace, name, uid, .. } = self.meta;
        [namespace, name, uid].map(|part| part.as_deref().unwrap_or_default()).into()
    }
}
