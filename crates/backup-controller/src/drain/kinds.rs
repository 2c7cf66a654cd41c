//! Which kinds have objects to drain.

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, discovery::ApiResource};
use operator_watch::{Discovery, Live};

/// The kinds of the settings that have objects.
#[derive(Debug, PartialEq)]
pub enum Drainable {
    /// All of them can be drained, in these served versions.
    Served(Vec<ApiResource>),
    /// Nothing is drained, because objects of some could not be.
    Obstacle(String),
}

/// Looks these kinds up in the cluster. One that is not served and has no definition has no objects. The objects of one with a
/// definition are stored, and are there again as soon as a version is served.
pub async fn drainable(
    client: &Client,
    discovery: &Discovery,
    kinds: Vec<ApiResource>,
) -> anyhow::Result<Drainable> {
    let (mut served, mut hidden) = (Vec::new(), Vec::new());
    for kind in kinds {
        let found = discovery.find(&kind).await;
        let found =
            found.with_context(|| format!("could not look up the served version of {}", kind.plural))?;
        match found {
            Some((found, _)) => served.push(found),
            None if is_defined(client, &kind).await? => hidden.push(definition(&kind)),
            None => {}
        }
    }
    if hidden.is_empty() {
        return Ok(Drainable::Served(served));
    }
    Ok(Drainable::Obstacle(format!(
        "no version of these kinds is served, so that their objects cannot be read, but may carry the finalizer and could \
         never be deleted: {}; set served: true for a version in each of these CustomResourceDefinitions, or remove the \
         entries of kinds of which no object carries the finalizer",
        hidden.join(", ")
    )))
}

async fn is_defined(client: &Client, kind: &ApiResource) -> anyhow::Result<bool> {
    // The group of every definition has a dot; other kinds are built in.
    if !kind.group.contains('.') {
        return Ok(false);
    }
    let (definitions, name) = (ApiResource::erase::<CustomResourceDefinition>(&()), definition(kind));
    let found = Live::metadata(client, &definitions, "", &name).await;
    Ok(found
        .with_context(|| {
            format!("{} is not served, and could not look up whether it is defined by {name}", kind.kind)
        })?
        .is_some())
}

/// The name of a kind's definition.
fn definition(kind: &ApiResource) -> String {
    format!("{}.{}", kind.plural, kind.group)
}

#[cfg(test)]
mod tests {
    use backup_controller::settings::resource;
    use serde_json::{Value, json};

    use super::*;
    use crate::mock_server::server;

    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

    /// The look-up of `Db` in a cluster that serves no group, and answers a request for its definition like this.
    async fn looked_up(code: u16, definition: Value) -> anyhow::Result<Drainable> {
        let client = server(None, move |path| match path {
            "/apis" => (200, json!({"groups": []})),
            path if path == format!("{DEFINITIONS}/dbs.x.dev") => (code, definition.clone()),
            _ => (404, json!({"kind": "Status", "reason": "NotFound", "code": 404})),
        });
        let kinds = vec![resource("x.dev/v1", "Db", "dbs").unwrap()];
        drainable(&client, &Discovery::new(client.clone()), kinds).await
    }

    fn refused(code: u16, reason: &str) -> Value {
        json!({
            "kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": code,
            "details": {"name": "dbs.x.dev"},
        })
    }

    #[tokio::test]
    async fn a_kind_that_is_not_served_has_no_objects_only_if_it_is_not_defined() {
        let gone = looked_up(404, refused(404, "NotFound")).await.unwrap();
        assert_eq!(gone, Drainable::Served(Vec::new()));
        let hidden = looked_up(200, json!({"metadata": {"name": "dbs.x.dev"}})).await.unwrap();
        assert!(matches!(&hidden, Drainable::Obstacle(why) if why.contains("dbs.x.dev")), "{hidden:?}");
        let unknown = looked_up(403, refused(403, "Forbidden")).await.unwrap_err();
        assert!(format!("{unknown:#}").contains("dbs.x.dev"), "{unknown:#}");
    }
}
