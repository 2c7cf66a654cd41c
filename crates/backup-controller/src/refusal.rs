//! Which failed writes the server has refused.

use operator_watch::{ApiError, Cause};

/// Whether the server refused a write on its merits, and not because it was busy or unreachable.
#[must_use]
pub fn is_refusal(error: &ApiError) -> bool {
    match error.cause {
        Cause::Forbidden
        | Cause::QuotaExceeded
        | Cause::QuotaRefused
        | Cause::DefinitionTerminating
        | Cause::NamespaceTerminating
        | Cause::Invalid
        | Cause::UnknownField => true,
        Cause::Failed => (400..500).contains(&error.code),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use operator_watch::Verb;

    use super::*;

    #[test]
    fn only_what_the_server_refuses_for_a_reason_of_its_own_is_a_try() {
        let of = |cause| ApiError::new(Verb::Write, ("Job", "dump"), cause, "");
        let failed = |code| {
            let mut error = of(Cause::Failed);
            error.code = code;
            error
        };
        let refused = [
            Cause::Forbidden,
            Cause::QuotaExceeded,
            Cause::Invalid,
            Cause::UnknownField,
            Cause::QuotaRefused,
            Cause::NamespaceTerminating,
            Cause::DefinitionTerminating,
        ];
        for error in refused.map(of).into_iter().chain([failed(413)]) {
            assert!(is_refusal(&error), "{error}");
        }
        let others = [Cause::Busy, Cause::Conflict, Cause::AlreadyExists, Cause::NotFound, Cause::Unanswered];
        for error in others.map(of).into_iter().chain([failed(503)]) {
            assert!(!is_refusal(&error), "{error}");
        }
    }
}
