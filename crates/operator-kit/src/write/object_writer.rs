//! Writes on behalf of the reconciled object, whose next pass waits until the caches show them.

use json_patch::PatchOperation;
use kube::{
    Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use operator_watch::{ApiError, Cause, Live, ObjectId, Pruned, WriteTarget};
use serde_json::Value;

use super::{
    Ownership, Writer,
    send::{Target, Versioned, answered_by_metadata, as_yaml},
};

/// Writes on behalf of one object.
#[derive(Clone, Copy)]
pub struct ObjectWriter<'w> {
    pub(super) writer: &'w Writer,
    /// The object's uid.
    pub(super) whose: &'w str,
    /// The field whose change by somebody else the writes undo.
    pub(super) undoes: Option<&'w str>,
}

impl Writer {
    /// Writes on behalf of an object, whose next pass waits until the caches show them.
    #[must_use]
    pub fn for_object<'w>(&'w self, object: ObjectId<'w>) -> ObjectWriter<'w> {
        ObjectWriter { writer: self, whose: object.uid, undoes: None }
    }

    /// Merges a patch of the reconciled object, in exactly the state that was observed.
    ///
    /// # Errors
    /// [`Cause::Conflict`] if it was changed or replaced meanwhile.
    pub async fn merge_patch_own<K>(&self, object: &K, mut patch: Value) -> Result<(), ApiError>
    where
        K: Resource<DynamicType = ()>,
    {
        let kind = WriteTarget::of::<K>(&self.primary);
        let (id, metadata) = (ObjectId::of(object), &mut patch["metadata"]);
        metadata["namespace"] = id.namespace.into();
        metadata["name"] = id.name.into();
        metadata["uid"] = id.uid.into();
        metadata["resourceVersion"] = object.meta().resource_version.clone().into();
        self.for_object(id).merge_patch(&kind, &patch).await
    }
}

impl<'w> ObjectWriter<'w> {
    /// For writes that undo somebody's change of a field, such as `spec.replicas`. After a few of them in quick succession they
    /// are made once a minute, and the other writer is told.
    #[must_use]
    pub fn undoing(self, field: Option<&'w str>) -> Self {
        Self { undoes: field, ..self }
    }
}

impl ObjectWriter<'_> {
    /// Creates an object.
    ///
    /// # Errors
    /// [`Cause::AlreadyExists`] also after an earlier try whose answer was lost: look up the owner.
    pub async fn create(&self, kind: &WriteTarget, object: &Value) -> Result<(), ApiError> {
        self.create_with(kind, || Ok(object.clone())).await
    }

    /// Creates the object that `make` returns. It is called when the object is about to be sent, and once more for each retry,
    /// so that of many objects few are in memory.
    ///
    /// # Errors
    /// The errors of `make`, and those of [`ObjectWriter::create`].
    pub async fn create_with<E: From<ApiError>>(
        &self,
        kind: &WriteTarget,
        make: impl Fn() -> Result<Value, E>,
    ) -> Result<(), E> {
        let params = PostParams { field_manager: Some(self.writer.manager.into()), ..PostParams::default() };
        let build = || {
            let object = make()?;
            let (target, body) = (Target::of(kind, &object), serde_json::to_vec(&object).unwrap_or_default());
            let request = target.request().create(&params, body).map(answered_by_metadata);
            Ok((target, request))
        };
        self.send::<Pruned, E>("create", build).await.map(drop)
    }

    /// Applies an object (server-side apply), and returns the stored object.
    ///
    /// With a `metadata.uid`, it applies to exactly that object, and takes fields over from other managers. Without
    /// one, it is meant to create: it takes no field over from an object that somebody else created meanwhile (but
    /// adds missing ones), so look for one first.
    ///
    /// # Errors
    /// [`Cause::Conflict`] if another object has the name.
    pub async fn apply(&self, kind: &WriteTarget, object: &Value) -> Result<Value, ApiError> {
        let target = Target::of(kind, object);
        let force = object.pointer("/metadata/uid").is_some();
        let params = PatchParams { force, ..PatchParams::apply(self.writer.manager) };
        let build = || target.request().patch(&target.name, &params, &Patch::Apply(object)).map(as_yaml);
        self.send("apply", || Ok((target.clone(), build()))).await
    }

    /// Merges a patch with the uid of its object: for single fields, where an apply would have to repeat all others.
    ///
    /// # Errors
    /// [`Cause::Conflict`] if the object was replaced.
    pub async fn merge_patch(&self, kind: &WriteTarget, patch: &Value) -> Result<(), ApiError> {
        self.merge::<Pruned>(kind, patch).await.map(drop)
    }

    /// The same, and returns the stored object.
    ///
    /// # Errors
    /// [`Cause::Conflict`] if the object was replaced.
    pub async fn merged(&self, kind: &WriteTarget, patch: &Value) -> Result<Value, ApiError> {
        self.merge(kind, patch).await
    }

    async fn merge<T: Versioned>(&self, kind: &WriteTarget, patch: &Value) -> Result<T, ApiError> {
        let (target, params) = (Target::of(kind, patch), self.patch_params());
        let build = || target.request().patch(&target.name, &params, &Patch::Merge(patch));
        self.send("merge", || Ok((target.clone(), build()))).await
    }

    /// Changes an object by a JSON patch, for lists with only one item of ours. The patch tests the values on which it
    /// relies, at least the uid.
    ///
    /// # Errors
    /// [`Cause::Conflict`] if one of its tests fails.
    pub async fn json_patch(
        &self,
        kind: &WriteTarget,
        object: ObjectId<'_>,
        patch: &[PatchOperation],
    ) -> Result<(), ApiError> {
        let target = Target::new(kind, object);
        let params = self.patch_params();
        let patch: Patch<()> = Patch::Json(json_patch::Patch(patch.to_vec()));
        let patched = self.write("amend", &target, || target.request().patch(&target.name, &params, &patch));
        patched.await.map_err(ApiError::of_failed_test)
    }

    /// Refreshes the version in a dependent's reference to the object, whose kind is `K`, by [`Ownership::refreshed`]. A dependent that is
    /// gone needs no refresh.
    ///
    /// # Errors
    /// [`Cause::Conflict`] if the dependent was changed meanwhile.
    pub async fn refresh_owner<K: Resource<DynamicType = ()>>(
        &self,
        kind: &WriteTarget,
        dependent: ObjectId<'_>,
    ) -> Result<(), ApiError> {
        let ObjectId { namespace, name, uid } = dependent;
        let found = Live::metadata(&self.writer.client, &kind.resource, namespace, name).await?;
        let found = found.filter(|found| found.uid.as_deref() == Some(uid));
        match found.and_then(|found| Ownership::refreshed(&found, self.whose, &K::api_version(&()))) {
            Some(patch) => self.json_patch(kind, dependent, &patch).await,
            None => Ok(()),
        }
    }

    pub(super) fn patch_params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.writer.manager.into()), ..PatchParams::default() }
    }

    /// Deletes the object with this uid, and in the state that `params` may ask for. It is a success if it is already gone.
    /// Unless `params` say so, its kind decides what becomes of its dependents: a Job, for example, leaves its pods behind.
    /// A deletion in the foreground has the object stay, with a deletion timestamp, until the dependents are gone that have
    /// blocked that by their owner reference: for a controller whose status counts an object until nothing of it runs any more.
    ///
    /// # Errors
    /// [`Cause::Forbidden`] and the like, and [`Cause::Conflict`] if the object is not in the state that is asked for.
    pub async fn delete(
        &self,
        kind: &WriteTarget,
        object: ObjectId<'_>,
        mut params: DeleteParams,
    ) -> Result<(), ApiError> {
        let target = Target::new(kind, object);
        let is_any_state = params.preconditions.is_none();
        let preconditions = params.preconditions.get_or_insert_default();
        preconditions.uid = Some(object.uid.to_owned());
        match self.write("delete", &target, || target.request().delete(&target.name, &params)).await {
            Err(error) if error.cause == Cause::NotFound => Ok(()),
            // Another object with its name shows that it is gone.
            Err(error) if error.cause == Cause::Conflict && is_any_state => Ok(()),
            deleted => deleted,
        }
    }
}
