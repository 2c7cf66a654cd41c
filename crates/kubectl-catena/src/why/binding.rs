//! What command-binder's rules say of an object: Events, in which it says so itself, expire.

use std::sync::Arc;

use catena_api::keys;
use command_binder::{
    Settings,
    command::{CommandRow, Finding, Reference},
    decide::{Verdict, place, verdict},
    definition::describe,
    kind::CommandKind,
    observed::{Observed, Target, TargetObject},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, ObjectMeta},
    core::DynamicObject,
    discovery::ApiResource,
};
use operator_kit::watch::{ServedKind, TrimmedObject};

use crate::{chain::Gap, connection::Cluster, explain::unread, kinds::Kind, object::Identity};

/// Its settings, in each of its installations.
const SETTINGS: &str = "app.kubernetes.io/part-of=catena,app.kubernetes.io/component=command-binder";

/// What keeps an object of somebody else's kind from being bound, if its kind is one of commands.
pub async fn judge(cluster: &Cluster, object: &DynamicObject) -> Result<Option<Verdict>, Gap> {
    let identity = Identity::of(object);
    if identity.group() == keys::GROUP || object.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    let judged = judge_foreign(cluster, &identity, object).await;
    judged.map_err(|error| Gap { what: "command-binder's rules".to_owned(), why: unread(&error) })
}

async fn judge_foreign(
    cluster: &Cluster,
    identity: &Identity,
    object: &DynamicObject,
) -> kube::Result<Option<Verdict>> {
    let (Some(served), Some(kind)) = (cluster.kinds.of(identity), rule(cluster, identity).await?) else {
        return Ok(None);
    };
    if !is_selected(cluster, &kind, served, object).await? {
        return Ok(None);
    }
    let object = serde_json::to_value(object).and_then(serde_json::from_value::<TrimmedObject>);
    let Ok(object) = object else { return Ok(None) };
    let (metadata, row) = (object.metadata.clone(), CommandRow::of(&kind, object));
    let target = match &row.finding {
        Finding::Target(to) if row.proven_target(to, false).is_none() => {
            Some(look_up(cluster, &metadata, to).await?)
        }
        _ => None,
    };
    let said = verdict(&Observed::by_onlooker(metadata, row, target, Timestamp::now()));
    // What is only observed is as it should be.
    Ok(said.filter(|said| !said.is_bound && said.reason != "WouldBind"))
}

/// How objects of a kind are bound: by the settings, or else by what their definition says.
async fn rule(cluster: &Cluster, identity: &Identity) -> kube::Result<Option<Arc<CommandKind>>> {
    let found = Api::<ConfigMap>::all(cluster.client.clone());
    let found = found.list(&ListParams::default().labels(SETTINGS)).await?;
    let texts = found.items.into_iter().filter_map(|settings| settings.data?.remove("settings.yaml"));
    let settings: Vec<Settings> = texts.filter_map(|text| serde_saphyr::from_str(&text).ok()).collect();
    let discovers = settings.iter().any(|settings| settings.discovers);
    let is_of = |kind: &CommandKind| {
        (&*kind.resource.group, &*kind.resource.kind) == (identity.group(), &*identity.kind)
    };
    if let Some(kind) = settings.into_iter().flat_map(|settings| settings.kinds).find(is_of) {
        return Ok(Some(Arc::new(kind)));
    }
    let Some(kind) = cluster.kinds.of(identity).filter(|kind| discovers && !kind.resource.group.is_empty())
    else {
        return Ok(None);
    };
    let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
    let definitions: Api<TrimmedObject> = Api::all_with(cluster.client.clone(), &definitions);
    let definition =
        definitions.get_opt(&format!("{}.{}", kind.resource.plural, kind.resource.group)).await?;
    let is_command = |definition: &TrimmedObject| {
        let labels = definition.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(keys::COMMAND_KIND)).is_some_and(|says| says == "true")
    };
    Ok(definition.filter(is_command).and_then(|definition| describe(&definition).ok()).map(Arc::new))
}

/// Whether command-binder looks at an object at all.
async fn is_selected(
    cluster: &Cluster,
    kind: &CommandKind,
    served: &Kind,
    object: &DynamicObject,
) -> kube::Result<bool> {
    let Some(selector) = &kind.selector else { return Ok(true) };
    let this = format!("metadata.name={}", object.name_any());
    let params = ListParams::default().labels(selector).fields(&this).limit(1);
    let namespace = object.namespace();
    Ok(!cluster.api(served, namespace.as_deref()).list_metadata(&params).await?.items.is_empty())
}

async fn look_up(cluster: &Cluster, metadata: &ObjectMeta, to: &Reference) -> kube::Result<Target> {
    let wanted = &to.kind.resource;
    let Some(kind) = cluster.kinds.named(&wanted.group, &wanted.plural) else {
        return Ok(Target::NotServed);
    };
    let served = ServedKind { resource: kind.resource.clone(), is_namespaced: kind.is_namespaced };
    let object = match place(metadata, to, &served) {
        Err(_) => None,
        Ok(namespace) => cluster.api(kind, namespace).get_metadata_opt(&to.name).await?,
    };
    let object = object.map(|object| TargetObject {
        uid: object.metadata.uid.unwrap_or_default().into(),
        is_terminating: object.metadata.deletion_timestamp.is_some(),
    });
    Ok(Target::Served { kind: served, object })
}
