//! What each reason means, and what to do about it. `docs/when-something-is-stuck.md` says the same for readers.

/// What is the matter with an object, to be read after its name, and what to do. Empty where a reason is not known:
/// then the words of whoever reported it have to do.
pub fn describe(reason: &str) -> (&'static str, &'static str) {
    pod(reason)
        .or_else(|| template(reason))
        .or_else(|| write(reason))
        .or_else(|| backup(reason))
        .or_else(|| course(reason))
        .or_else(|| command(reason))
        .or_else(|| binding(reason))
        .unwrap_or(("", ""))
}

type Description = (&'static str, &'static str);

/// What a kubelet or a scheduler says of a pod.
fn pod(reason: &str) -> Option<Description> {
    Some(match reason {
        "ImagePullBackOff"
        | "ErrImagePull"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "RegistryUnavailable" => (
            "cannot pull its image",
            "correct the image (for a BasicDeployment in spec.parameters), or the pull secret in the pod template",
        ),
        "CrashLoopBackOff" => (
            "has a container that ends again and again",
            "read its last words: kubectl{namespace} logs {name} --previous",
        ),
        "Error" | "ContainerCannotRun" | "StartError" | "RunContainerError" | "PodFailed" => {
            ("has a container that ended badly", "read its last words: kubectl{namespace} logs {name}")
        }
        "RunsAsRoot" => (
            "has an image that runs as root, which its security context does not allow",
            "use an image that runs as another user, or set runAsUser in the security context of the pod template",
        ),
        "OOMKilled" => ("needed more memory than its limit", "raise the memory limit, or find what uses it"),
        "CreateContainerConfigError" | "CreateContainerError" => (
            "has a container that cannot be created",
            "make the ConfigMap, Secret or key that the message names",
        ),
        "Unschedulable" | "SchedulerError" => (
            "finds no node that takes it",
            "ask for less CPU or memory, change the node selector, or add a node; the message counts what does not fit",
        ),
        "SchedulingGated" => {
            ("is held back by a scheduling gate", "find who set spec.schedulingGates and takes it off")
        }
        "Evicted" | "Preempting" | "NodeLost" | "NodeShutdown" => {
            ("was put off its node", "it is replaced by itself; see the node's conditions if it comes again")
        }
        "PodSucceeded" => (
            "ended by itself though it should go on serving",
            "run a program that does not end, or use a Job",
        ),
        "Starting" | "ContainerCreating" | "PodInitializing" => (
            "is just starting",
            "wait; if it stays so, kubectl{namespace} describe {object} shows its volumes and init containers",
        ),
        "NotReady" | "ContainersNotReady" => (
            "runs, but is not ready",
            "see why its readiness probe fails: kubectl{namespace} describe {object} and its logs",
        ),
        _ => return None,
    })
}

/// What a controller says of templates and of what it watches.
fn template(reason: &str) -> Option<Description> {
    Some(match reason {
        "TemplateNotFound" => (
            "names a template that there is not",
            "set spec.template to one that the message lists, or have it added to the controller's values",
        ),
        "ParameterMissing" => ("lacks a parameter that its template needs", "set it under spec.parameters"),
        "TemplateFailed" => (
            "has a template that gives no usable object",
            "mend the template in the values of the chart, or the parameter that the message names",
        ),
        "NotUnique" => (
            "has a pod template that gives all pods the same name",
            "let the name in the template hold suffix: {{ name ~ \"-\" ~ suffix }}",
        ),
        "FormerChildLeaving" => (
            "waits for the child of a former BasicDeployment of its name to go",
            "wait; if it stays, kubectl catena why on that child says what holds it",
        ),
        "ChildNotOwned" => (
            "finds its child's name taken by somebody else's object",
            "see in the message whether it can be adopted; else delete that object if nobody needs it, or change the name in the template",
        ),
        "PodNameTaken" => (
            "finds the names of its pods taken by other pods",
            "delete those pods, or change the name in the template",
        ),
        "ChildrenNotObserved" | "PodsNotObserved" => (
            "has a controller that cannot watch what it makes",
            "install the child's CRD, or grant the controller get, list and watch; it goes on by itself",
        ),
        "TooDeep" => (
            "is nested deeper than a hundred levels, so that a backup made from it would lack what is below",
            "make it flatter, or let it go without a backup: kubectl catena release",
        ),
        "Unreadable" => (
            "has a field that is not what its definition says by now, so that its controller cannot read it",
            "correct the field that the Event names, or delete the object",
        ),
        "StatusRefused" => (
            "has a controller that may not write its status, so that the status is out of date",
            "do as the message says: it names who refuses the status",
        ),
        "LookUpFailed" | "TimedOut" | "ServerBusy" | "WriteFailed" => (
            "has a controller that gets no good answer from the API server",
            "see whether the API server is well; it is tried again by itself",
        ),
        _ => return None,
    })
}

/// What the API server says when a controller, or somebody else, writes.
fn write(reason: &str) -> Option<Description> {
    Some(match reason {
        "QuotaExceeded" => (
            "is refused by a used-up ResourceQuota",
            "raise the quota, or ask for less; it goes on by itself",
        ),
        "QuotaRefused" => (
            "is refused by a ResourceQuota that is not used up",
            "where the message asks for requests or limits, set them in the pod template, or give the namespace a LimitRange with defaults",
        ),
        "DeleteRefused" => (
            "has a pod that may not be deleted",
            "change what the message names, or delete the pod yourself; all else goes on",
        ),
        "RepeatedWrites" => (
            "has the very same written again and again",
            "find out who else writes there: kubectl get --output yaml --show-managed-fields of what the message names",
        ),
        "DefinitionTerminating" => (
            "is refused because the definition of the kind is being deleted",
            "create the definition again, or wait until it is gone; it goes on by itself",
        ),
        "Forbidden" => (
            "has something refused by the API server",
            "the message is the API server's: grant what it names, or do as it says",
        ),
        "RightMissing" => (
            "has a controller that lacks a right",
            "grant what the message names to the ServiceAccount that it names; it goes on by itself",
        ),
        "RefusedByWebhook" => (
            "has something refused by an admission webhook",
            "do as its message says, or talk to whoever runs the webhook",
        ),
        "WebhookDoesNotAnswer" => (
            "has something refused because an admission webhook does not answer",
            "see whether the webhook's pods run, or remove its configuration",
        ),
        "RefusedByPolicy" => (
            "has something refused by a ValidatingAdmissionPolicy",
            "do as its message says, or talk to whoever keeps the policy",
        ),
        "RefusedByPodSecurity" => (
            "has pods that violate the namespace's Pod Security level",
            "mend the security context in the pod template, or the namespace's label",
        ),
        "Invalid" => (
            "has something refused as not valid",
            "correct the field that the message names, in spec.parameters or in the template",
        ),
        "FailedCreate" => ("cannot create its pods", "the message is the API server's: do as it says"),
        "OwnerKindUnknown" => (
            "waits until the API server knows its kind, whose definition is new",
            "wait; it takes at most 30 s",
        ),
        "NamespaceTerminating" => (
            "cannot get anything new, because the namespace is being deleted",
            "nothing, or make it again in another namespace",
        ),
        "AlreadyExists" | "Conflict" | "NotFound" => {
            ("met a change of somebody else's", "wait; it is tried again by itself")
        }
        _ => return None,
    })
}

/// What is said while an object is held for its backup.
fn backup(reason: &str) -> Option<Description> {
    Some(match reason {
        "HeldForBackup"
        | "BackupRunning"
        | "BackupBeingDeleted"
        | "BackupOverdue"
        | "BackupFailed"
        | "FormerBackupRunning" => (
            "is held until it is backed up",
            "wait for the backup, mend it if it fails, or let the object go without one: kubectl catena{namespace} release {object} --reason WHY",
        ),
        "BackupHasOwner"
        | "BackupKindNotServed"
        | "BackupInOtherNamespace"
        | "BackupNameNotUnique"
        | "BackupNameTaken"
        | "BackupVersionNotServed"
        | "BackupWithoutNamespace"
        | "BackupsExhausted" => (
            "is held because its backup cannot be made",
            "mend the backup's template or settings as the message says, or kubectl catena{namespace} release {object} --reason WHY",
        ),
        "NoEntry" => (
            "is being deleted and is held by backup-controller, whose values have no entry for this kind any more: it waits for ever",
            "put the entry back into the values of backup-controller (with protect: false, if it is to protect no others of the kind), and take it out when nothing has its finalizer any more",
        ),
        "HeldByFinalizer" => (
            "is held by a finalizer",
            "see whether the holder runs and what it says; taking a finalizer off by hand skips what it is for",
        ),
        "WaitsForDependents" => ("is deleted after what it owns", "wait, or see what holds those"),
        "ShuttingDown" => {
            ("is being shut down", "wait; if its node is gone for good, delete the Node object")
        }
        _ => return None,
    })
}

/// The course of rollouts and commands.
fn course(reason: &str) -> Option<Description> {
    Some(match reason {
        "ControllerNotRunning" => (
            "is not looked at, because its controller does not run",
            "see its Deployment and pods: kubectl -n catena-system get deployments,pods",
        ),
        "ProgressDeadlineExceeded" => (
            "has not moved for spec.progressDeadlineSeconds",
            "see what blocks; it goes on by itself when that is mended",
        ),
        "Paused" => ("is paused", "set spec.paused to false"),
        "Progressing" | "Updating" | "Replacing" | "Scaling" => ("is on its way", "wait; nothing blocks"),
        "RolledBack" => (
            "was rolled back, and stays on the older revision",
            "change the spec or the template, and it follows them again; nothing blocks",
        ),
        "Contested" | "ChangedByOthers" => (
            "has a child that somebody else goes on changing",
            "make the change in its spec or template, or stop who makes it: the child's managedFields tell who",
        ),
        "RevisionNameTaken" => (
            "finds the name of its next revision taken by somebody else's ControllerRevision",
            "delete that one, which the message names",
        ),
        "RevisionGone" => (
            "was rolled back to a revision that is gone",
            "change the spec or the template, or roll back to a revision that kubectl catena{namespace} history shows",
        ),
        "UnderWay" | "Running" => ("is under way", "wait; nothing blocks"),
        "ExpiryUnknown" => (
            "has a time to live that cannot be read",
            "correct the reaper's settings for this kind as the message says",
        ),
        _ => return None,
    })
}

/// How commands go and end.
fn command(reason: &str) -> Option<Description> {
    Some(match reason {
        "Queued" => (
            "waits for an older command",
            "wait, or cancel the older command by deleting it before it begins",
        ),
        "CommandFailed" => ("has failed", "the message says why; create it again when that is mended"),
        "DeadlineExceeded" => {
            ("was not done in its activeDeadlineSeconds", "see why its target does not go on")
        }
        "Superseded" => {
            ("was overtaken by another change", "see whether it is still wanted, and issue it again")
        }
        "RevisionNotFound" => (
            "asks for a revision that there is not",
            "choose one that kubectl catena{namespace} history shows",
        ),
        "ChildHasNoRestart" => (
            "asks for a restart, which the child's kind does not know",
            "map restartedAt of the replica contract in the values of the chart, if the kind has such a field",
        ),
        "NoChild" => {
            ("waits until its target has a child", "see why its target has none: kubectl catena why")
        }
        "Malformed" => ("cannot be read", "correct what the message names, and issue it again"),
        "NotTheTarget" => ("is owned by another object than it names", "delete it, and issue it again"),
        _ => return None,
    })
}

/// How commands find what they are for.
fn binding(reason: &str) -> Option<Description> {
    Some(match reason {
        "NotBound" => (
            "is not bound to its target yet, which command-binder does",
            "see the Bound condition and the Events: kubectl{namespace} describe {object}",
        ),
        "BinderSilent" => (
            "is not bound to its target, and command-binder, which runs, has said nothing about it",
            "see whether the values of command-binder have an entry for this kind: kinds in your values takes the place of the chart's whole list",
        ),
        "TargetNotFound" => (
            "names a target that does not exist",
            "create the target, or delete the command and name another one",
        ),
        "InvalidReference" => {
            ("names its target in a way that cannot be read", "correct the field that the message names")
        }
        "CrossNamespace" => (
            "names a target that cannot own it, because it is in another namespace",
            "create the command where its target is",
        ),
        "TargetReplaced" => (
            "is for another object than the one of that name that is there",
            "issue a new one for that; a label that somebody else wrote can be removed instead, as the message says",
        ),
        "TargetTerminating" => ("is for an object that is being deleted", "delete the command, too"),
        "OwnershipRefused" => (
            "may not be owned by its target",
            "bind commands of this kind with mode Label, or change its settings as the message says",
        ),
        "KindNotServed" => (
            "is for a kind that the cluster does not have",
            "install that kind's definition, or correct the binder's settings",
        ),
        "FilterFailed" => (
            "may be a command, which cannot be told",
            "set the field that the message names, or guard it in the filter of command-binder's settings",
        ),
        "ScopeMismatch" => (
            "is for a kind of which command-binder's settings say the wrong scope",
            "correct scope in target.kinds of its settings",
        ),
        "WaitingForOthers" => {
            ("is not bound before somebody else has done their part", "wait; the message says for what")
        }
        "WouldBind" => (
            "is only observed by command-binder",
            "set mode: Owner for commands of this kind to have it bound",
        ),
        _ => return None,
    })
}
