//! The verdict of command-binder's rules on an object: the Events with which it reports itself expire.

use std::sync::Arc;

use catena_api::keys;
use command_binder::{
    Settings,
    command::{CommandRow, Finding, Reference},
    decide::verdict,
    definition::describe,
    kind::CommandKind,
    observed::{Observed, Target, TargetObject},
    place::place,
};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, api::ObjectMeta, core::DynamicObject, discovery::ApiResource};
use operator_kit::watch::{ServedKind, TrimmedObject};

use super::{
    facts::{Binding, Nobody},
    rules::{as_watched, settings},
};
use crate::{
    chain::Gap,
    connection::Cluster,
    errors::read_failure,
    object::{Identity, text},
};

/// The binding of an object of a foreign kind, if its kind is one of commands.
pub async fn binding(cluster: &Cluster, object: &DynamicObject) -> Result<Option<Binding>, Gap> {
    let identity = Identity::of(object);
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    let binding = if identity.group() == keys::GROUP {
        own_binding(cluster, &identity, &object.metadata).await
    } else {
        foreign_binding(cluster, &identity, object).await
    };
    binding.map_err(|error| Gap { what: "the rules of command-binder".to_owned(), why: read_failure(&error) })
}

/// Commands of ours report on their binding themselves, unless nobody binds them.
async fn own_binding(
    cluster: &Cluster,
    identity: &Identity,
    metadata: &ObjectMeta,
) -> kube::Result<Option<Binding>> {
    let is_command = identity.kind.strip_prefix("BasicDeployment").is_some_and(|rest| !rest.is_empty());
    let is_owned = metadata.owner_references.iter().flatten().next().is_some();
    if !is_command || is_owned {
        return Ok(None);
    }
    Ok(match rule(cluster, identity).await? {
        Rule::Known(_) | Rule::NoSettings => None,
        Rule::Nobody(why) => Some(Binding::Nobody(why)),
        Rule::NoCommand => Some(Binding::Nobody(Nobody::NoEntry)),
    })
}

async fn foreign_binding(
    cluster: &Cluster,
    identity: &Identity,
    object: &DynamicObject,
) -> kube::Result<Option<Binding>> {
    let kind = match rule(cluster, identity).await? {
        Rule::Known(kind) => kind,
        Rule::Nobody(why) => return Ok(Some(Binding::Nobody(why))),
        Rule::NoCommand if looks_like_command(object) => return Ok(Some(Binding::Nobody(Nobody::NoEntry))),
        Rule::NoCommand | Rule::NoSettings => return Ok(None),
    };
    let metadata = &object.metadata;
    let Some(object) = as_watched(cluster, &kind.resource, kind.selector.as_deref(), metadata).await? else {
        return Ok(None);
    };
    let (metadata, row) = (object.metadata.clone(), CommandRow::of(&kind, object));
    let target = match &row.finding {
        Finding::Target(to) if row.proven_target(to, false).is_some() => return Ok(Some(Binding::Bound)),
        Finding::Target(to) => Some(find_target(cluster, &metadata, to).await?),
        _ => None,
    };
    // A label proves a binding only together with its target.
    let is_labelled = row.label().is_some();
    let said = verdict(&Observed::by_onlooker(metadata, row, target, Timestamp::now()));
    Ok(said.and_then(|said| match said.is_bound {
        true if is_labelled => Some(Binding::Bound),
        true => Some(Binding::Due),
        // An object that is only observed is as it should be.
        false => (said.reason != "WouldBind").then_some(Binding::Obstacle(said)),
    }))
}

/// Whether an object names a target, and nobody owns it: kinds of Kubernetes itself do the former, and are no commands.
fn looks_like_command(object: &DynamicObject) -> bool {
    let group = Identity::of(object).group().to_owned();
    group.contains('.')
        && !group.ends_with(".k8s.io")
        && object.metadata.owner_references.iter().flatten().next().is_none()
        && text(object, "/spec/targetRef/name").is_some()
}

/// How objects of a kind are bound.
enum Rule {
    /// Like this.
    Known(Arc<CommandKind>),
    /// They are commands, and nobody binds them.
    Nobody(Nobody),
    /// They are no commands, as far as is known.
    NoCommand,
    /// command-binder has no settings that can be read.
    NoSettings,
}

/// The rule for binding objects of a kind: from the settings, or else from the definition of the kind.
async fn rule(cluster: &Cluster, identity: &Identity) -> kube::Result<Rule> {
    let settings: Vec<Settings> = settings(cluster, "command-binder").await?;
    if settings.is_empty() {
        return Ok(Rule::NoSettings);
    }
    let discovers = settings.iter().any(|settings| settings.discovers);
    let is_of = |kind: &CommandKind| {
        (&*kind.resource.group, &*kind.resource.kind) == (identity.group(), &*identity.kind)
    };
    if let Some(kind) = settings.into_iter().flat_map(|settings| settings.kinds).find(is_of) {
        return Ok(Rule::Known(Arc::new(kind)));
    }
    let Some(kind) = cluster.kinds.of(identity).filter(|kind| !kind.resource.group.is_empty()) else {
        return Ok(Rule::NoCommand);
    };
    let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
    let definitions: Api<TrimmedObject> = Api::all_with(cluster.client.clone(), &definitions);
    let definition =
        definitions.get_opt(&format!("{}.{}", kind.resource.plural, kind.resource.group)).await?;
    let is_command = |definition: &TrimmedObject| {
        let labels = definition.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(keys::COMMAND_KIND)).is_some_and(|says| says == "true")
    };
    let Some(definition) = definition.filter(is_command) else {
        return Ok(Rule::NoCommand);
    };
    Ok(match describe(&definition) {
        Err(mistake) => Rule::Nobody(Nobody::NotDescribed(mistake)),
        Ok(_) if !discovers => Rule::Nobody(Nobody::NotDiscovered),
        Ok(kind) => Rule::Known(Arc::new(kind)),
    })
}

async fn find_target(cluster: &Cluster, metadata: &ObjectMeta, to: &Reference) -> kube::Result<Target> {
    let wanted = &to.kind.resource;
    let Some(kind) = cluster.kinds.served(wanted) else { return Ok(Target::NotServed) };
    let served = ServedKind { resource: kind.resource.clone(), is_namespaced: kind.is_namespaced };
    let object = match place(metadata, to, &served) {
        Err(_) => None,
        Ok(namespace) => cluster.find_metadata(kind, namespace, &to.name).await?,
    };
    let object = object.map(|found| TargetObject {
        uid: found.uid.unwrap_or_default().into(),
        is_terminating: found.deletion_timestamp.is_some(),
    });
    Ok(Target::Served { kind: served, object })
}
