//! The kind of a controller's request, and its restriction to one namespace, so that many runs of the same controller
//! work side by side on one cluster.

use axum::http::{Method, Uri};

/// Cluster-wide kinds.
const CLUSTER_WIDE: [&str; 2] = ["namespaces", "customresourcedefinitions"];

/// The purpose of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A change.
    Write,
    /// A page of a list.
    List,
    /// The events of a resource.
    Watch(String),
    /// A single object, discovery, Events, Leases: they have no faults of their own.
    Other,
}

impl Purpose {
    /// The purpose of a request.
    pub fn of(method: &Method, uri: &Uri) -> Self {
        let path = uri.path();
        if path.contains("/leases") || path.contains("/events") {
            return Self::Other;
        }
        if method != Method::GET {
            return Self::Write;
        }
        match collection(path) {
            None => Self::Other,
            Some(resource) if uri.query().is_some_and(|query| query.contains("watch=true")) => {
                Self::Watch(resource.to_owned())
            }
            Some(_) => Self::List,
        }
    }
}

/// Path and query of a request for the objects of all namespaces, restricted to this namespace.
pub fn narrowed(uri: &Uri, namespace: Option<&str>) -> String {
    let whole = uri.path_and_query().map_or("/", |whole| whole.as_str());
    let path = uri.path();
    let (Some(namespace), Some(resource)) = (namespace, collection(path)) else { return whole.to_owned() };
    if path.contains("/namespaces/") || CLUSTER_WIDE.contains(&resource) {
        return whole.to_owned();
    }
    let group = path.strip_suffix(resource).unwrap_or_default();
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    format!("{group}namespaces/{namespace}/{resource}{query}")
}

/// The resource, if the path is that of a collection.
fn collection(path: &str) -> Option<&str> {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => match rest {
            [resource] | ["namespaces", _, resource] => Some(resource),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn only_what_all_namespaces_have_is_narrowed() {
        for (asked, expected) in [
            ("/api/v1/pods?limit=5", "/api/v1/namespaces/x/pods?limit=5"),
            (
                "/apis/catena.dev/v1alpha1/basicdeployments",
                "/apis/catena.dev/v1alpha1/namespaces/x/basicdeployments",
            ),
            ("/api/v1/namespaces/y/pods", "/api/v1/namespaces/y/pods"),
            ("/api/v1/namespaces", "/api/v1/namespaces"),
            ("/apis/catena.dev/v1alpha1", "/apis/catena.dev/v1alpha1"),
            ("/version", "/version"),
        ] {
            assert_eq!(narrowed(&uri(asked), Some("x")), expected);
            assert_eq!(narrowed(&uri(asked), None), asked);
        }
    }

    #[test]
    fn a_request_is_known_by_its_purpose() {
        let of = |method: &Method, text: &str| Purpose::of(method, &uri(text));
        assert_eq!(of(&Method::GET, "/api/v1/pods?watch=true"), Purpose::Watch("pods".into()));
        assert_eq!(of(&Method::GET, "/api/v1/namespaces/x/pods?limit=1"), Purpose::List);
        assert_eq!(of(&Method::GET, "/api/v1/namespaces/x/pods/web"), Purpose::Other);
        assert_eq!(of(&Method::GET, "/api/v1/namespaces/x"), Purpose::Other);
        assert_eq!(of(&Method::POST, "/api/v1/namespaces/x/pods"), Purpose::Write);
        assert_eq!(of(&Method::POST, "/apis/events.k8s.io/v1/namespaces/x/events"), Purpose::Other);
    }
}
