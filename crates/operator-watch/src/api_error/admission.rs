//! Finds the gatekeeper that refuses a write in the API server's message, because admission has no separate field for
//! it.

/// The text before the name of a policy in a message of admission.
const POLICY: &str = "ValidatingAdmissionPolicy '";
/// The text before the name of a webhook that refuses.
const WEBHOOK: &str = "admission webhook \"";
/// The text before the name of a webhook that does not answer.
const UNANSWERED_WEBHOOK: &str = "failed calling webhook";

/// The reason in a refusal: what follows the refused object, whose name contains no `: `.
pub(super) fn grounds(message: &str) -> &str {
    let refused = message.split_once(" is forbidden: ").filter(|(object, _)| !object.contains(": "));
    refused.map_or(message, |(_, grounds)| grounds)
}

/// The server's own words at the begin of a message: what it quotes comes after them.
pub(super) fn own_words(message: &str) -> &str {
    message.split_once('"').map_or(message, |(words, _)| words)
}

/// Whether a webhook does not answer, which holds up the request like a refusal.
pub(super) fn is_unanswered_webhook(message: &str) -> bool {
    own_words(message).contains(UNANSWERED_WEBHOOK)
}

/// The policy or webhook that refuses; `None` if the API server itself does.
pub(super) fn gatekeeper(message: &str) -> Option<&str> {
    let grounds = grounds(message);
    [(POLICY, '\''), (WEBHOOK, '"')].into_iter().find_map(|(before, quote)| {
        let name = grounds.strip_prefix(before)?;
        grounds.get(..before.len() + name.find(quote)? + quote.len_utf8())
    })
}
