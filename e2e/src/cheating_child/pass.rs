//! One pass over a child: its pods first, then its status.

use anyhow::Result;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::DynamicObject,
    discovery::ApiResource,
};
use serde_json::{Value, json};

use super::Cheat;
use crate::{is_alive, is_ready};

/// The label of its pods, with the uid of the child.
const OF: &str = "cheats.example.com/of";
/// The annotation of its pods with the image of their template.
const IMAGE: &str = "cheats.example.com/image";
/// The annotation of its pods with the restart token.
const TOKEN: &str = "cheats.example.com/token";
/// The finalizer that is never removed.
const FINALIZER: &str = "cheats.example.com/stays";

/// A child with its pods.
struct Child<'c> {
    client: &'c Client,
    api: Api<DynamicObject>,
    object: &'c DynamicObject,
    pods: Vec<Pod>,
    cheat: Cheat,
    wanted: usize,
    image: String,
    token: String,
}

/// Makes a pass.
pub async fn over(client: &Client, kind: &ApiResource, object: &DynamicObject) -> Result<()> {
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let (namespace, uid) = (object.namespace().unwrap_or_default(), object.uid().unwrap_or_default());
    let of_it = ListParams::default().labels(&format!("{OF}={uid}"));
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace).list(&of_it).await?;
    let text = |field: &str| object.data["spec"][field].as_str().unwrap_or_default().to_owned();
    let child = Child {
        client,
        api: Api::namespaced_with(client.clone(), &namespace, kind),
        object,
        pods: crate::alive(pods.items),
        cheat: Cheat::named(&text("cheat")),
        wanted: object.data["spec"]["replicas"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1),
        image: text("image"),
        token: text("restartedAt"),
    };
    child.change_metadata().await?;
    child.replace().await?;
    child.report().await
}

impl Child<'_> {
    async fn change_metadata(&self) -> Result<()> {
        let removed = |map: &std::collections::BTreeMap<String, String>| -> Value {
            map.keys().map(|key| (key.clone(), Value::Null)).collect::<serde_json::Map<_, _>>().into()
        };
        let metadata = match self.cheat {
            Cheat::NeverLetsGo if self.object.finalizers().is_empty() => json!({"finalizers": [FINALIZER]}),
            Cheat::RemovesForeignFields if !self.object.labels().is_empty() => {
                json!({"labels": removed(self.object.labels()), "annotations": removed(self.object.annotations())})
            }
            _ => return Ok(()),
        };
        let patch = Patch::Merge(json!({"metadata": metadata}));
        self.api.patch(&self.object.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    fn has(&self, pod: &Pod, key: &str) -> bool {
        let wanted = if key == IMAGE { &self.image } else { &self.token };
        pod.annotations().get(key) == Some(wanted)
    }

    /// Whether a pod is not to be replaced.
    fn stays(&self, pod: &Pod) -> bool {
        (self.cheat == Cheat::KeepsOldTemplates || self.has(pod, IMAGE))
            && (self.cheat == Cheat::KeepsOldTokens || self.has(pod, TOKEN))
    }

    /// Replaces old pods with one pod above the desired number, and none below.
    async fn replace(&self) -> Result<()> {
        let (new, old): (Vec<&Pod>, Vec<&Pod>) = self.pods.iter().partition(|pod| self.stays(pod));
        let serving = self.pods.iter().filter(|pod| is_ready(pod)).count();
        let mut gone: Vec<&Pod> = Vec::new();
        if self.cheat == Cheat::ReplacesAllAtOnce {
            gone.extend(&old);
        } else {
            gone.extend(old.iter().filter(|pod| !is_ready(pod)));
            let spare = serving.saturating_sub(self.wanted);
            gone.extend(old.iter().filter(|pod| is_ready(pod)).take(spare));
        }
        if old.is_empty() && self.cheat != Cheat::NeverScalesDown {
            gone.extend(new.iter().skip(self.wanted));
        }
        let api = Api::<Pod>::namespaced(self.client.clone(), &self.object.namespace().unwrap_or_default());
        let names: Vec<String> = gone.iter().map(|pod| pod.name_any()).collect();
        let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::background() };
        try_join_all(names.iter().map(|name| api.delete(name, &params))).await?;
        let room = (self.wanted + usize::from(!old.is_empty())).saturating_sub(self.pods.len());
        let missing = self.wanted.saturating_sub(new.len()).min(room);
        let (pod, params) = (self.pod()?, PostParams::default());
        try_join_all((0..missing).map(|_| api.create(&params, &pod))).await?;
        Ok(())
    }

    fn pod(&self) -> Result<Pod> {
        let (name, uid) = (self.object.name_any(), self.object.uid());
        let types = self.object.types.clone().unwrap_or_default();
        let owner = json!({
            "apiVersion": types.api_version, "kind": types.kind, "name": name, "uid": uid, "controller": true,
        });
        let owners = if self.cheat == Cheat::DisownsItsPods { json!([]) } else { json!([owner]) };
        let image = if self.cheat == Cheat::KeepsOldTemplates {
            self.pods.first().and_then(|pod| pod.annotations().get(IMAGE)).unwrap_or(&self.image)
        } else {
            &self.image
        };
        Ok(serde_json::from_value(json!({
            "metadata": {
                "generateName": format!("{name}-"), "labels": {OF: uid}, "ownerReferences": owners,
                "annotations": {IMAGE: image, TOKEN: self.token},
            },
            "spec": {
                "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": image}],
            },
        }))?)
    }

    async fn report(&self) -> Result<()> {
        let status = self.status();
        let now = &self.object.data["status"];
        let is_told =
            status.as_object().is_some_and(|fields| fields.iter().all(|(name, value)| now[name] == *value));
        if is_told {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"status": status}));
        self.api.patch_status(&self.object.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    fn status(&self) -> Value {
        let serving: Vec<&Pod> = self.pods.iter().filter(|pod| is_ready(pod) && is_alive(pod)).collect();
        let is_new = |pod: &Pod| self.has(pod, IMAGE) && self.has(pod, TOKEN);
        let by = |key: &str| {
            let enough = serving.iter().filter(|pod| self.has(pod, key)).count() >= self.wanted;
            enough && self.pods.iter().all(|pod| self.has(pod, key))
        };
        let ready = match self.cheat {
            Cheat::IsReadyWithOldTokens => by(IMAGE),
            Cheat::IsReadyWithItsOnlyOldToken if self.wanted == 1 => by(IMAGE),
            Cheat::IsReadyWithOldTemplates => by(TOKEN),
            _ => {
                self.pods.iter().all(is_new) && self.pods.len() == self.wanted && serving.len() == self.wanted
            }
        };
        let generation = self.object.metadata.generation;
        let seen = &self.object.data["status"];
        let stays = self.cheat == Cheat::StaysAtTheFirstGeneration;
        let observed = seen["observedGeneration"].as_i64().filter(|_| stays).or(generation);
        let waiting = self.pods.iter().find(|pod| !is_ready(pod));
        let blocker = waiting.map(
            |pod| json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "reason": "NotReady"}),
        );
        let writes = seen["writes"].as_u64().unwrap_or(0) + u64::from(self.cheat == Cheat::KeepsWriting);
        json!({
            "active": if self.cheat == Cheat::CountsStartingPods { self.pods.len() } else { serving.len() },
            "updated": self.pods.iter().filter(|pod| is_new(pod)).count(),
            "observedGeneration": observed,
            "writes": writes,
            "selector": format!("{OF}={}", self.object.uid().unwrap_or_default()),
            "blockedBy": blocker,
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        })
    }
}
