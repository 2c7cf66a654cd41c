//! The backups of one object: what they are made of, and how they fare.

use std::collections::BTreeMap;

use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use jiff::Timestamp;
use kube::Client;
use operator_kit::{Expression, ExpressionError, ReadError, Subject, Templates, short_digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    error::{Error, Unusable},
    live,
    manifest::manifest,
    settings::{ATTEMPT, Backup, MANIFEST, OBJECT, ProtectedKind, TARGET},
};

/// How the backups of an object stand.
#[derive(Clone, Debug, PartialEq)]
pub enum Situation {
    /// There is none, and none can be made or judged.
    Unusable(Unusable),
    /// There is none; this one would be the next.
    Absent {
        /// The number of the try.
        attempt: u32,
        /// What is to be created.
        backup: Value,
    },
    /// The last one did not fail, as far as is known.
    There {
        /// Which one it is.
        last: Try,
        /// How it fares.
        verdict: Verdict,
    },
    /// The last one failed; the next one would be this.
    Failed {
        /// Which one it is.
        last: Try,
        /// What is to be created next.
        next: Value,
    },
}

/// A backup that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try {
    /// The number of the try, from 1.
    pub attempt: u32,
    /// Its kind, namespace and name.
    pub title: String,
    /// When it was created, by the server's clock.
    pub created: Timestamp,
}

/// How a backup fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is proven.
    Succeeded,
    /// It goes on, or nothing is known of it, for the reason given if there is one.
    Running(Option<String>),
    /// It is being deleted, and so proves nothing any more.
    Going,
    /// It failed.
    Failed,
}

/// Which object a backup is of, for whoever finds it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its kind, as [`ProtectedKind::resource_id`] gives it.
    pub id: String,
    api_version: String,
    kind: String,
    /// The object's namespace; empty for none.
    #[serde(default)]
    pub namespace: String,
    /// The object's name.
    pub name: String,
    attempt: u32,
}

/// Reads live how the backups of an object stand, beginning with try number `first`.
pub async fn situation(
    client: &Client,
    templates: &Templates,
    kind: &ProtectedKind,
    target: &Value,
    first: u32,
) -> Result<Situation, Error> {
    let mut failed = None;
    let mut attempt = first.max(1);
    loop {
        let backup = match render(templates, kind, target, attempt) {
            Ok(backup) => backup,
            Err(problem) => return Ok(Situation::Unusable(problem)),
        };
        let (namespace, name) = (live::text(&backup, "namespace"), live::text(&backup, "name"));
        let found = match live::get(client, &kind.backup.resource, namespace, name).await {
            Err(problem @ ReadError::Forbidden { .. }) => {
                return Ok(Situation::Unusable(Unusable::OutOfReach(problem)));
            }
            found => found?,
        };
        let Some(found) = found else {
            return Ok(match failed {
                None => Situation::Absent { attempt, backup },
                Some(last) => Situation::Failed { last, next: backup },
            });
        };
        let title = title(&kind.backup, namespace, name);
        if !is_of(&found, target, attempt) {
            return Ok(Situation::Unusable(Unusable::NameTaken { title }));
        }
        let created = live::time(&found, "creationTimestamp").unwrap_or_default();
        let last = Try { attempt, title, created };
        match judge(&kind.backup, &found, target) {
            Verdict::Failed => {
                failed = Some(last);
                attempt = attempt.saturating_add(1);
            }
            verdict => return Ok(Situation::There { last, verdict }),
        }
    }
}

/// What a backup is made of.
fn render(
    templates: &Templates,
    kind: &ProtectedKind,
    target: &Value,
    attempt: u32,
) -> Result<Value, Unusable> {
    let Backup { name: template, resource, .. } = &*kind.backup;
    let texts = |map: &str| -> BTreeMap<String, String> {
        let map = target.get("metadata").and_then(|metadata| metadata.get(map));
        map.and_then(|map| serde_json::from_value(map.clone()).ok()).unwrap_or_default()
    };
    let (uid, number) = (live::text(target, "uid"), attempt.to_string());
    let (labels, annotations) = (texts("labels"), texts("annotations"));
    // A create that is repeated, after a crash or with a stale cache, meets its own backup.
    let suffix = short_digest(&[uid, &number]);
    let subject = Subject {
        name: live::text(target, "name"),
        namespace: live::text(target, "namespace"),
        uid,
        labels: Some(&labels),
        annotations: Some(&annotations),
        parameters: &BTreeMap::new(),
        suffix: &suffix,
    };
    let more = [(OBJECT, target), (MANIFEST, &json!(manifest(target))), (ATTEMPT, &json!(attempt))];
    let mut backup =
        templates.render_with(template, &subject, &more, &resource.api_version, &resource.kind)?;
    let name = live::text(&backup, "name");
    if !name.contains(&suffix) {
        return Err(Unusable::NotUnique { backup: template.clone(), name: name.to_owned() });
    }
    settle_namespace(&kind.backup, subject.namespace, &mut backup)?;
    let about = Target {
        id: kind.resource_id(),
        api_version: kind.resource.api_version.clone(),
        kind: kind.resource.kind.clone(),
        namespace: subject.namespace.to_owned(),
        name: subject.name.to_owned(),
        attempt,
    };
    let metadata = &mut backup["metadata"];
    metadata["labels"][BACKUP_OF] = uid.into();
    metadata["annotations"][BACKUP_TARGET] = serde_json::to_string(&about).unwrap_or_default().into();
    Ok(backup)
}

fn settle_namespace(backup: &Backup, of_target: &str, object: &mut Value) -> Result<(), Unusable> {
    let wanted = match &backup.namespace {
        _ if backup.is_cluster_scoped => "",
        Some(namespace) => namespace,
        None if of_target.is_empty() => return Err(Unusable::NoNamespace { backup: backup.name.clone() }),
        None => of_target,
    };
    let found = live::text(object, "namespace");
    if !found.is_empty() && found != wanted {
        return Err(Unusable::OtherNamespace { backup: backup.name.clone(), found: found.to_owned() });
    }
    if !wanted.is_empty() {
        object["metadata"]["namespace"] = wanted.into();
    }
    Ok(())
}

/// Whether what was found is the backup that is looked for, and not something else of its name.
fn is_of(found: &Value, target: &Value, attempt: u32) -> bool {
    let about = live::entry(found, "annotations", BACKUP_TARGET);
    let about = about.and_then(|text| serde_json::from_str::<Target>(text).ok());
    live::entry(found, "labels", BACKUP_OF) == Some(live::text(target, "uid"))
        && about.is_some_and(|about| about.attempt == attempt)
}

/// How a backup fares. What is not known is still running.
fn judge(backup: &Backup, object: &Value, target: &Value) -> Verdict {
    if live::time(object, "deletionTimestamp").is_some() {
        return Verdict::Going;
    }
    let ask = |expression: &Expression| -> Result<bool, ExpressionError> {
        expression.bool(&[(OBJECT, object), (TARGET, target)])
    };
    let failed = backup.failed.as_ref().map(ask);
    if failed == Some(Ok(true)) {
        return Verdict::Failed;
    }
    match ask(&backup.succeeded) {
        Ok(true) => Verdict::Succeeded,
        Ok(false) => Verdict::Running(failed.and_then(Result::err).map(|error| error.to_string())),
        Err(error) => Verdict::Running(Some(error.to_string())),
    }
}

fn title(backup: &Backup, namespace: &str, name: &str) -> String {
    let kind = &backup.resource.kind;
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn settings(template: &str, namespace: &str) -> Settings {
        let settings = json!({
            "kinds": {"maps": {"apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "job"}},
            "backups": {"job": {
                "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs", "namespace": namespace, "template": template,
                "succeeded": "object.status.succeeded == 1", "failed": "object.status.failed == 1",
            }},
        });
        serde_json::from_value(settings).unwrap()
    }

    fn target(namespace: &str) -> Value {
        json!({"kind": "ConfigMap", "metadata": {"name": "web", "namespace": namespace, "uid": "u"}, "data": {"a": "\"b: {{ c }}"}})
    }

    const TEMPLATE: &str = "{apiVersion: batch/v1, kind: Job, metadata: {name: {{ name ~ '-' ~ suffix }}}, spec: {text: {{ manifest }}, a: {{ object.data.a }}}}";

    #[test]
    fn what_is_not_known_is_still_running_and_what_is_both_failed() {
        let backup = settings(TEMPLATE, "").kinds["maps"].backup.clone();
        let verdict = |object: Value| judge(&backup, &object, &json!({}));
        assert_eq!(verdict(json!({"status": {"succeeded": 1, "failed": 0}})), Verdict::Succeeded);
        assert_eq!(verdict(json!({"status": {"succeeded": 1}})), Verdict::Succeeded);
        assert_eq!(verdict(json!({"status": {"failed": 1, "succeeded": 1}})), Verdict::Failed);
        assert_eq!(verdict(json!({"status": {"failed": 0, "succeeded": 0}})), Verdict::Running(None));
        for unknown in [json!({}), json!({"status": {}}), json!({"status": {"succeeded": "yes"}})] {
            assert!(matches!(verdict(unknown.clone()), Verdict::Running(_)), "{unknown}");
        }
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"succeeded": 1, "failed": 0}});
        assert_eq!(verdict(going), Verdict::Going);
    }

    #[test]
    fn each_try_of_each_object_has_a_name_of_its_own_that_is_always_the_same() {
        let settings = settings(TEMPLATE, "");
        let name = |target: &Value, attempt| {
            let backup = render(&settings.templates, &settings.kinds["maps"], target, attempt).unwrap();
            live::text(&backup, "name").to_owned()
        };
        let mut other = target("shop");
        other["metadata"]["uid"] = "v".into();
        assert_eq!(name(&target("shop"), 1), name(&target("shop"), 1));
        assert_ne!(name(&target("shop"), 1), name(&target("shop"), 2));
        assert_ne!(name(&target("shop"), 1), name(&other, 1));
    }

    #[test]
    fn values_of_the_object_stay_values_and_a_backup_says_what_it_is_of() {
        let settings = settings(TEMPLATE, "backups");
        let backup = render(&settings.templates, &settings.kinds["maps"], &target("shop"), 3).unwrap();
        assert_eq!(backup["spec"]["a"], "\"b: {{ c }}");
        assert_eq!(backup["metadata"]["namespace"], "backups");
        assert!(is_of(&backup, &target("shop"), 3) && !is_of(&backup, &target("shop"), 2));
        let manifest: Value = serde_json::from_str(backup["spec"]["text"].as_str().unwrap()).unwrap();
        assert_eq!(manifest["data"], target("shop")["data"]);
    }

    #[test]
    fn a_template_that_cannot_work_is_told() {
        let problem = |template: &str, of: &str| {
            let settings = settings(template, "");
            render(&settings.templates, &settings.kinds["maps"], &target(of), 1).unwrap_err().reason()
        };
        let named = |name: &str| format!("{{apiVersion: batch/v1, kind: Job, metadata: {{{name}}}}}");
        assert_eq!(problem(&named("name: {{ name }}"), "shop"), "BackupNameNotUnique");
        assert_eq!(problem(&named("name: {{ suffix }}, namespace: other"), "shop"), "BackupInOtherNamespace");
        assert_eq!(problem(&named("name: {{ suffix }}"), ""), "BackupWithoutNamespace");
    }
}
