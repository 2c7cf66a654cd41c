//! Kinds that are known at compile time, and the dependents of an object.

use std::{mem::take, sync::Arc};

use kube::{Api, Client, Resource, api::ObjectMeta, discovery::ApiResource};

use crate::{
    Cache, Failure, ObjectId, Row, TrimmedObject, Watch, WatchedResource, Watermark, reason::LOOK_UP_FAILED,
};

impl Watch<TrimmedObject> {
    /// Watches the metadata of all objects of the kind `K`.
    #[must_use]
    pub fn metadata_of<K: Resource<DynamicType = ()>>(client: &Client) -> Self {
        let api = Api::all_with(client.clone(), &ApiResource::erase::<K>(&()));
        Self::new(api, K::kind(&())).metadata_only()
    }
}

impl WatchedResource {
    /// The kind `K`, whose watch has delivered this.
    #[must_use]
    pub fn of<K: Resource<DynamicType = ()>>(seen: &Watermark) -> Self {
        Self::new(ApiResource::erase::<K>(&()), seen)
    }
}

/// An object of which only its controller matters.
#[derive(Clone, Debug)]
pub struct Dependent {
    namespace: String,
    name: String,
    uid: String,
    /// The uid of its controller.
    owner: Option<String>,
}

impl Dependent {
    /// The row of an object.
    #[must_use]
    pub fn of<K: Resource>(mut object: K) -> Self {
        let ObjectMeta { namespace, name, uid, owner_references, .. } = take(object.meta_mut());
        let mut owners = owner_references.into_iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid);
        let [namespace, name, uid] = [namespace, name, uid].map(Option::unwrap_or_default);
        Self { namespace, name, uid, owner }
    }
}

impl Row for Dependent {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    fn index_key(&self) -> Option<&str> {
        self.owner.as_deref()
    }
}

impl<R: Row> Cache<R> {
    /// The rows of the dependents of an object, in no order.
    ///
    /// # Errors
    /// While the cache is not reliable: a dependent that it lacks would look missing.
    pub fn owned_by(&self, owner: ObjectId<'_>) -> Result<Vec<Arc<R>>, Failure> {
        match self.watch().problem() {
            Some(problem) => {
                let message = format!("the dependents of {owner} cannot be observed: {problem}");
                Err(Failure::transient(LOOK_UP_FAILED, message))
            }
            None => Ok(self.group(owner.namespace, owner.uid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;
    use crate::{
        Watches,
        testing::{Answer, answering},
    };

    const OWNER: ObjectId<'_> = ObjectId { namespace: "shop", name: "web", uid: "u" };

    #[tokio::test(start_paused = true)]
    async fn the_dependents_of_an_object_are_known_once_all_are() {
        let owners = json!([{"apiVersion": "v1", "kind": "ServiceAccount", "name": "web", "uid": "u", "controller": true}]);
        let map =
            json!({"metadata": {"name": "card", "namespace": "shop", "uid": "c", "ownerReferences": owners}});
        let list = json!({"metadata": {"resourceVersion": "5"}, "items": [map]});
        let (client, _log) = answering(move |sent| {
            if sent.uri.contains("watch=true") { Answer::Silence } else { Answer::Object(list.clone()) }
        });
        let watch = Watch::metadata_of::<ConfigMap>(&client);
        let cards = Watches::default().cache(watch, Dependent::of, |_| {});
        let error = cards.owned_by(OWNER).unwrap_err();
        assert!(error.message.contains("shop/web") && error.message.contains("first list"), "{error}");
        cards.watch().first_list(std::time::Duration::from_secs(9)).await;
        let names: Vec<_> =
            cards.owned_by(OWNER).unwrap().iter().map(|card| card.id().name.to_owned()).collect();
        assert_eq!(names, ["card"]);
        assert!(cards.owned_by(ObjectId { uid: "another", ..OWNER }).unwrap().is_empty());
    }
}
