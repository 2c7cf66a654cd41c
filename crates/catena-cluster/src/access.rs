//! Objects on the server: how one is read, how they are listed, and how one is written.

use anyhow::{Result, ensure};
use http::{Method, header::CONTENT_TYPE};
use kube::{
    Api, Resource,
    api::ListParams,
    core::{DynamicObject, DynamicResourceScope, ObjectMeta},
    discovery::ApiResource,
};
use operator_watch::{Live, Pruned};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Cluster, Kind, Target, errors, lenient, pages::Pages};

/// The field manager of this program.
const MANAGER: &str = "kubectl-catena";

/// A change of an object.
#[derive(Clone, Copy, Debug)]
pub enum Change<'c> {
    /// Creates it.
    Create(&'c Value),
    /// Puts another one in its place.
    Replace(&'c Value),
    /// Changes it by a merge patch.
    Merge(&'c Value),
    /// Deletes it, with these `DeleteOptions`.
    Delete(&'c Value),
}

/// How a change is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct How<'h> {
    /// The part that is written, such as `status`; empty for the object itself.
    pub subresource: &'h str,
    /// What becomes of fields that the server does not know: `Strict` refuses them. If it is empty, they are dropped.
    pub unknown_fields: &'h str,
    /// The field manager; empty for this program.
    pub manager: &'h str,
    /// Whether the server checks the change without storing it.
    pub dry_run: bool,
}

impl How<'_> {
    /// A field that the server does not know is an error, as in kubectl.
    pub const STRICT: How<'static> =
        How { subresource: "", unknown_fields: "Strict", manager: "", dry_run: false };
}

/// An object on the server, by its kind and its name.
#[derive(Clone, Copy)]
pub struct At<'a> {
    cluster: &'a Cluster,
    kind: &'a Kind,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl Cluster {
    /// The objects of a kind in a namespace, or of a cluster-wide kind, for a watch.
    #[must_use]
    pub fn api<K>(&self, kind: &Kind, namespace: Option<&str>) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        match namespace.filter(|_| kind.is_namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind.resource),
            None => Api::all_with(self.client.clone(), &kind.resource),
        }
    }

    /// Sends a request with a document, or with none if it is null. A patch is a merge patch.
    async fn send<T: DeserializeOwned>(&self, method: Method, url: &str, body: &Value) -> kube::Result<T> {
        let form = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(url).header(CONTENT_TYPE, form).body(body);
        let answer = self.client.request_text(request.map_err(kube::Error::HttpError)?).await?;
        lenient::read(&answer).map_err(kube::Error::SerdeError)
    }

    /// The object of a kind with a name, whether it is there or not. A cluster-wide kind needs no namespace.
    #[must_use]
    pub fn at<'a>(&'a self, kind: &'a Kind, namespace: Option<&'a str>, name: &'a str) -> At<'a> {
        At { cluster: self, kind, namespace: namespace.filter(|_| kind.is_namespaced), name }
    }

    /// The objects of the first pages of a list, and whether these are all.
    pub async fn first(
        &self,
        pages: usize,
        kind: &Kind,
        namespace: Option<&str>,
        params: ListParams,
    ) -> kube::Result<(Vec<DynamicObject>, bool)> {
        let (mut objects, is_all): (Vec<DynamicObject>, _) =
            self.pages(kind, namespace, params).first(pages).await?;
        // The items of a list lack their type.
        for object in &mut objects {
            object.types = Some(kind.types());
        }
        Ok((objects, is_all))
    }

    /// All objects of a list.
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        params: ListParams,
    ) -> kube::Result<Vec<DynamicObject>> {
        Ok(self.first(usize::MAX, kind, namespace, params).await?.0)
    }

    /// All objects of a list of a built-in kind.
    pub async fn all<K>(&self, namespace: Option<&str>, params: ListParams) -> kube::Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let pages = Pages::whole(&self.client, K::url_path(&(), namespace), params);
        Ok(pages.first(usize::MAX).await?.0)
    }

    /// The pages of a list.
    #[must_use]
    pub fn pages(&self, kind: &Kind, namespace: Option<&str>, params: ListParams) -> Pages {
        Pages::whole(&self.client, kind.url(namespace), params)
    }

    /// The metadata of all objects of a list without `managedFields`, in one response unless the parameters limit it.
    pub async fn metadata(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        params: ListParams,
    ) -> kube::Result<Vec<ObjectMeta>> {
        let objects = Pages::of_metadata(&self.client, kind.url(namespace), params).next::<Pruned>().await?;
        Ok(objects.into_iter().flatten().map(|object| object.metadata).collect())
    }

    /// The object of the command line.
    pub async fn get(&self, target: &Target) -> Result<DynamicObject> {
        let kind = self.kinds.find(&target.kind)?;
        let found = self.at(kind, Some(&self.namespace), &target.name).find().await;
        if let Some(object) = found.map_err(|error| self.refused(kind, &target.name, "get", error))? {
            return Ok(object);
        }
        let place = kind.is_namespaced.then_some(self.namespace.as_str());
        if place.is_some() {
            self.ensure_namespace().await?;
        }
        let known = self.names(kind, ListParams::default().limit(100)).await;
        Err(errors::not_found(&kind.resource.kind, &target.name, place, known.as_deref()))
    }

    /// Refuses a namespace that is known not to exist.
    pub async fn ensure_namespace(&self) -> Result<()> {
        let Some(kind) = self.kinds.named("", "namespaces") else { return Ok(()) };
        let name = &self.namespace;
        ensure!(
            !matches!(self.at(kind, None, name).find().await, Ok(None)),
            "there is no namespace {name:?}: correct -n or the context; `kubectl get namespaces` lists them"
        );
        Ok(())
    }

    /// The names of objects of a kind, if they may be listed.
    pub async fn names(&self, kind: &Kind, params: ListParams) -> Option<Vec<String>> {
        let listed = self.metadata(kind, Some(&self.namespace), params).await.ok()?;
        Some(listed.into_iter().filter_map(|metadata| metadata.name).collect())
    }

    /// The error of a failed request, for a user.
    #[must_use]
    pub fn refused(&self, kind: &Kind, name: &str, verb: &str, error: kube::Error) -> anyhow::Error {
        let namespace = kind.is_namespaced.then_some(self.namespace.as_str());
        errors::refused((&kind.resource.kind, &kind.full_name()), name, namespace, verb, error)
    }
}

impl At<'_> {
    fn url(&self) -> kube::Result<String> {
        Live::check_names(self.namespace, self.name)?;
        Ok(format!("{}/{}", self.kind.url(self.namespace), self.name))
    }

    /// Changes it.
    pub async fn write<T: DeserializeOwned>(&self, change: Change<'_>, how: How<'_>) -> kube::Result<T> {
        let object = self.url()?;
        let (method, mut url, document) = match change {
            Change::Create(created) => (Method::POST, self.kind.url(self.namespace), created),
            Change::Replace(new) => (Method::PUT, object, new),
            Change::Merge(patch) => (Method::PATCH, object, patch),
            Change::Delete(options) => (Method::DELETE, object, options),
        };
        if !how.subresource.is_empty() {
            url = format!("{url}/{}", how.subresource);
        }
        let manager = if how.manager.is_empty() { MANAGER } else { how.manager };
        let dry_run = if how.dry_run { "dryRun=All&" } else { "" };
        let validation = match how.unknown_fields {
            "" => String::new(),
            unknown_fields => format!("fieldValidation={unknown_fields}&"),
        };
        url = format!("{url}?{dry_run}{validation}fieldManager={manager}");
        self.cluster.send(method, &url, document).await
    }

    /// Deletes it in the background, if it is the one with this uid. Returns whether there was one of the name.
    pub async fn delete(&self, uid: Option<&str>) -> kube::Result<bool> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid},
        });
        let deleted = self.write(Change::Delete(&options), How::default()).await;
        Ok(if_there::<Value>(deleted)?.is_some())
    }

    /// It as the server sends it, if it is there.
    pub async fn read<T: DeserializeOwned>(&self) -> kube::Result<Option<T>> {
        if_there(self.cluster.send(Method::GET, &self.url()?, &Value::Null).await)
    }

    /// It, if it is there.
    pub async fn find(&self) -> kube::Result<Option<DynamicObject>> {
        let mut found: Option<DynamicObject> = self.read().await?;
        if let Some(object) = &mut found {
            object.types.get_or_insert_with(|| self.kind.types());
        }
        Ok(found)
    }
}

/// `None` for an object that is not there.
fn if_there<T>(answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{answering, cluster, status};

    #[tokio::test]
    async fn a_name_that_would_be_another_request_is_not_asked_for() {
        let (cluster, requests) = cluster();
        let kind = cluster.kinds.find("pods").unwrap();
        assert!(cluster.at(kind, Some("shop"), "web").find().await.unwrap().is_none());
        assert_eq!(*requests.lock().unwrap(), ["GET /api/v1/namespaces/shop/pods/web"]);
        for (namespace, name) in
            [("shop", "?watch=true"), ("shop", ".."), ("shop", "a/b"), ("?watch=true", "web")]
        {
            cluster.at(kind, Some(namespace), name).find().await.unwrap_err();
        }
        assert_eq!(requests.lock().unwrap().len(), 1, "{requests:?}");
    }

    #[tokio::test]
    async fn a_name_is_not_called_the_only_one_missing_without_a_list() {
        let (cluster, _) = answering(|_, uri, _| {
            if uri.ends_with("/web") {
                status(404, "NotFound", "not found")
            } else {
                status(403, "Forbidden", "User \"jane\" cannot list resource \"basicdeployments\"")
            }
        });
        let target = Target { kind: "basicdeployments".into(), name: "web".into() };
        let error = cluster.get(&target).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no BasicDeployment \"web\" in namespace \"shop\"; use -n NAMESPACE for another namespace"
        );
    }

    #[tokio::test]
    async fn advice_about_a_right_names_the_group() {
        let (cluster, _) = cluster();
        let kind = cluster.kinds.find("basicdeployments").unwrap();
        let (_, answer) = status(403, "Forbidden", "User \"jane\" cannot get resource \"basicdeployments\"");
        let error = kube::Error::Api(serde_json::from_value(answer).unwrap());
        let said = cluster.refused(kind, "web", "get", error).to_string();
        assert!(said.contains("`kubectl auth can-i get basicdeployments.catena.dev -n shop`"), "{said}");
    }

    #[tokio::test]
    async fn a_change_names_its_manager_and_how_it_is_made() {
        let (cluster, requests) = answering(|_, _, body| (http::StatusCode::OK, body.clone()));
        let kind = cluster.kinds.find("pods").unwrap();
        let object = json!({"kind": "Pod"});
        let changes = [
            (Change::Create(&object), How { dry_run: true, ..How::STRICT }),
            (Change::Replace(&object), How { manager: "restore", ..How::default() }),
            (Change::Merge(&object), How { subresource: "status", ..How::default() }),
            (Change::Delete(&object), How::default()),
        ];
        for (change, how) in changes {
            let written: Value = cluster.at(kind, Some("shop"), "web").write(change, how).await.unwrap();
            assert_eq!(written, object);
        }
        let expected = [
            "POST /api/v1/namespaces/shop/pods?dryRun=All&fieldValidation=Strict&fieldManager=kubectl-catena",
            "PUT /api/v1/namespaces/shop/pods/web?fieldManager=restore",
            "PATCH /api/v1/namespaces/shop/pods/web/status?fieldManager=kubectl-catena",
            "DELETE /api/v1/namespaces/shop/pods/web?fieldManager=kubectl-catena",
        ];
        assert_eq!(*requests.lock().unwrap(), expected);
        let wrong: kube::Result<Value> =
            cluster.at(kind, Some("shop"), "..").write(Change::Merge(&object), How::default()).await;
        let error = cluster.refused(kind, "..", "patch", wrong.unwrap_err()).to_string();
        assert_eq!(error, "cannot patch Pod \"..\": \"..\" is not an object name");
    }
}
