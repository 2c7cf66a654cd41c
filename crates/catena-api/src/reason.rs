//! The reasons that our controllers give for a state that is not the desired one, each one `PascalCase` word.

/// The meaning and the remedy of each reason, as YAML whose first lines describe its form.
pub const ROWS: &str = include_str!("reasons.yaml");

/// Constants, and the list of them.
macro_rules! reasons {
    ($($name:ident = $reason:literal),+ $(,)?) => {
        $(
            #[doc = concat!("`", $reason, "`")]
            pub const $name: &str = $reason;
        )+
        /// All of them.
        pub const ALL: &[&str] = &[$($name),+];
    };
}

reasons! {
    BACKUP_BEING_DELETED = "BackupBeingDeleted",
    BACKUP_FAILED = "BackupFailed",
    BACKUP_HAS_OWNER = "BackupHasOwner",
    BACKUP_IN_OTHER_NAMESPACE = "BackupInOtherNamespace",
    BACKUP_KIND_NOT_SERVED = "BackupKindNotServed",
    BACKUP_NAME_NOT_UNIQUE = "BackupNameNotUnique",
    BACKUP_NAME_TAKEN = "BackupNameTaken",
    BACKUP_OVERDUE = "BackupOverdue",
    BACKUP_RUNNING = "BackupRunning",
    BACKUP_TOO_LARGE = "BackupTooLarge",
    BACKUP_UNCLEAR = "BackupUnclear",
    BACKUP_VANISHED = "BackupVanished",
    BACKUP_WITHOUT_NAMESPACE = "BackupWithoutNamespace",
    BACKUPS_EXHAUSTED = "BackupsExhausted",
    CHANGED_WHILE_PAUSED = "ChangedWhilePaused",
    CHILD_HAS_NO_RESTART = "ChildHasNoRestart",
    CHILD_NOT_OWNED = "ChildNotOwned",
    CHILD_PAUSED = "ChildPaused",
    CHILDREN_NOT_OBSERVED = "ChildrenNotObserved",
    CONTRACT_BROKEN = "ContractBroken",
    COMMANDS_NOT_OBSERVED = "CommandsNotObserved",
    CROSS_NAMESPACE = "CrossNamespace",
    DEADLINE_EXCEEDED = "DeadlineExceeded",
    DELETE_REFUSED = "DeleteRefused",
    EXCHANGING = "Exchanging",
    EXPIRY_UNKNOWN = "ExpiryUnknown",
    FILTER_FAILED = "FilterFailed",
    FORMER_CHILD_LEAVING = "FormerChildLeaving",
    INVALID_BINDING = "InvalidBinding",
    INVALID_REFERENCE = "InvalidReference",
    KIND_NOT_LISTED = "KindNotListed",
    KIND_NOT_NAMESPACED = "KindNotNamespaced",
    KIND_NOT_SERVED = "KindNotServed",
    LAST_SERVED_UNUSABLE = "LastServedUnusable",
    MALFORMED = "Malformed",
    NAMESPACE_MISSING = "NamespaceMissing",
    NAMESPACE_TERMINATING = "NamespaceTerminating",
    NO_CHILD = "NoChild",
    NO_ENTRY = "NoEntry",
    NOT_BOUND = "NotBound",
    NOT_REPORTED = "NotReported",
    NOT_THE_TARGET = "NotTheTarget",
    OWNERSHIP_REFUSED = "OwnershipRefused",
    PAUSED = "Paused",
    POD_NAME_TAKEN = "PodNameTaken",
    PODS_NOT_OBSERVED = "PodsNotObserved",
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded",
    PROGRESSING = "Progressing",
    QUEUED = "Queued",
    RECURSION = "Recursion",
    REPLACING = "Replacing",
    REVISION_GONE = "RevisionGone",
    REVISION_NAME_TAKEN = "RevisionNameTaken",
    REVISION_NOT_FOUND = "RevisionNotFound",
    RULE_FAILED = "RuleFailed",
    RUNNING = "Running",
    SCALING = "Scaling",
    SCOPE_MISMATCH = "ScopeMismatch",
    SUPERSEDED = "Superseded",
    TARGET_NOT_FOUND = "TargetNotFound",
    TARGET_REPLACED = "TargetReplaced",
    TARGET_TERMINATING = "TargetTerminating",
    TEMPLATE_CHANGED = "TemplateChanged",
    TEMPLATE_FAILED = "TemplateFailed",
    TOKEN_IN_FUTURE = "TokenInFuture",
    UPDATING = "Updating",
    WAITING_FOR_OTHERS = "WaitingForOthers",
    WOULD_BIND = "WouldBind",
}
