//! The connection to a cluster, by the options of kubectl.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use clap::Args;
use http::{Method, header::CONTENT_TYPE};
use jiff::SignedDuration;
use kube::{
    Api, Client, Config, Resource,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
    core::{DynamicObject, DynamicResourceScope, ObjectMeta},
    discovery::ApiResource,
};
use operator_kit::{
    render::is_object_name,
    watch::{ApiError, live},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    errors,
    impersonation::Impersonation,
    kinds::{Kind, Kinds},
    lenient::Lenient,
    pages,
    target::Target,
};

/// A reachable API server answers sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The cluster, the user and the namespace.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub struct Options {
    /// The kubeconfig file
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// The cluster of the kubeconfig, instead of the context's
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The user of the kubeconfig, instead of the context's
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// The namespace, instead of the context's
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Time after which a request without an answer is given up, for example 5s
    #[arg(long, global = true, value_name = "DURATION")]
    pub request_timeout: Option<SignedDuration>,
    #[command(flatten)]
    pub impersonation: Impersonation,
}

/// A cluster that has answered.
pub struct Cluster {
    /// As the user.
    pub client: Client,
    /// The namespace of all look-ups.
    pub namespace: String,
    /// The kinds that the server has.
    pub kinds: Kinds,
}

impl Options {
    /// Connects, and reads the kinds of the server.
    pub async fn connect(&self) -> Result<Cluster> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        if let Some(limit) = self.request_timeout {
            let limit =
                Duration::try_from(limit).context("--request-timeout is negative: write for example 5s")?;
            config.read_timeout = Some(limit);
            config.connect_timeout = Some(limit.min(CONNECT_TIMEOUT));
        }
        self.impersonation.apply(&mut config.auth_info)?;
        // A person waits: report the failure at once, and leave the retry to them.
        config.default_retry = false;
        let namespace = self.namespace_or(&config.default_namespace)?;
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).context("the kubeconfig cannot be used")?;
        let kinds = Kinds::discover(&client).await.map_err(|error| errors::no_answer(&server, error))?;
        Ok(Cluster { client, namespace, kinds })
    }

    fn namespace_or(&self, default: &str) -> Result<String> {
        let namespace = self.namespace.as_deref().unwrap_or(default);
        ensure!(
            is_object_name(namespace),
            "{namespace:?} is not a namespace: correct --namespace or the context"
        );
        Ok(namespace.to_owned())
    }

    /// The kubeconfig as kubectl reads it: of the files in KUBECONFIG, those that are there.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn kubeconfig(&self) -> Result<Kubeconfig, KubeconfigError> {
        if let Some(path) = &self.kubeconfig {
            return Kubeconfig::read_from(path);
        }
        let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let mut there = std::env::split_paths(&listed).filter(|path| path.exists()).peekable();
        if there.peek().is_none() {
            return Kubeconfig::read();
        }
        there.try_fold(Kubeconfig::default(), |merged, path| merged.merge(Kubeconfig::read_from(path)?))
    }

    async fn config(&self) -> Result<Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        let read = self.kubeconfig();
        let known = read.as_ref().map(context_names).unwrap_or_default();
        let config = match read {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
            // As kubectl does in a pod.
            Err(error) => match Config::incluster() {
                Ok(config) if self.kubeconfig.is_none() && self.context.is_none() => return Ok(config),
                _ => Err(error),
            },
        };
        config.map_err(|error| errors::no_kubeconfig(&error, self.context.as_deref(), &known))
    }
}

fn context_names(kubeconfig: &Kubeconfig) -> Vec<String> {
    kubeconfig.contexts.iter().map(|context| context.name.clone()).collect()
}

impl Cluster {
    /// The objects of a kind in a namespace, or of a cluster-wide kind.
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
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        url: &str,
        document: &Value,
    ) -> kube::Result<T> {
        let form = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if document.is_null() { Vec::new() } else { document.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(url).header(CONTENT_TYPE, form).body(body);
        self.client.request(request.map_err(kube::Error::HttpError)?).await
    }

    /// An object of a kind as the server sends it, if it is there.
    pub async fn read<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> kube::Result<Option<T>> {
        let namespace = namespace.filter(|_| kind.is_namespaced);
        live::check_names(namespace, name)?;
        if_there(self.send(Method::GET, &path(&kind.resource, namespace, name), &Value::Null).await)
    }

    /// An object of a kind, if it is there.
    pub async fn find(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> kube::Result<Option<DynamicObject>> {
        let found = self.read(kind, namespace, name).await?;
        Ok(found.map(|Lenient(mut object): Lenient<DynamicObject>| {
            object.types.get_or_insert_with(|| types(kind));
            object
        }))
    }

    /// The objects of the first pages of a list, and whether these are all.
    pub async fn first(
        &self,
        pages: usize,
        kind: &Kind,
        namespace: Option<&str>,
        params: ListParams,
    ) -> kube::Result<(Vec<DynamicObject>, bool)> {
        let api = self.api::<DynamicObject>(kind, namespace);
        let (mut objects, is_all) = pages::first(pages, &api, params).await?;
        // The items of a list lack their type.
        for object in &mut objects {
            object.types = Some(types(kind));
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

    /// The metadata of an object of a kind, if it is there.
    pub async fn find_metadata(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<ObjectMeta>, ApiError> {
        let namespace = namespace.filter(|_| kind.is_namespaced).unwrap_or_default();
        live::metadata(&self.client, &kind.resource, namespace, name).await
    }

    /// The object of the command line.
    pub async fn get(&self, target: &Target) -> Result<DynamicObject> {
        let kind = self.kinds.find(&target.kind)?;
        let found = self.find(kind, Some(&self.namespace), &target.name).await;
        if let Some(object) = found.map_err(|error| self.refused(kind, &target.name, "get", error))? {
            return Ok(object);
        }
        let place = kind.is_namespaced.then_some(self.namespace.as_str());
        if place.is_some() && self.lacks_namespace().await {
            return Err(errors::no_namespace(&self.namespace));
        }
        let known = self.names(kind, ListParams::default().limit(100)).await;
        Err(errors::not_found(&kind.resource.kind, &target.name, place, &known))
    }

    /// Whether the namespace is known not to exist.
    pub async fn lacks_namespace(&self) -> bool {
        let Some(kind) = self.kinds.named("", "namespaces") else { return false };
        matches!(self.find_metadata(kind, None, &self.namespace).await, Ok(None))
    }

    /// The names of objects of a kind; none if they may not be listed.
    pub async fn names(&self, kind: &Kind, params: ListParams) -> Vec<String> {
        let listed = pages::metadata(&self.api::<DynamicObject>(kind, Some(&self.namespace)), params).await;
        listed.unwrap_or_default().into_iter().filter_map(|metadata| metadata.name).collect()
    }

    /// The error of a failed request, for a user.
    pub fn refused(&self, kind: &Kind, name: &str, verb: &str, error: kube::Error) -> anyhow::Error {
        let namespace = kind.is_namespaced.then_some(self.namespace.as_str());
        errors::refused((&kind.resource.kind, &kind.resource.plural), name, namespace, verb, error)
    }
}

/// The path of an object.
pub fn path(resource: &ApiResource, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{name}", DynamicObject::url_path(resource, namespace))
}

/// `None` for an object that is not there.
pub fn if_there<T>(answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

/// The type of an object of a kind.
pub fn types(kind: &Kind) -> kube::core::TypeMeta {
    kube::core::TypeMeta { api_version: kind.resource.api_version.clone(), kind: kind.resource.kind.clone() }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;
    use tower::service_fn;

    use super::*;
    use crate::kinds::tests::kinds;

    /// A server with some kinds and no objects, and the requests that it was sent.
    pub fn cluster() -> (Cluster, Requests) {
        serving(|_| None)
    }

    /// The requests that a server was sent.
    pub type Requests = Arc<Mutex<Vec<String>>>;
    /// The answer of a server.
    pub type Answer = (StatusCode, Value);

    /// A refusal.
    pub fn status(code: u16, reason: &str, message: &str) -> Answer {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        (StatusCode::from_u16(code).unwrap(), status)
    }

    /// A server with some kinds that answers these paths, and the requests that it was sent.
    pub fn serving(answer: impl Fn(&str) -> Option<Value> + Send + 'static) -> (Cluster, Requests) {
        answering(move |_, uri, _| match answer(uri) {
            Some(answer) => (StatusCode::OK, answer),
            None => status(404, "NotFound", "not found"),
        })
    }

    /// A server with some kinds that answers method, URI and body, and the requests that it was sent.
    pub fn answering(
        answer: impl FnMut(&Method, &str, &Value) -> Answer + Send + 'static,
    ) -> (Cluster, Requests) {
        let requests = Requests::default();
        let (log, answer) = (requests.clone(), Arc::new(Mutex::new(answer)));
        let service = service_fn(move |request: Request<Body>| {
            let (log, answer) = (log.clone(), answer.clone());
            async move {
                let (parts, body) = request.into_parts();
                let uri = parts.uri.to_string();
                let body = body.collect_bytes().await?;
                log.lock().unwrap().push(format!("{} {uri}", parts.method));
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (code, mut answer) = (answer.lock().unwrap())(&parts.method, &uri, &body);
                if code == StatusCode::NOT_FOUND && answer.is_object() && answer["details"].is_null() {
                    answer["details"] = json!({"name": parts.uri.path().rsplit('/').next()});
                }
                // As it stands, because an event of a watch has its type first.
                let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
                let body = Body::from(text.into_bytes());
                Ok::<_, kube::Error>(Response::builder().status(code).body(body).unwrap())
            }
        });
        (Cluster { client: Client::new(service, "shop"), namespace: "shop".into(), kinds: kinds() }, requests)
    }

    #[tokio::test]
    async fn a_name_that_would_be_another_request_is_not_asked_for() {
        let (cluster, requests) = cluster();
        let kind = cluster.kinds.find("pods").unwrap();
        assert!(cluster.find(kind, Some("shop"), "web").await.unwrap().is_none());
        assert_eq!(*requests.lock().unwrap(), ["GET /api/v1/namespaces/shop/pods/web"]);
        for (namespace, name) in
            [("shop", "?watch=true"), ("shop", ".."), ("shop", "a/b"), ("?watch=true", "web")]
        {
            cluster.find(kind, Some(namespace), name).await.unwrap_err();
            cluster.find_metadata(kind, Some(namespace), name).await.unwrap_err();
        }
        assert_eq!(requests.lock().unwrap().len(), 1, "{requests:?}");
    }

    #[test]
    fn a_namespace_that_would_be_another_request_is_refused() {
        let namespace = |namespace: Option<&str>| {
            let options = Options { namespace: namespace.map(str::to_owned), ..Options::default() };
            options.namespace_or("shop").map_err(|error| error.to_string())
        };
        assert_eq!((namespace(None), namespace(Some("team"))), (Ok("shop".into()), Ok("team".into())));
        let refused = namespace(Some("?watch=true")).unwrap_err();
        assert!(refused.contains("\"?watch=true\" is not a namespace"), "{refused}");
    }
}
