//! A kind of command: its compiled settings.

use std::sync::Arc;

use kube::{core::GroupVersionKind, discovery::ApiResource};
use operator_templates::Expression;
use serde::{Deserialize, Serialize};

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
    binding: BindingFile,
}

/// The binding of commands of a kind, as it is configured in the settings, and in the annotation of a definition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BindingFile {
    #[serde(default)]
    mode: Mode,
    selector: Option<String>,
    filter: Option<String>,
    after: Option<String>,
    target: TargetFile,
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

/// A kind of command.
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
    /// The expressions for its reference.
    pub target: TargetReference,
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
        let KindFile { id, group, version, resource, kind, binding } = file;
        let field = |name: &str| format!("kinds[{id}].{name}");
        for (name, text) in [("id", &id), ("version", &version), ("resource", &resource), ("kind", &kind)] {
            if text.is_empty() {
                return Err(format!("{}: is empty; set it", field(name)));
            }
        }
        let compile = |name: &str, text: &str| {
            Expression::compile(field(name), text, &["object"]).map_err(|error| error.to_string())
        };
        let optional = |name: &str, text: Option<&String>| text.map(|text| compile(name, text)).transpose();
        if binding.controller && binding.mode != Mode::Owner {
            return Err(format!(
                "{}: applies only to mode: Owner; remove it, or set that mode",
                field("controller")
            ));
        }
        let target = binding.target;
        if target.kinds.is_empty() {
            return Err(format!("{}: is empty; list the possible kinds of a target", field("target.kinds")));
        }
        choosable(&target).map_err(|(name, problem)| format!("{}: {problem}", field(name)))?;
        let mut refuse = Vec::new();
        for (index, RefusalFile { when, message }) in binding.refuse.into_iter().enumerate() {
            refuse.push(Refusal { when: compile(&format!("refuse[{index}].when"), &when)?, message });
        }
        let kinds: Vec<_> = target.kinds.into_iter().map(TargetKindFile::compile).map(Arc::new).collect();
        Ok(Self {
            resource: api_resource(&group, &version, &kind, &resource),
            watched_targets: kinds.iter().map(|kind| kind.resource.clone()).collect(),
            mode: binding.mode,
            filter: optional("filter", binding.filter.as_ref())?,
            after: optional("after", binding.after.as_ref())?,
            target: TargetReference {
                name: compile("target.name", &target.name)?,
                namespace: optional("target.namespace", target.namespace.as_ref())?,
                uid: optional("target.uid", target.uid.as_ref())?,
                kind: optional("target.kind", target.kind.as_ref())?,
                group: optional("target.group", target.group.as_ref())?,
                kinds,
            },
            selector: binding.selector.filter(|selector| !selector.is_empty()),
            refuse,
            refuse_finalizers: binding.refuse_finalizers,
            controller: binding.controller,
            block_owner_deletion: binding.block_owner_deletion,
            reports_bound: binding.reports_bound,
            fingerprint: fingerprint.into(),
            id: id.into(),
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
    /// The kind of a definition that describes the binding of its commands.
    #[must_use]
    pub fn discovered(resource: ApiResource, binding: BindingFile) -> Self {
        let ApiResource { group, version, kind, plural, .. } = resource;
        let id = format!("{plural}.{group}");
        Self { id, group, version, resource: plural, kind, binding }
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
