//! Operations of the model as requests to the real API server.
//!
//! An Ingress stands for all kinds but Pod, because no controller touches it and the garbage collector knows its kind. The pods are
//! on a node that nobody runs, so that they have a grace period that nobody ends.

use anyhow::{Result, bail};
use k8s_openapi::api::{core::v1::Pod, networking::v1::Ingress};
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
        PropagationPolicy,
    },
    core::response::Status,
};
use model::server::{
    object::{Key, Kind, Object, Owner},
    operation::{Change, Operation, Propagation, Verb},
};
use serde_json::{Value, json};

use super::{Identities, Outcome, shape::Shape};
use crate::{OwnNode, WAIT_TIMEOUT, eventually::until_gone};

/// The real API server, in one namespace.
pub(super) struct Real {
    sets: Api<DynamicObject>,
    pods: Api<DynamicObject>,
    /// The node of the pods, which has to exist: pods on one that does not are deleted within a minute.
    node: String,
    /// The number of applies, each as its own field manager, so that none removes fields of another.
    applies: usize,
    probes: usize,
}

type Asked = kube::Result<Option<DynamicObject>>;

impl Real {
    pub fn new(client: &Client, namespace: &str, node: &OwnNode) -> Self {
        let api = |kind| Api::namespaced_with(client.clone(), namespace, &kind);
        Self {
            sets: api(ApiResource::erase::<Ingress>(&())),
            pods: api(ApiResource::erase::<Pod>(&())),
            node: node.name.clone(),
            applies: 0,
            probes: 0,
        }
    }

    fn api(&self, kind: Kind) -> &Api<DynamicObject> {
        if kind == Kind::Pod { &self.pods } else { &self.sets }
    }

    /// All objects in the order of the model.
    pub async fn objects(&self) -> Result<Vec<Shape>> {
        let mut all = Vec::new();
        for kind in [Kind::ReplicaSet, Kind::Pod] {
            let found = self.api(kind).list(&ListParams::default()).await?;
            all.extend(found.items.iter().map(|object| Shape::of_real(kind, object)));
        }
        all.sort();
        Ok(all)
    }

    /// Sends a request, and returns the class of the answer, and the object in it.
    pub async fn request(
        &mut self,
        operation: &Operation<u8, u8>,
        identities: &Identities,
    ) -> Result<(Outcome, Option<DynamicObject>)> {
        let asked = self.send(operation, identities).await;
        Ok(match asked {
            Ok(object) => (Outcome::Done, object),
            Err(kube::Error::Api(status)) => match (status.code, status.reason.as_str()) {
                (404, _) => (Outcome::NotFound, None),
                (409, "AlreadyExists") => (Outcome::AlreadyExists, None),
                (409, _) => (Outcome::Conflict, None),
                // The server takes another uid in a merge patch for a change, and the kit takes that for a conflict.
                (422, _) if names_uid(&status) => (Outcome::Conflict, None),
                (422, _) => (Outcome::Invalid, None),
                _ => bail!("{operation:?} is answered by {status:?}"),
            },
            Err(error) => return Err(error.into()),
        })
    }

    async fn send(&mut self, operation: &Operation<u8, u8>, identities: &Identities) -> Asked {
        let api = self.api(operation.key().kind).clone();
        match operation {
            Operation::Create(object) => {
                let mut created = created(object, identities);
                if object.meta.key.kind == Kind::Pod {
                    created["spec"]["nodeName"] = self.node.clone().into();
                }
                let object: DynamicObject =
                    serde_json::from_value(created).map_err(kube::Error::SerdeError)?;
                api.create(&PostParams::default(), &object).await.map(Some)
            }
            Operation::Get(key) => api.get(&key.name).await.map(Some),
            Operation::Patch { key, verb, preconditions, changes } => {
                let mut body = json!({"metadata": relied_on(preconditions, identities)});
                let now = api.get_opt(&key.name).await?;
                for change in changes {
                    put(&mut body, key, change, now.as_ref(), identities);
                }
                match verb {
                    Verb::Merge => {
                        api.patch(&key.name, &PatchParams::default(), &Patch::Merge(body)).await.map(Some)
                    }
                    Verb::Apply => {
                        let params = self.apply();
                        api.patch(&key.name, &params, &Patch::Apply(named(key, body))).await.map(Some)
                    }
                }
            }
            Operation::PatchStatus { key, preconditions, status } => {
                let reported = if key.kind == Kind::Pod {
                    json!({"message": format!("v{status}")})
                } else {
                    json!({"loadBalancer": {"ingress": [{"hostname": format!("v{status}")}]}})
                };
                let body = json!({"metadata": relied_on(preconditions, identities), "status": reported});
                let params = self.apply();
                api.patch_status(&key.name, &params, &Patch::Apply(named(key, body))).await.map(Some)
            }
            Operation::Delete { key, preconditions, propagation, is_immediate } => {
                let params = DeleteParams {
                    preconditions: Some(Preconditions {
                        uid: preconditions.uid.as_ref().map(|uid| identities.uid(uid)),
                        resource_version: relied_on(preconditions, identities)["resourceVersion"]
                            .as_str()
                            .map(str::to_owned),
                    }),
                    propagation_policy: propagation.map(|propagation| match propagation {
                        Propagation::Background => PropagationPolicy::Background,
                        Propagation::Foreground => PropagationPolicy::Foreground,
                        Propagation::Orphan => PropagationPolicy::Orphan,
                    }),
                    grace_period_seconds: is_immediate.then_some(0),
                    ..DeleteParams::default()
                };
                api.delete(&key.name, &params).await.map(|_| None)
            }
        }
    }

    fn apply(&mut self) -> PatchParams {
        self.applies += 1;
        PatchParams::apply(&format!("twin-{}", self.applies)).force()
    }

    /// Removes all objects, whatever holds them.
    pub async fn clear(&self) -> Result<()> {
        for api in [&self.sets, &self.pods] {
            for object in api.list(&ListParams::default()).await?.items {
                let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                let ended = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::background() };
                // Without its finalizer, a terminating object is gone.
                let released =
                    api.patch(&object.name_any(), &PatchParams::default(), &released).await.map(drop);
                let deleted = api.delete(&object.name_any(), &ended).await.map(drop);
                for result in [released, deleted] {
                    match result {
                        Err(kube::Error::Api(status)) if status.is_not_found() => {}
                        result => result?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits until the garbage collector has seen all pods: it deletes one whose owner never existed only after those
    /// before it.
    pub async fn until_collector_is_current(&mut self) -> Result<()> {
        self.probes += 1;
        let name = format!("probe-{}", self.probes);
        let owner = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "nobody",
            "uid": format!("00000000-0000-0000-0000-{:012}", self.probes),
        });
        let mut probe = json!({"metadata": {"name": name, "ownerReferences": [owner]}, "spec": pod_spec()});
        // Without a node it has no grace period.
        probe["spec"]["schedulerName"] = "nobody".into();
        self.pods.create(&PostParams::default(), &serde_json::from_value(probe)?).await?;
        let what = "the garbage collector has seen all pods";
        until_gone(what, WAIT_TIMEOUT, self.pods.clone(), &name).await;
        Ok(())
    }
}

fn names_uid(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

fn relied_on(preconditions: &model::server::operation::Preconditions, identities: &Identities) -> Value {
    let mut metadata = json!({});
    if let Some(uid) = &preconditions.uid {
        metadata["uid"] = identities.uid(uid).into();
        if let Some(version) = preconditions.version {
            metadata["resourceVersion"] = identities.version(uid, version).into();
        }
    }
    metadata
}

fn named(key: &Key, mut body: Value) -> Value {
    let (api_version, kind) = type_of(key.kind);
    (body["apiVersion"], body["kind"]) = (api_version.into(), kind.into());
    body["metadata"]["name"] = (*key.name).into();
    body
}

fn type_of(kind: Kind) -> (&'static str, &'static str) {
    if kind == Kind::Pod { ("v1", "Pod") } else { ("networking.k8s.io/v1", "Ingress") }
}

fn created(object: &Object<u8, u8>, identities: &Identities) -> Value {
    let meta = &object.meta;
    let owners: Vec<_> = meta.owners.iter().map(|owner| reference(owner, identities)).collect();
    let body = json!({
        "metadata": {
            "labels": meta.labels, "annotations": meta.annotations, "finalizers": meta.finalizers,
            "ownerReferences": owners,
        },
        "spec": if meta.key.kind == Kind::Pod { pod_spec() } else { set_spec(object.spec) },
    });
    named(&meta.key, body)
}

fn set_spec(spec: u8) -> Value {
    json!({"rules": [{"host": format!("v{spec}")}]})
}

fn pod_spec() -> Value {
    json!({
        "automountServiceAccountToken": false,
        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "main", "image": "registry.invalid/none:1",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    })
}

fn reference(owner: &Owner, identities: &Identities) -> Value {
    let (api_version, kind) = type_of(owner.key.kind);
    json!({
        "apiVersion": api_version, "kind": kind, "name": owner.key.name, "uid": identities.uid(&owner.uid),
        "controller": owner.is_controller, "blockOwnerDeletion": owner.blocks_deletion,
    })
}

/// Adds a change to the body of a patch. A list is written as a whole.
fn put(
    body: &mut Value,
    key: &Key,
    change: &Change<u8>,
    now: Option<&DynamicObject>,
    identities: &Identities,
) {
    let metadata = &mut body["metadata"];
    let owners = || now.map(ResourceExt::owner_references).unwrap_or_default().to_vec();
    let finalizers = || now.map(ResourceExt::finalizers).unwrap_or_default().to_vec();
    match change {
        Change::Label(name, value) => metadata["labels"][&**name] = json!(value),
        Change::Annotation(name, value) => metadata["annotations"][&**name] = json!(value),
        Change::AddOwner(owner) => {
            let uid = identities.uid(&owner.uid);
            let mut all: Vec<_> =
                owners().iter().filter(|other| other.uid != uid).map(|other| json!(other)).collect();
            all.push(reference(owner, identities));
            metadata["ownerReferences"] = all.into();
        }
        Change::RemoveOwner(uid) => {
            let uid = identities.uid(uid);
            let left: Vec<_> = owners().into_iter().filter(|owner| owner.uid != uid).collect();
            metadata["ownerReferences"] = json!(left);
        }
        Change::AddFinalizer(name) => {
            let mut all = finalizers();
            if !all.iter().any(|other| **other == **name) {
                all.push(name.to_string());
            }
            metadata["finalizers"] = json!(all);
        }
        Change::RemoveFinalizer(name) => {
            let left: Vec<_> = finalizers().into_iter().filter(|other| **other != **name).collect();
            metadata["finalizers"] = json!(left);
        }
        Change::Spec(spec) if key.kind != Kind::Pod => body["spec"] = set_spec(*spec),
        Change::Spec(_) => {}
    }
}
