//! Writes of statuses. A status that belongs to this controller as a whole has no other content afterwards, by any
//! writer: an apply alone removes only the fields without another manager.

use json_patch::{PatchOperation, RemoveOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    api::{GetParams, Patch, PatchParams},
    discovery::ApiResource,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    OnBehalf, Writer, Written,
    excess::excess,
    send::{Versioned, as_yaml},
    target::Target,
};
use crate::{
    object::ObjectId,
    watch::{ApiError, Cause, Watched, WatchedResource, live::in_time, trimmed_metadata},
    write::owner::exactly,
};

/// An object, reduced to its status.
#[derive(Deserialize)]
struct Answer {
    #[serde(deserialize_with = "trimmed_metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Value,
}

impl Versioned for Answer {
    fn resource_version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

impl Writer {
    /// Makes this the whole status of the reconciled object, except for conditions of other types than `types`.
    ///
    /// # Errors
    /// [`Cause::Conflict`] when the object was replaced; a refusal says that it is about the status.
    pub async fn write_status<K, S>(&self, object: &K, status: &S, types: &[&str]) -> Written<()>
    where
        K: Resource<DynamicType = ()>,
        S: Serialize + Sync,
    {
        let kind = WatchedResource::new(ApiResource::erase::<K>(&()), &self.primary);
        let id = ObjectId::of(object);
        self.on_behalf_of(id).write_status(&kind, id, status, types).await?;
        self.shared.statuses.lock().wrote(id.uid);
        Ok(())
    }

    /// Applies this controller's part of a status, for an object of one of several kinds.
    ///
    /// # Errors
    /// [`Cause::Conflict`] when the object was replaced; a refusal says that it is about the status.
    pub async fn apply_status_of<R, S: Serialize + Sync>(
        &self,
        object: &Watched<R>,
        status: &S,
    ) -> Written<()> {
        let id = ObjectId::of(object);
        let target = Target::new(&object.source.watched, id);
        let said = serde_json::to_value(status).unwrap_or_default();
        self.on_behalf_of(id).apply_in(target, &said).await.map_err(ApiError::of_status)?;
        self.shared.statuses.lock().wrote(id.uid);
        Ok(())
    }
}

impl OnBehalf<'_> {
    /// Like [`Writer::write_status`], for another object than the reconciled one.
    ///
    /// # Errors
    /// [`Cause::Conflict`] when the object was replaced; a refusal says that it is about the status.
    pub async fn write_status<S: Serialize + Sync>(
        &self,
        kind: &WatchedResource,
        object: ObjectId<'_>,
        status: &S,
        types: &[&str],
    ) -> Written<()> {
        let (target, said) = (Target::new(kind, object), serde_json::to_value(status).unwrap_or_default());
        let written = async {
            let applied = match self.apply_in(target, &said).await {
                // The rest of a condition that has fields of another manager would be invalid.
                Err(refused) if matches!(refused.cause, Cause::Invalid | Cause::UnknownField) => {
                    let found = self.read_in(target).await?;
                    if !self.take_away(target, &found, &said, types).await? {
                        return Err(refused);
                    }
                    self.apply_in(target, &said).await?
                }
                applied => applied?,
            };
            self.take_away(target, &applied, &said, types).await
        };
        written.await.map(drop).map_err(ApiError::of_status)
    }

    async fn apply_in(&self, target: Target<'_>, status: &Value) -> Written<Answer> {
        let patch = json!({
            "apiVersion": target.kind.resource.api_version,
            "kind": target.kind.resource.kind,
            "metadata": {"name": target.name, "uid": target.uid},
            "status": status,
        });
        let params = PatchParams::apply(self.writer.manager).force();
        let build = || {
            let request = target.request();
            request.patch_subresource("status", target.name, &params, &Patch::Apply(&patch)).map(as_yaml)
        };
        self.send("apply_status", target, build).await
    }

    async fn read_in(&self, target: Target<'_>) -> Written<Answer> {
        let read = target.request().get(target.name, &GetParams::default());
        let read = read.map_err(|error| target.error(&kube::Error::BuildRequest(error)))?;
        in_time(self.writer.client.request(read)).await.map_err(|error| target.error(&error))
    }

    /// Removes everything beyond `said` from a status, on exactly the object that was found, in the state in which it
    /// was found. Returns whether there was anything.
    async fn take_away(
        &self,
        target: Target<'_>,
        found: &Answer,
        said: &Value,
        types: &[&str],
    ) -> Written<bool> {
        let excess = excess(said, &found.status, types);
        if excess.is_empty() {
            return Ok(false);
        }
        let tests = exactly(target.uid, found.resource_version().unwrap_or_default());
        let removals = excess.into_iter().map(|path| PatchOperation::Remove(RemoveOperation { path }));
        let patch: Patch<()> = Patch::Json(json_patch::Patch(tests.into_iter().chain(removals).collect()));
        let params = self.patch_params();
        let build = || target.request().patch_subresource("status", target.name, &params, &patch);
        let amended: Written<Answer> = self.send("amend_status", target, build).await;
        amended.map_err(ApiError::of_failed_test)?;
        Ok(true)
    }
}
