//! A kind of commands, compiled from its description.

use std::{ops::Deref, sync::Arc};

use kube::{core::GroupVersionKind, discovery::ApiResource};
use operator_templates::Expression;
use operator_watch::{DynamicKind, PrunedObject};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::{
    expiry::Expiry,
    fields::Fields,
    run::{Run, RunFile},
};

/// How a command is tied to its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum Mode {
    /// The target becomes an owner of the command, which is then deleted with it.
    #[default]
    Owner,
    /// The command gets a label with the target's uid, and nothing else.
    Label,
    /// Nothing is written; the controller only reports what it would do.
    Observe,
}

/// The scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum Scope {
    /// Its objects are in namespaces.
    Namespaced,
    /// Its objects are outside of namespaces.
    Cluster,
}

/// One kind, as it is configured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KindFile {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) kind: String,
    #[serde(flatten)]
    pub(crate) description: DescriptionFile,
}

/// A description, as it is configured in the settings, and in the annotation of a definition.
pub(crate) type DescriptionFile = Description<String, RunFile>;

/// The description of a kind: its expressions are text in a configuration, and compiled in a [`CommandKind`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Description<E = Expression, R = Arc<Run>> {
    /// How its commands are tied to their targets.
    #[serde(default)]
    pub mode: Mode,
    /// The selector of the watched objects.
    pub selector: Option<String>,
    /// Whether an object is a command.
    pub filter: Option<E>,
    /// Whether it can be bound yet.
    pub after: Option<E>,
    /// The expressions for its reference; none for commands that are only deleted.
    pub target: Option<TargetReference<E>>,
    /// How its commands are carried out, if command-runner does that.
    pub run: Option<R>,
    /// When its commands are deleted, if command-reaper does that.
    #[serde(rename = "expire")]
    pub expiry: Option<Expiry<E>>,
    /// The conditions against binding it.
    #[serde(default)]
    pub refuse: Vec<Refusal<E>>,
    /// Finalizers that prevent binding.
    #[serde(default)]
    pub refuse_finalizers: Vec<String>,
    /// Whether the owner is its controller.
    #[serde(default)]
    pub controller: bool,
    /// Whether a foreground deletion of the owner waits for it.
    #[serde(default)]
    pub block_owner_deletion: bool,
    /// Whether the condition `Bound` is written.
    #[serde(default)]
    pub reports_bound: bool,
}

/// The expressions for a reference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetReference<E = Expression> {
    /// The target's name.
    pub name: E,
    /// Its namespace; the command's own if it is not set.
    pub namespace: Option<E>,
    /// Its uid, checked if it is set.
    pub uid: Option<E>,
    /// Its kind, which chooses among several.
    pub kind: Option<E>,
    /// Its group, which chooses among several; an empty string is the core group.
    pub group: Option<E>,
    /// Its possible kinds.
    #[serde(deserialize_with = "target_kinds")]
    pub kinds: Vec<Arc<TargetKind>>,
}

/// A kind of targets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetKind {
    /// The kind.
    pub resource: ApiResource,
    /// The configured scope, if any; if the cluster has another one, nothing is bound.
    pub scope: Option<Scope>,
}

/// A reason not to bind a command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal<E = Expression> {
    /// Whether it applies.
    pub when: E,
    /// The reason of the refusal, for messages.
    pub message: String,
}

/// A kind of commands.
#[derive(Clone, Debug)]
pub struct CommandKind {
    /// Its name in the settings.
    pub id: Arc<str>,
    /// The kind.
    pub resource: ApiResource,
    /// Its possible targets in the versions in which they are watched.
    pub watched_targets: Vec<ApiResource>,
    /// All of this as text: when it changes, the watch is replaced.
    pub fingerprint: Arc<str>,
    /// Everything else.
    pub description: Description,
}

/// A kind is read as its description.
impl Deref for CommandKind {
    type Target = Description;

    fn deref(&self) -> &Description {
        &self.description
    }
}

impl CommandKind {
    /// # Errors
    /// The wrong field, the problem and the remedy.
    pub fn compile(file: KindFile) -> Result<Self, String> {
        let fingerprint = format!("{file:?}").into();
        let KindFile { id, group, version, resource, kind, description } = file;
        let fields = Fields::of_kind(&id);
        for (name, text) in [("id", &id), ("version", &version), ("resource", &resource), ("kind", &kind)] {
            fields.check(!text.is_empty(), name, "is empty; set it")?;
        }
        let description = description.compile(&fields)?;
        let targets = description.target.iter().flat_map(|target| &target.kinds);
        Ok(Self {
            resource: api_resource(&group, &version, &kind, &resource),
            watched_targets: targets.map(|kind| kind.resource.clone()).collect(),
            fingerprint,
            description,
            id: id.into(),
        })
    }

    /// The possible kinds of its targets.
    #[must_use]
    pub fn targets(&self) -> &[Arc<TargetKind>] {
        self.target.as_ref().map_or(&[], |target| &target.kinds)
    }

    /// Whether only the spec of an object tells whether it is bound, and to what: each change of it gives a new generation.
    #[must_use]
    pub fn is_judged_by_spec(&self) -> bool {
        let refuse = self.refuse.iter().map(|refusal| &refusal.when);
        let mut read = self.naming().chain(&self.after).chain(refuse).flat_map(Expression::fields);
        let is_by_spec = self.selector.is_none() && self.refuse_finalizers.is_empty();
        is_by_spec && !read.any(|field| ["metadata", "status"].contains(&&**field))
    }

    /// An object of this kind as the input of its expressions.
    #[must_use]
    pub fn whole(&self, object: PrunedObject) -> Value {
        let mut data = object.into_json();
        // The items of a list of a built-in kind have no version of their own.
        if data["apiVersion"].is_null() {
            data["apiVersion"] = json!(self.resource.api_version);
        }
        data["kind"] = json!(self.resource.kind);
        data
    }

    /// The watch of its commands. It starts again when its kind, or what else they are `read` by, changes.
    #[must_use]
    pub fn watched<R>(
        &self,
        also_by: &str,
        read: impl Fn(PrunedObject) -> R + Send + Sync + 'static,
    ) -> DynamicKind<R> {
        DynamicKind {
            id: self.id.clone(),
            resource: self.resource.clone().into(),
            selector: self.selector.clone(),
            is_metadata_only: false,
            prune: Arc::new(read),
            fingerprint: format!("{} {also_by}", self.fingerprint),
        }
    }
}

impl Description {
    /// What tells whether an object is a command, and of which target.
    fn naming(&self) -> impl Iterator<Item = &Expression> {
        let target =
            self.target.iter().flat_map(|TargetReference { name, namespace, uid, kind, group, .. }| {
                [namespace, uid, kind, group].into_iter().flatten().chain([name])
            });
        target.chain(&self.filter)
    }
}

impl DescriptionFile {
    fn compile(self, fields: &Fields<'_>) -> Result<Description, String> {
        self.check(fields)?;
        let refuse = self.refuse.into_iter().enumerate().map(|(index, Refusal { when, message })| {
            Ok(Refusal { when: fields.compile(&format!("refuse[{index}].when"), &when)?, message })
        });
        let description = Description {
            mode: self.mode,
            selector: self.selector.filter(|selector| !selector.is_empty()),
            filter: fields.optional("filter", self.filter.as_ref())?,
            after: fields.optional("after", self.after.as_ref())?,
            target: self.target.map(|target| target.compile(fields)).transpose()?,
            run: self.run.map(|run| run.compile(fields).map(Arc::new)).transpose()?,
            expiry: self.expiry.map(|expiry| expiry.compile(fields)).transpose()?,
            refuse: refuse.collect::<Result<_, String>>()?,
            refuse_finalizers: self.refuse_finalizers,
            controller: self.controller,
            block_owner_deletion: self.block_owner_deletion,
            reports_bound: self.reports_bound,
        };
        let is_judged_by_status =
            description.naming().flat_map(Expression::fields).any(|field| field == "object.status");
        let problem = "does not go with a filter or target that reads object.status, which no admission policy judges; let them read metadata and spec";
        fields.check(description.run.is_none() || !is_judged_by_status, "run", problem)?;
        Ok(description)
    }

    /// Whether its parts fit together.
    fn check(&self, fields: &Fields<'_>) -> Result<(), String> {
        let problem =
            "is missing; say in it which target a command has, or in expire when a command is deleted";
        fields.check(self.target.is_some() || self.expiry.is_some(), "target", problem)?;
        let is_owned = self.mode == Mode::Owner;
        let problem = "applies only to mode: Owner; remove it, or set that mode";
        fields.check(is_owned || !self.controller, "controller", problem)?;
        let problem = "applies only to commands with a target and mode: Owner, because the owner proves who may run on it; set both";
        fields.check(self.run.is_none() || self.target.is_some() && is_owned, "run", problem)
    }
}

impl TargetReference<String> {
    fn compile(self, fields: &Fields<'_>) -> Result<TargetReference, String> {
        self.check(fields)?;
        Ok(TargetReference {
            name: fields.compile("target.name", &self.name)?,
            namespace: fields.optional("target.namespace", self.namespace.as_ref())?,
            uid: fields.optional("target.uid", self.uid.as_ref())?,
            kind: fields.optional("target.kind", self.kind.as_ref())?,
            group: fields.optional("target.group", self.group.as_ref())?,
            kinds: self.kinds,
        })
    }

    /// Whether a reference can choose among several kinds.
    fn check(&self, fields: &Fields<'_>) -> Result<(), String> {
        let problem = "is empty; list the possible kinds of a target";
        fields.check(!self.kinds.is_empty(), "target.kinds", problem)?;
        let chooses = self.kinds.len() == 1 || self.kind.is_some() || self.group.is_some();
        let problem = "is missing; set it, because it chooses one of several target.kinds";
        fields.check(chooses, "target.kind", problem)?;
        let kinds: Vec<_> = self.kinds.iter().map(|kind| &kind.resource).collect();
        for (index, ApiResource { kind, group, .. }) in kinds.iter().enumerate() {
            for other in kinds.iter().take(index).filter(|other| other.kind == *kind) {
                let problem = format!("{kind} of the group {group:?} is listed twice; remove one");
                fields.check(other.group != *group, "target.kinds", &problem)?;
                let problem = format!(
                    "is missing; set it, because it chooses one of several target.kinds that are called {kind}"
                );
                fields.check(self.group.is_some(), "target.group", &problem)?;
            }
        }
        Ok(())
    }
}

/// Reads kinds of targets, as they are configured.
fn target_kinds<'de, D: Deserializer<'de>>(kinds: D) -> Result<Vec<Arc<TargetKind>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        group: String,
        version: String,
        resource: String,
        kind: String,
        scope: Option<Scope>,
    }

    let kind = |File { group, version, resource, kind, scope }| {
        Arc::new(TargetKind { resource: api_resource(&group, &version, &kind, &resource), scope })
    };
    Ok(Vec::deserialize(kinds)?.into_iter().map(kind).collect())
}

fn api_resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}
