//! The reasons why a request failed, each one `PascalCase` word.

/// Constants, and the list of them.
macro_rules! reasons {
    ($($name:ident = $reason:literal),+ $(,)?) => {
        $(
            pub(crate) const $name: &str = $reason;
        )+
        impl crate::ApiError {
            /// All reasons that a failed request, or an object that cannot be read, may have.
            pub const REASONS: &[&str] = &[$($name),+];
        }
    };
}

reasons! {
    ALREADY_EXISTS = "AlreadyExists",
    CONFLICT = "Conflict",
    DEFINITION_TERMINATING = "DefinitionTerminating",
    FORBIDDEN = "Forbidden",
    INVALID = "Invalid",
    KIND_NOT_SERVED = "KindNotServed",
    LOOK_UP_FAILED = "LookUpFailed",
    NAMESPACE_MISSING = "NamespaceMissing",
    NAMESPACE_TERMINATING = "NamespaceTerminating",
    NOT_FOUND = "NotFound",
    OWNER_KIND_UNKNOWN = "OwnerKindUnknown",
    QUOTA_EXCEEDED = "QuotaExceeded",
    QUOTA_REFUSED = "QuotaRefused",
    SERVER_BUSY = "ServerBusy",
    STATUS_REFUSED = "StatusRefused",
    UNREADABLE = "Unreadable",
    WRITE_FAILED = "WriteFailed",
}
