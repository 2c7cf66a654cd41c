//! A kind of commands, compiled from its description.

use std::sync::Arc;

use kube::{core::GroupVersionKind, discovery::ApiResource};
use operator_templates::Expression;
use operator_watch::PrunedObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    expiry::{Expiry, ExpiryFile},
    run::{Run, RunFile},
};

/// How a command is tied to its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// Its objects are in namespaces.
    Namespaced,
    /// Its objects are outside of namespaces.
    Cluster,
}

/// One kind, as it is configured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KindFile {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) group: String,
    version: String,
    pub(crate) resource: String,
    kind: String,
    #[serde(flatten)]
    description: Description,
}

/// The description of a kind, as it is configured in the settings, and in the annotation of a definition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Description {
    #[serde(default)]
    mode: Mode,
    selector: Option<String>,
    filter: Option<String>,
    after: Option<String>,
    target: Option<TargetFile>,
    run: Option<RunFile>,
    expire: Option<ExpiryFile>,
    #[serde(default)]
    refuse: Vec<RefusalFile>,
    #[serde(default)]
    refuse_finalizers: Vec<String>,
    #[serde(default)]
    controller: bool,
    #[serde(default)]
    block_owner_deletion: bool,
    #[serde(default)]
    reports_bound: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetFile {
    name: String,
    namespace: Option<String>,
    uid: Option<String>,
    kind: Option<String>,
    group: Option<String>,
    kinds: Vec<TargetKindFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetKindFile {
    #[serde(default)]
    group: String,
    version: String,
    resource: String,
    kind: String,
    scope: Option<Scope>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusalFile {
    when: String,
    message: String,
}

/// A kind of commands.
#[derive(Clone, Debug)]
pub struct CommandKind {
    /// Its name in the settings.
    pub id: Arc<str>,
    /// The kind.
    pub resource: ApiResource,
    /// How its commands are tied to their targets.
    pub mode: Mode,
    /// The selector of the watched objects.
    pub selector: Option<String>,
    /// Whether an object is a command.
    pub filter: Option<Expression>,
    /// Whether it can be bound yet.
    pub after: Option<Expression>,
    /// The expressions for its reference; none for commands that are only deleted.
    pub target: Option<TargetReference>,
    /// How its commands are carried out, if command-runner does that.
    pub run: Option<Arc<Run>>,
    /// When its commands are deleted, if command-reaper does that.
    pub expiry: Option<Expiry>,
    /// The conditions against binding it.
    pub refuse: Vec<Refusal>,
    /// Finalizers that prevent binding.
    pub refuse_finalizers: Vec<String>,
    /// Its possible targets in the versions in which they are watched.
    pub watched_targets: Vec<ApiResource>,
    /// Whether the owner is its controller.
    pub controller: bool,
    /// Whether a foreground deletion of the owner waits for it.
    pub block_owner_deletion: bool,
    /// Whether the condition `Bound` is written.
    pub reports_bound: bool,
    /// All of this as text: when it changes, the watch is replaced.
    pub fingerprint: Arc<str>,
}

/// The expressions for a reference.
#[derive(Clone, Debug)]
pub struct TargetReference {
    /// The target's name.
    pub name: Expression,
    /// Its namespace; the command's own if it is not set.
    pub namespace: Option<Expression>,
    /// Its uid, checked if it is set.
    pub uid: Option<Expression>,
    /// Its kind, which chooses among several.
    pub kind: Option<Expression>,
    /// Its group, which chooses among several; an empty string is the core group.
    pub group: Option<Expression>,
    /// Its possible kinds.
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
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Whether it applies.
    pub when: Expression,
    /// The reason of the refusal, for messages.
    pub message: String,
}

impl CommandKind {
    /// # Errors
    /// The wrong field, the problem and the remedy.
    pub fn compile(file: KindFile) -> Result<Self, String> {
        let fingerprint = serde_json::to_string(&file).unwrap_or_default();
        let KindFile { id, group, version, resource, kind, description } = file;
        let field = |name: &str| format!("kinds[{id}].{name}");
        for (name, text) in [("id", &id), ("version", &version), ("resource", &resource), ("kind", &kind)] {
            if text.is_empty() {
                return Err(format!("{}: is empty; set it", field(name)));
            }
        }
        let compile = |name: &str, text: &str| Expression::compile(field(name), text, &["object"]);
        let told = |name: &str, text: &str| compile(name, text).map_err(|error| error.to_string());
        let optional = |name: &str, text: Option<&String>| text.map(|text| told(name, text)).transpose();
        let is_owned = description.mode == Mode::Owner;
        if description.target.is_none() && description.expire.is_none() {
            return Err(format!(
                "{}: is missing; say in it which target a command has, or in expire when a command is deleted",
                field("target")
            ));
        }
        if description.controller && !is_owned {
            return Err(format!(
                "{}: applies only to mode: Owner; remove it, or set that mode",
                field("controller")
            ));
        }
        if description.run.is_some() && (description.target.is_none() || !is_owned) {
            return Err(format!(
                "{}: applies only to commands with a target and mode: Owner, because the owner proves who may run on it; set both",
                field("run")
            ));
        }
        let mut refuse = Vec::new();
        for (index, RefusalFile { when, message }) in description.refuse.into_iter().enumerate() {
            refuse.push(Refusal { when: told(&format!("refuse[{index}].when"), &when)?, message });
        }
        let target = description.target.map(|target| target.compile(field, told)).transpose()?;
        let kinds = target.iter().flat_map(|target| &target.kinds);
        let expiry = description.expire.map(|expire| expire.compile(compile)).transpose();
        Ok(Self {
            resource: api_resource(&group, &version, &kind, &resource),
            watched_targets: kinds.map(|kind| kind.resource.clone()).collect(),
            mode: description.mode,
            filter: optional("filter", description.filter.as_ref())?,
            after: optional("after", description.after.as_ref())?,
            target,
            run: description.run.map(|run| run.compile(field).map(Arc::new)).transpose()?,
            expiry: expiry.map_err(|error| error.to_string())?,
            selector: description.selector.filter(|selector| !selector.is_empty()),
            refuse,
            refuse_finalizers: description.refuse_finalizers,
            controller: description.controller,
            block_owner_deletion: description.block_owner_deletion,
            reports_bound: description.reports_bound,
            fingerprint: fingerprint.into(),
            id: id.into(),
        })
    }

    /// The possible kinds of its targets.
    #[must_use]
    pub fn targets(&self) -> &[Arc<TargetKind>] {
        self.target.as_ref().map_or(&[], |target| &target.kinds)
    }

    /// An object of this kind as the input of its expressions.
    #[must_use]
    pub fn whole(&self, object: PrunedObject) -> Value {
        let PrunedObject { metadata, mut data } = object;
        // The items of a list of a built-in kind have no version of their own.
        if data["apiVersion"].is_null() {
            data["apiVersion"] = json!(self.resource.api_version);
        }
        data["kind"] = json!(self.resource.kind);
        data["metadata"] = json!(metadata);
        data
    }
}

impl TargetFile {
    fn compile(
        self,
        field: impl Fn(&str) -> String,
        compile: impl Fn(&str, &str) -> Result<Expression, String>,
    ) -> Result<TargetReference, String> {
        if self.kinds.is_empty() {
            return Err(format!("{}: is empty; list the possible kinds of a target", field("target.kinds")));
        }
        choosable(&self).map_err(|(name, problem)| format!("{}: {problem}", field(name)))?;
        let optional = |name: &str, text: Option<&String>| text.map(|text| compile(name, text)).transpose();
        Ok(TargetReference {
            name: compile("target.name", &self.name)?,
            namespace: optional("target.namespace", self.namespace.as_ref())?,
            uid: optional("target.uid", self.uid.as_ref())?,
            kind: optional("target.kind", self.kind.as_ref())?,
            group: optional("target.group", self.group.as_ref())?,
            kinds: self.kinds.into_iter().map(TargetKindFile::compile).map(Arc::new).collect(),
        })
    }
}

/// Whether a reference can choose among several kinds; otherwise the field to change, and the remedy.
fn choosable(target: &TargetFile) -> Result<(), (&'static str, String)> {
    if target.kinds.len() > 1 && target.kind.is_none() && target.group.is_none() {
        let problem = "is missing; set it, because it chooses one of several target.kinds";
        return Err(("target.kind", problem.into()));
    }
    for (index, one) in target.kinds.iter().enumerate() {
        for other in target.kinds.iter().take(index).filter(|other| other.kind == one.kind) {
            if other.group == one.group {
                let problem =
                    format!("{} of the group {:?} is listed twice; remove one", one.kind, one.group);
                return Err(("target.kinds", problem));
            }
            if target.group.is_none() {
                let problem = format!(
                    "is missing; set it, because it chooses one of several target.kinds that are called {}",
                    one.kind
                );
                return Err(("target.group", problem));
            }
        }
    }
    Ok(())
}

impl KindFile {
    /// The kind of a definition that describes its commands.
    #[must_use]
    pub fn discovered(resource: ApiResource, description: Description) -> Self {
        let ApiResource { group, version, kind, plural, .. } = resource;
        let id = format!("{plural}.{group}");
        Self { id, group, version, resource: plural, kind, description }
    }
}

impl TargetKindFile {
    fn compile(self) -> TargetKind {
        let Self { group, version, resource, kind, scope } = self;
        TargetKind { resource: api_resource(&group, &version, &kind, &resource), scope }
    }
}

fn api_resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}
