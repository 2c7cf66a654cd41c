//! The settings, with their validation.

mod entries;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use catena_api::{
    backup::{OBJECT, VALUES},
    keys::GROUP,
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    core::{GroupVersion, GroupVersionKind, Selector},
    discovery::ApiResource,
};
use operator_kit::run::{TemplateSample, Validate};
use operator_templates::{Digest, Expression, TemplateError, Templates};
use serde::Deserialize;
use serde_json::Value;

pub use entries::Entries;

use crate::metadata;

/// The protected object, for expressions.
pub const TARGET: &str = "target";

/// Maximum number of attempts for an object: the pauses between them add up to more than a year.
pub const LAST_ATTEMPT: u32 = 10_000;

/// The settings.
#[derive(Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The protected kinds, by the names of their entries.
    pub kinds: BTreeMap<String, Arc<ProtectedKind>>,
    /// The same by [`ProtectedKind::resource_id`].
    pub by_resource: BTreeMap<String, Entries>,
    /// The templates of backups, by the backup's name.
    pub templates: Templates,
    mistakes: Vec<String>,
}

/// A kind whose objects are not deleted before their backup is proven.
#[derive(Debug)]
pub struct ProtectedKind {
    /// Its name in the settings.
    pub id: String,
    /// The kind.
    pub resource: ApiResource,
    /// If false, nothing is held any more, and objects that have the finalizer lose it.
    pub protect: bool,
    /// The selector of the protected objects.
    pub selector: Selector,
    /// The selector of their namespaces; all if there is none.
    pub namespaces: Option<Selector>,
    /// Its kind of backup.
    pub backup: Arc<Backup>,
    /// A digest of the entry and the backup that it creates: a backup of another policy proves nothing for this one.
    pub policy: String,
    /// Time limit of one backup, and of the time without any backup.
    pub deadline: Duration,
    /// The reaction to a backup that failed or took too long.
    pub on_failure: OnFailure,
    /// Number of attempts, each created or refused by the server, before an object is released without a backup.
    pub tries: u32,
    /// Delay of the next attempt after a failed one; it doubles each time.
    pub retry_after: Duration,
}

/// A kind of backup.
#[derive(Debug)]
pub struct Backup {
    /// Its name in the settings, which is also that of its template.
    pub name: String,
    /// The created kind.
    pub resource: ApiResource,
    /// sha256 of the template's text.
    pub template: String,
    /// Its namespace; that of the protected object if there is none.
    pub namespace: Option<String>,
    /// Whether the kind is cluster-scoped.
    pub is_cluster_scoped: bool,
    /// Whether the backup is proven.
    pub succeeded: Expression,
    /// Whether it failed.
    pub failed: Option<Expression>,
}

/// The reaction to a backup that failed or took too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OnFailure {
    /// The object is held until a backup is proven, or somebody releases it.
    #[default]
    Hold,
    /// The object is released without a backup.
    Release,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    kinds: BTreeMap<String, KindEntry>,
    #[serde(default)]
    backups: BTreeMap<String, BackupEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct KindEntry {
    api_version: String,
    kind: String,
    resource: String,
    /// True by default.
    protect: Option<bool>,
    selector: Option<LabelSelector>,
    namespace_selector: Option<LabelSelector>,
    backup: String,
    /// 1h by default.
    deadline: Option<String>,
    #[serde(default)]
    on_failure: OnFailure,
    /// 3 by default.
    tries: Option<u32>,
    /// 1m by default.
    retry_after: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BackupEntry {
    api_version: String,
    kind: String,
    resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    cluster_scoped: bool,
    template: String,
    succeeded: String,
    failed: Option<String>,
}

impl From<File> for Settings {
    fn from(file: File) -> Self {
        let mut mistakes = Vec::new();
        let named: BTreeSet<String> = file.backups.keys().cloned().collect();
        let sources = file.backups.iter().map(|(name, entry)| (name.clone(), entry.template.clone()));
        let templates = Templates::compile(&sources.collect(), GROUP);
        let read = |(name, entry): (String, BackupEntry)| {
            let backup = Arc::new(entry.read(&name, &mut mistakes)?);
            Some((name, backup))
        };
        let backups: BTreeMap<_, _> = file.backups.into_iter().filter_map(read).collect();
        let read = |(id, entry): (String, KindEntry)| {
            let kind = Arc::new(entry.read(&id, &named, &backups, &mut mistakes)?);
            Some((id, kind))
        };
        let kinds: BTreeMap<_, _> = file.kinds.into_iter().filter_map(read).collect();
        let mut by_resource: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for kind in kinds.values() {
            by_resource.entry(kind.resource_id()).or_default().push(kind.clone());
        }
        let by_resource = by_resource.into_iter().map(|(id, kinds)| (id, Entries::new(kinds))).collect();
        let mut settings = Self { kinds, by_resource, templates, mistakes };
        settings.mistakes.extend(settings.mistakes_of_templates());
        settings
    }
}

impl Settings {
    /// The entries of a kind, for an object that was selected by entries of this fingerprint. `None` for objects that
    /// other entries selected, which wait for the watch of the present ones.
    pub fn entries(&self, id: &str, fingerprint: &str) -> Option<&Entries> {
        self.by_resource.get(id).filter(|entries| **entries.fingerprint() == *fingerprint)
    }

    /// The mistakes in templates that do not depend on the object, if they can be found before their use.
    fn mistakes_of_templates(&self) -> Vec<String> {
        let mistake = |backup: &&Backup| {
            let rendered = self.tried(backup).ok()?;
            let has_owner = metadata::list(&rendered, "ownerReferences").next().is_some();
            has_owner.then(|| {
                format!(
                    "backups.{}.template: it sets metadata.ownerReferences, so that the backup would be deleted with its owner; remove that field",
                    backup.name
                )
            })
        };
        self.backups().values().filter_map(mistake).collect()
    }

    /// The backups that are used, by name.
    fn backups(&self) -> BTreeMap<&str, &Backup> {
        self.kinds.values().map(|kind| (kind.backup.name.as_str(), &*kind.backup)).collect()
    }

    /// The trial rendering of a template for an object that has every field.
    fn tried(&self, backup: &Backup) -> Result<Value, TemplateError> {
        let Backup { name, resource, .. } = backup;
        let kind = (&*resource.api_version, &*resource.kind);
        Ok(self.templates.samples(name, &BTreeMap::new(), &VALUES, &[kind])?.swap_remove(0))
    }
}

impl ProtectedKind {
    /// Group and plural: `configmaps`, `clusters.postgresql.cnpg.io`. Several entries may have the same one.
    #[must_use]
    pub fn resource_id(&self) -> String {
        let ApiResource { group, plural, .. } = &self.resource;
        if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") }
    }

    /// Whether only a proven backup or a user can release an object.
    #[must_use]
    pub fn always_holds(&self) -> bool {
        self.protect && self.on_failure == OnFailure::Hold
    }
}

impl Backup {
    /// A digest that distinguishes the backups of an entry from those of others, and from its own under other settings.
    /// It ignores the version of the kind, because all versions name the same objects.
    fn policy(&self, entry: &str) -> String {
        let ApiResource { group, kind, .. } = &self.resource;
        let namespace = self.namespace.as_deref().unwrap_or_default();
        Digest::short(&[entry, &self.name, group, kind, namespace, &self.template])
    }

    /// Whether it is a Job.
    #[must_use]
    pub fn is_job(&self) -> bool {
        (&*self.resource.group, &*self.resource.kind) == ("batch", "Job")
    }

    /// A warning for each expression that counts the pods of a Job: it has not ended if it tries again, or has further
    /// completions to come.
    fn counts_of_pods(&self) -> Vec<String> {
        let warning = |field: &str, condition: &str, expression: &Expression| {
            let read = expression.source().replace(['?', ' ', '`'], "");
            let counts = ["status.succeeded", "status.failed"].iter().any(|count| read.contains(count));
            (self.is_job() && counts).then(|| {
                format!(
                    "backups.{}.{field}: it counts pods, and a Job that tries again or has several completions has not ended with the first of them; read the condition instead: object.?status.?conditions.orValue([]).exists(c, c.type == '{condition}' && c.status == 'True')",
                    self.name
                )
            })
        };
        let succeeded = warning("succeeded", "Complete", &self.succeeded);
        let failed = self.failed.as_ref().and_then(|failed| warning("failed", "Failed", failed));
        succeeded.into_iter().chain(failed).collect()
    }
}

impl KindEntry {
    fn read(
        self,
        id: &str,
        named: &BTreeSet<String>,
        backups: &BTreeMap<String, Arc<Backup>>,
        mistakes: &mut Vec<String>,
    ) -> Option<ProtectedKind> {
        let mut mistake =
            |field: &str, problem: &str| mistakes.push(format!("kinds.{id}.{field}: {problem}"));
        let resource = resource(&self.api_version, &self.kind, &self.resource)
            .map_err(|problem| mistake("apiVersion", &problem));
        let selector =
            selector_of(self.selector.unwrap_or_default()).map_err(|problem| mistake("selector", &problem));
        let namespaces = self
            .namespace_selector
            .map(selector_of)
            .transpose()
            // A selector that selects all namespaces counts as none, and needs no right to read namespaces.
            .map(|selector| selector.filter(|selector| !selector.selects_all()))
            .map_err(|problem| mistake("namespaceSelector", &problem));
        let deadline = duration(self.deadline.as_deref().unwrap_or("1h"))
            .map_err(|problem| mistake("deadline", &problem));
        let retry_after = duration(self.retry_after.as_deref().unwrap_or("1m"))
            .map_err(|problem| mistake("retryAfter", &problem));
        let tries = self.tries.unwrap_or(3);
        if !(1..=LAST_ATTEMPT).contains(&tries) {
            mistake("tries", &format!("must be from 1 to {LAST_ATTEMPT}"));
        }
        let backup = backups.get(&self.backup).cloned();
        // Mistakes in an existing backup are reported there.
        if !named.contains(&self.backup) {
            let known = named.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            mistake(
                "backup",
                &format!("there is no backup {:?}; use one of those under backups ({known})", self.backup),
            );
        }
        let backup = backup?;
        Some(ProtectedKind {
            id: id.to_owned(),
            policy: backup.policy(id),
            resource: resource.ok()?,
            protect: self.protect.unwrap_or(true),
            selector: selector.ok()?,
            namespaces: namespaces.ok()?,
            backup,
            deadline: deadline.ok()?,
            on_failure: self.on_failure,
            tries,
            retry_after: retry_after.ok()?,
        })
    }
}

impl BackupEntry {
    fn read(self, name: &str, mistakes: &mut Vec<String>) -> Option<Backup> {
        let resource = resource(&self.api_version, &self.kind, &self.resource)
            .map_err(|problem| mistakes.push(format!("backups.{name}.apiVersion: {problem}")));
        let mut compile = |field: &str, source: &str| {
            Expression::compile(format!("backups.{name}.{field}"), source, &[OBJECT, TARGET])
                .map_err(|error| mistakes.push(error.to_string()))
        };
        let succeeded = compile("succeeded", &self.succeeded);
        let failed = self.failed.map(|source| compile("failed", &source)).transpose();
        if self.cluster_scoped && !self.namespace.is_empty() {
            mistakes.push(format!(
                "backups.{name}.namespace: cannot be combined with clusterScoped: true; remove one of them"
            ));
        }
        Some(Backup {
            name: name.to_owned(),
            resource: resource.ok()?,
            template: Digest::sha256(&self.template),
            namespace: Some(self.namespace).filter(|namespace| !namespace.is_empty()),
            is_cluster_scoped: self.cluster_scoped,
            succeeded: succeeded.ok()?,
            failed: failed.ok()?,
        })
    }
}

/// A kind of the settings.
///
/// # Errors
/// With the problem, if `api_version` is invalid.
pub fn resource(api_version: &str, kind: &str, plural: &str) -> Result<ApiResource, String> {
    let GroupVersion { group, version, .. } = api_version
        .parse()
        .map_err(|_| format!("{api_version:?} is not an API version such as apps/v1 or v1"))?;
    Ok(ApiResource::from_gvk_with_plural(&GroupVersionKind { group, version, kind: kind.to_owned() }, plural))
}

fn selector_of(selector: LabelSelector) -> Result<Selector, String> {
    Selector::try_from(selector).map_err(|error| error.to_string())
}

/// Minimum duration, because a shorter one would cause a loop of backups.
const MIN_DURATION: Duration = Duration::from_secs(1);

fn duration(text: &str) -> Result<Duration, String> {
    let problem = || format!("{text:?} is not a duration such as 90s, 10m or 2h");
    let parsed: SignedDuration = text.parse().map_err(|_| problem())?;
    let duration = Duration::try_from(parsed).map_err(|_| problem())?;
    if duration < MIN_DURATION { Err(format!("{text:?} is less than one second")) } else { Ok(duration) }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(self.mistakes.clone()) }
    }

    fn warnings(&self) -> Vec<String> {
        let backups = self.backups();
        let problem = |backup: &&Backup| self.tried(backup).err();
        let of_templates = backups.values().filter_map(problem).map(|error| error.to_string());
        of_templates.chain(backups.values().flat_map(|backup| backup.counts_of_pods())).collect()
    }

    fn samples(&self) -> Vec<TemplateSample> {
        let mut samples = Vec::new();
        for Backup { name, resource, namespace, is_cluster_scoped, .. } in self.backups().into_values() {
            let namespace = if *is_cluster_scoped { Some(String::new()) } else { namespace.clone() };
            let kind = std::slice::from_ref(resource);
            let of_backup = TemplateSample::of(&self.templates, name, &VALUES, kind);
            samples.extend(
                of_backup.into_iter().map(|sample| TemplateSample { namespace: namespace.clone(), ..sample }),
            );
        }
        samples
    }
}

#[cfg(test)]
mod tests;
