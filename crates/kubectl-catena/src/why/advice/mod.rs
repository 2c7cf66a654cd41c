//! The meaning and the remedy of each reason. `docs/when-something-is-stuck.md` has them for readers.

mod commands;
mod pods;

use catena_api::keys;

use crate::object::Identity;

/// The state of an object, to be read after its name, and the remedy. Both are empty for an unknown reason: then only
/// the words of its reporter are left.
pub fn describe(reason: &str) -> (&'static str, &'static str) {
    pods::pod(reason)
        .or_else(|| pods::volume(reason))
        .or_else(|| template(reason))
        .or_else(|| write(reason))
        .or_else(|| backup(reason))
        .or_else(|| course(reason))
        .or_else(|| commands::command(reason))
        .or_else(|| commands::binding(reason))
        .unwrap_or(("", ""))
}

/// The state of an object and the remedy, for a reason that it reports of itself. Another project may mean something else by
/// the same word, so that only reasons of our kinds and of Kubernetes have a description.
pub fn describe_of(object: &Identity, reason: &str) -> (&'static str, &'static str) {
    let is_of_workload = || WORKLOAD_REASONS.contains(&reason);
    match (object.group(), object.kind.as_str()) {
        (keys::GROUP, _) => describe(reason),
        ("", "Pod") => pods::pod(reason).unwrap_or(("", "")),
        ("apps" | "batch", _) if is_of_workload() => describe(reason),
        _ => ("", ""),
    }
}

/// Reasons that Kubernetes or this plugin gives to workloads.
const WORKLOAD_REASONS: [&str; 4] = ["FailedCreate", "ProgressDeadlineExceeded", "Progressing", "Running"];

pub(super) type Description = (&'static str, &'static str);

/// Reasons that concern templates, children and reads.
fn template(reason: &str) -> Option<Description> {
    Some(match reason {
        "TemplateNotFound" => (
            "names a template that does not exist",
            "set spec.template to one that the message lists, or have it added under templates in the values of the controller of this kind",
        ),
        "ParameterMissing" => {
            ("lacks a parameter that its template requires", "set it under spec.parameters")
        }
        "ParameterUnknown" => {
            ("has a parameter that its template does not declare", "correct its name under spec.parameters")
        }
        "ParameterInvalid" => (
            "has a parameter with a value that its template does not allow",
            "correct the value under spec.parameters as the message says",
        ),
        "TemplateFailed" => (
            "has a template that renders no valid object",
            "fix the template in the values of the chart, or the parameter that the message names",
        ),
        "NotUnique" => (
            "has a pod template that gives every pod the same name",
            "include suffix in the name: {{ name ~ \"-\" ~ suffix }}",
        ),
        "ChildLeaving" => (
            "waits until the child to return to, which is being deleted, is gone",
            "wait; if it stays, kubectl catena why on that child names its holder",
        ),
        "NoExchange" => (
            "waits, because a child is exchanged for another one only while the template can be rendered",
            "fix the template or the parameters, so that the template can be rendered",
        ),
        "FormerChildLeaving" => (
            "waits until the child of a former BasicDeployment of the same name is gone",
            "wait; if it stays, kubectl catena why on that child names its holder",
        ),
        "ContractBroken" => (
            "has a child whose status is not as the controller's settings describe it",
            "correct the field that the message names: the contract of this kind under children in the values of basic-deployment-controller, or the controller of the child",
        ),
        "KindNotListed" => (
            "has a child of a kind that its controller is not configured for",
            "list the kind that the message names under children in the values of basic-deployment-controller until no child of it is left; if only the template renders it, that can be changed instead",
        ),
        "KindNotServed" => (
            "has a child of a kind that the cluster does not serve",
            "install the CRD of that kind, or change the template",
        ),
        "KindNotNamespaced" => (
            "has a template that renders a cluster-scoped kind, which cannot be a child",
            "change the template, or define the kind with scope: Namespaced",
        ),
        "Recursion" => (
            "would be a part of a chain without an end, because its template renders the kind of its own controller",
            "set spec.template to a template that renders another kind",
        ),
        "ChildNotOwned" => (
            "finds the name of its child taken by an object of somebody else",
            "see in the message whether that object can be adopted; otherwise change the name in the template, or delete the object if nobody needs it",
        ),
        "PodNameTaken" => (
            "finds the names of its pods taken by other pods",
            "delete those pods, or change the name in the template",
        ),
        "ChildrenNotObserved" | "PodsNotObserved" => (
            "has a controller that cannot watch the objects that it creates",
            "install the CRD of the child, or grant the controller get, list and watch; it then continues by itself",
        ),
        "Unreadable" => (
            "has a field that its controller cannot read, because it does not match the current definition of its kind, or is nested too deep",
            "correct the field that the message names, or delete the object; if it is held for its backup, release it without one: kubectl{namespace} annotate {object} catena.dev/force-release='<uid> <reason>'",
        ),
        "TemplateChanged" => (
            "waits for a moment, because its template has just changed",
            "wait; it is reconciled again by itself",
        ),
        "StatusRefused" => (
            "has an outdated status, because its controller may not write it",
            "follow the message: it names who refuses the status",
        ),
        "LookUpFailed" | "TimedOut" | "ServerBusy" | "WriteFailed" => (
            "has a controller whose requests to the API server fail",
            "check the health of the API server; the requests are retried",
        ),
        _ => return None,
    })
}

/// Reasons of the API server for refusing a write.
fn write(reason: &str) -> Option<Description> {
    Some(match reason {
        "QuotaExceeded" => (
            "is refused by an exhausted ResourceQuota",
            "raise the quota, or request less; it then continues by itself",
        ),
        "QuotaRefused" => (
            "is refused by a ResourceQuota that is not exhausted",
            "if the message demands requests or limits, set them in the pod template, or give the namespace a LimitRange with defaults",
        ),
        "QuotaDemands" => (
            "is refused by a ResourceQuota that demands requests or limits",
            "set those that the message names in the pod template, or give the namespace a LimitRange with defaults",
        ),
        "DeleteRefused" => (
            "has a pod whose deletion is refused",
            "fix the obstacle that the message names, or delete the pod yourself; everything else continues",
        ),
        "RepeatedWrites" => (
            "has a controller that repeats the same write again and again",
            "make the change in its spec or template, or stop the other writer; if the message does not name it, find it: kubectl get --output yaml --show-managed-fields of the object that the message names",
        ),
        "LimitRangeRefused" => (
            "is refused by a LimitRange",
            "change the requests and limits in the pod template or in spec.parameters, or the LimitRange: kubectl{namespace} describe limitranges",
        ),
        "ServiceAccountMissing" => (
            "has pods with a ServiceAccount that does not exist",
            "create the ServiceAccount, or correct serviceAccountName in the pod template",
        ),
        "PriorityClassMissing" => (
            "has pods with a PriorityClass that does not exist",
            "create the PriorityClass, or correct priorityClassName in the pod template",
        ),
        "RuntimeClassMissing" => (
            "has pods with a RuntimeClass that does not exist",
            "create the RuntimeClass, or correct runtimeClassName in the pod template",
        ),
        "DefinitionTerminating" => (
            "is refused, because the CRD of its kind is being deleted",
            "create the CRD again, or wait until it is gone; the controller then continues by itself",
        ),
        "Forbidden" => {
            ("has a write refused by the API server", "follow the message, which is the API server's")
        }
        "RightMissing" => (
            "has a controller that lacks a right",
            "grant the right to the ServiceAccount, as the message names them; the controller then continues by itself",
        ),
        "RefusedByWebhook" => (
            "has a write refused by an admission webhook",
            "follow the message of the webhook, or ask its operator",
        ),
        "WebhookDoesNotAnswer" => (
            "has a write refused because an admission webhook does not answer",
            "check that the pods of the webhook are running, or remove its configuration",
        ),
        "RefusedByPolicy" => (
            "has a write refused by a ValidatingAdmissionPolicy",
            "follow the message of the policy, or ask its author",
        ),
        "RefusedByPodSecurity" => (
            "has pods that violate the namespace's Pod Security level",
            "fix the security context in the pod template, or the label of the namespace",
        ),
        "UnknownField" => (
            "has a write rejected for a field that the API server does not know",
            "correct the name of the field where it is set; if it is right, upgrade the CRD of the kind",
        ),
        "Invalid" => (
            "has a write rejected as invalid",
            "correct the field that the message names, in spec.parameters or in the template",
        ),
        "FailedCreate" => ("cannot create its pods", "follow the message, which is the API server's"),
        "OwnerKindUnknown" => {
            ("waits until the API server knows its kind, whose CRD is new", "wait for up to 30 s")
        }
        "NamespaceTerminating" => (
            "cannot create anything, because the namespace is being deleted",
            "create it in another namespace if it is still needed; kubectl catena why on the namespace names the objects that hold its deletion up",
        ),
        "NamespaceMissing" => {
            ("cannot write something, because its namespace does not exist", "create the namespace")
        }
        "AlreadyExists" | "Conflict" | "NotFound" => {
            ("met a concurrent change", "wait; the write is retried")
        }
        _ => return None,
    })
}

/// Reasons for holding an object.
fn backup(reason: &str) -> Option<Description> {
    Some(match reason {
        "HeldForBackup" | "BackupRunning" | "BackupBeingDeleted" | "BackupOverdue" | "BackupFailed"
        | "BackupVanished" => (
            "is held until it is backed up",
            "wait for the backup, fix it if it fails, or release the object without one: kubectl catena{namespace} release {object} --reason WHY",
        ),
        "BackupTooLarge" => (
            "cannot be backed up as it is, because its backup would be too large",
            "change the template of the backup, or make the object smaller, as the message says",
        ),
        "BackupHasOwner"
        | "BackupKindNotServed"
        | "BackupInOtherNamespace"
        | "BackupNameNotUnique"
        | "BackupNameTaken"
        | "BackupWithoutNamespace"
        | "BackupsExhausted" => (
            "is held because its backup cannot be created",
            "fix the template or the settings of the backup as the message says, or release the object without one: kubectl catena{namespace} release {object} --reason WHY",
        ),
        "NoEntry" => (
            "is held indefinitely by backup-controller, whose values no longer have an entry for its kind",
            "restore the entry in the values of backup-controller (with protect: false if it should protect no other objects), and remove it when no object has the finalizer any more",
        ),
        "HeldByFinalizer" => (
            "is held by a finalizer",
            "check that the holder of the finalizer is running, and read its logs; removing a finalizer by hand skips the cleanup that it stands for",
        ),
        "WaitsForDependents" => (
            "is deleted after its dependents",
            "wait, or find the holder of the dependents: kubectl catena why",
        ),
        "ShuttingDown" => ("is shutting down", "wait; if its node is gone for good, delete the Node object"),
        _ => return None,
    })
}

/// The course of rollouts and commands.
fn course(reason: &str) -> Option<Description> {
    Some(match reason {
        "ControllerNotRunning" => (
            "is not reconciled, because its controller is not running",
            "find its Deployment, and see its pods and their logs: kubectl get deployments --all-namespaces --selector app.kubernetes.io/part-of=catena",
        ),
        "ProgressDeadlineExceeded" => (
            "has made no progress for spec.progressDeadlineSeconds",
            "fix the blocker; the rollout then continues by itself",
        ),
        "SettingsRefused" => (
            "does not take its newer settings because of a mistake",
            "correct the values of the chart as the message says, and upgrade it: kubectl{namespace} events --for configmap/{name}",
        ),
        "SettingsWaitForRights" => (
            "does not take its newer settings before it has the rights that they need",
            "repeat the upgrade of the chart, or grant the rights that the message names",
        ),
        "LeftBehind" => (
            "runs on, and nothing keeps it in line",
            "create the BasicDeployment again with the same spec, and it adopts the child without downtime; or delete the child: kubectl{namespace} delete {object}",
        ),
        "Paused" => ("is paused", "set spec.paused to false"),
        "ChildPaused" => (
            "waits, because its child is paused",
            "see in the message what the child waits for, and let it go on there; nothing runs out of time meanwhile",
        ),
        "NotReported" => (
            "is not reported on by its controller",
            "find the controller of this kind, and see whether it runs, and its log",
        ),
        "ChangedWhilePaused" => (
            "is paused, and somebody else changed its child",
            "set spec.paused to false, which undoes the change, or undo it by hand",
        ),
        "Progressing" | "Updating" | "Replacing" | "Scaling" => ("is progressing", "wait; nothing blocks it"),
        "RolledBack" => (
            "was rolled back, and stays on the older revision",
            "change the spec or the template, and it follows them again; nothing blocks it",
        ),
        "RevisionNameTaken" => (
            "finds the name of its revision taken by a ControllerRevision that is not known as its own",
            "type the commands of the message, which restore its label and annotation, or delete that ControllerRevision",
        ),
        "RevisionGone" => (
            "was rolled back to a revision that no longer exists",
            "change the spec or the template, or roll back to a revision that kubectl catena{namespace} history lists",
        ),
        "UnknownReason" => (
            "is not ready",
            "follow the message; if there is none, read the Events and the log of the controller of this kind",
        ),
        "UnderWay" | "Running" => ("is in progress", "wait; nothing blocks it"),
        "ExpiryUnknown" => (
            "has a TTL that cannot be determined",
            "correct the settings of command-reaper for this kind as the message says",
        ),
        _ => return None,
    })
}
