//! Reasons that concern commands and their binding.

use super::Description;

/// The course of commands alone.
pub fn command(reason: &str) -> Option<Description> {
    Some(match reason {
        "Queued" => (
            "waits for an older command",
            "wait, or cancel the older command by deleting it before it starts",
        ),
        "CommandFailed" => ("failed", "fix the cause that the message gives, and issue the command again"),
        "DeadlineExceeded" => (
            "did not finish within its activeDeadlineSeconds",
            "find out why its target makes no progress: kubectl catena why",
        ),
        "Superseded" => (
            "was superseded by another change",
            "check whether the command is still wanted, and issue it again",
        ),
        "RevisionNotFound" => (
            "asks for a revision that does not exist",
            "choose a revision that kubectl catena{namespace} history lists",
        ),
        "ChildHasNoRestart" => (
            "asks for a restart, which the kind of the child does not support",
            "map restartedAt of the replica contract in the values of the chart, if the kind has such a field",
        ),
        "TokenInFuture" => (
            "asks for a restart, while the restart token of its target is a time that has not come yet",
            "remove spec.restartedAt of its target, and issue the command again",
        ),
        "NoChild" => {
            ("waits until its target has a child", "find out why its target has none: kubectl catena why")
        }
        "Malformed" => {
            ("cannot be read", "correct the field that the message names, and issue the command again")
        }
        "NotTheTarget" => ("is owned by another object than it names", "delete it, and issue it again"),
        _ => return None,
    })
}

/// The binding of commands to their targets.
pub fn binding(reason: &str) -> Option<Description> {
    Some(match reason {
        "NotBound" => (
            "is not yet bound to its target by command-binder",
            "see its condition Bound and its Events: kubectl{namespace} describe {object}",
        ),
        "BinderSilent" => (
            "is not bound to its target, and command-binder is running but has not reported on it",
            "check that the values of command-binder have an entry for this kind (kinds in your values replaces the whole list of the chart) or its definition describes it, and that command-binder may watch it: Events name a definition with a mistake and a kind that may not be watched, kubectl events --all-namespaces --types=Warning",
        ),
        "TargetNotFound" => (
            "names a target that does not exist",
            "create the target, or delete the command and issue one for another target",
        ),
        "InvalidReference" => {
            ("has a reference to its target that cannot be read", "correct the field that the message names")
        }
        "CrossNamespace" => (
            "names a target in another namespace, which cannot own it",
            "create the command in the namespace of its target",
        ),
        "TargetReplaced" => (
            "was bound to another object than its target",
            "issue a new command for the current object; the record that a copy brought along, or a label that somebody else wrote, can be removed instead, as the message says",
        ),
        "TargetTerminating" => ("is for an object that is being deleted", "delete the command as well"),
        "OwnershipRefused" => (
            "may not be owned by its target",
            "bind commands of this kind with mode: Label, or change its settings as the message says",
        ),
        "KindNotServed" => (
            "is for a kind that the cluster does not serve",
            "install the CRD of that kind, or correct the settings of command-binder",
        ),
        "FilterFailed" => (
            "may be a command, but the filter of its kind failed",
            "set the field that the message names, or guard it in the filter in the settings of command-binder",
        ),
        "ScopeMismatch" => (
            "is for a kind whose scope is wrong in the settings of command-binder",
            "correct scope in target.kinds of these settings",
        ),
        "WaitingForOthers" => (
            "is not bound until another controller has done its part",
            "wait; the message names the condition",
        ),
        "WouldBind" => (
            "is only observed by command-binder",
            "set the mode that the message names for commands of this kind to bind it",
        ),
        _ => return None,
    })
}
