//! Errors for a person: the event, its cause, and the remedy.

use std::fmt;

use anyhow::{Error, anyhow};
use catena_terminal::{first_of, sanitized};
use kube::{config::KubeconfigError, core::request};
use serde::Serialize;
use strsim::levenshtein;

/// Something that could not be read or tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The part.
    pub what: String,
    /// The reason.
    pub why: String,
}

impl Gap {
    /// A part with a reason.
    #[must_use]
    pub fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }

    /// A part that a failed request was for.
    #[must_use]
    pub fn of(what: impl Into<String>, error: &kube::Error) -> Self {
        Self::new(what, read_failure(error))
    }

    /// The answer to a request for a part; nothing, and one more gap, if the request failed.
    pub fn or_default<T: Default>(answer: kube::Result<T>, what: &str, gaps: &mut Vec<Self>) -> T {
        answer.unwrap_or_else(|error| {
            gaps.push(Self::of(what, &error));
            T::default()
        })
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sanitized(&format!("{} ({})", self.what, self.why)))
    }
}

/// The chain of causes in one line. A layer that only repeats the next one is left out.
#[must_use]
pub fn in_one_line(error: &Error) -> String {
    let layers: Vec<String> = error.chain().map(ToString::to_string).collect();
    let says_more = |(index, layer): (usize, &String)| {
        layers.get(index + 1).is_none_or(|next| !layer.contains(next.as_str())).then(|| layer.clone())
    };
    layers.iter().enumerate().filter_map(says_more).collect::<Vec<_>>().join(": ")
}

/// The kubeconfig is not usable.
pub(crate) fn no_kubeconfig(error: &KubeconfigError, context: Option<&str>, known: &[String]) -> Error {
    let contexts = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    match error {
        KubeconfigError::ReadConfig(source, path) => anyhow!(
            "the kubeconfig {} cannot be read: {source}; set KUBECONFIG or --kubeconfig to the file for your \
             cluster",
            path.display()
        ),
        KubeconfigError::LoadContext(_) if context.is_some() => {
            anyhow!("the kubeconfig has no context {:?}; it has: {contexts}", context.unwrap_or_default())
        }
        KubeconfigError::LoadContext(name) => anyhow!(
            "the kubeconfig lacks its current context {name:?}; choose one with --context or `kubectl config \
             use-context`; it has: {contexts}"
        ),
        KubeconfigError::CurrentContextNotSet => anyhow!(
            "the kubeconfig has no current context; choose one with --context or `kubectl config use-context`; it \
             has: {contexts}"
        ),
        KubeconfigError::ParseNoProxy(error) => {
            anyhow!("the environment variable NO_PROXY cannot be used: {error}; correct it")
        }
        error => anyhow!("the kubeconfig cannot be used: {error}; `kubectl config view` shows it"),
    }
}

/// The reason of a failed request, in a few words.
#[must_use]
pub fn read_failure(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 && is_missing_right(&status.message) => {
            "no permission".to_owned()
        }
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::BuildRequest(request::Error::Validation(message)) => message.clone(),
        error => error.to_string(),
    }
}

/// The API server does not answer the first request.
pub(crate) fn no_answer(server: &str, error: kube::Error) -> Error {
    let server = server.trim_end_matches('/');
    match error {
        kube::Error::Api(status) if status.code == 401 => anyhow!(
            "the API server {server} does not accept your credentials ({}): log in again, or choose another --context",
            status.message
        ),
        kube::Error::Api(status) if status.code == 403 => anyhow!(
            "the API server {server} does not let you list its kinds ({}): ask its administrator for the ClusterRole \
             system:discovery",
            status.message
        ),
        kube::Error::Api(status) => {
            anyhow!("the API server {server} answers {}: {}", status.code, status.message)
        }
        kube::Error::Auth(error) => anyhow!(
            "the credentials of the kubeconfig cannot be obtained: {error}; log in again, or choose another --context"
        ),
        // The layers above the cause name only our libraries.
        error => anyhow!(
            "no API server answers at {server}: {}; is the cluster running, and is this the right context (`kubectl \
             config current-context`)?",
            Error::from(error).root_cause()
        ),
    }
}

/// An object does not exist; with the words for it.
#[derive(Debug)]
pub struct NotFound(String);

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An object does not exist. `known` are the names of others, if they may be listed.
pub(crate) fn not_found(kind: &str, name: &str, namespace: Option<&str>, known: Option<&[String]>) -> Error {
    let place = namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace:?}"));
    let others = known.map_or_else(String::new, |_| format!(", nor any other {kind}"));
    let known = known.unwrap_or_default();
    let nearest = known.iter().map(|known| (levenshtein(known, name), known)).min();
    let hint = match nearest {
        None => {
            let elsewhere = namespace.map_or("", |_| "; use -n NAMESPACE for another namespace");
            others + elsewhere
        }
        Some((distance, near)) if distance <= 2.max(name.len() / 3) => format!("; did you mean {near:?}?"),
        Some(_) => format!("; existing ones: {}", first_of(known, 5)),
    };
    Error::msg(NotFound(format!("there is no {kind} {name:?}{place}{hint}")))
}

/// The API server refused a request for an object of a kind and its plural, or for all of them if there is no name.
#[must_use]
pub fn refused(
    (kind, resource): (&str, &str),
    name: &str,
    namespace: Option<&str>,
    verb: &str,
    error: kube::Error,
) -> Error {
    let what = if name.is_empty() { resource.to_owned() } else { format!("{kind} {name:?}") };
    let place = namespace.map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    match error {
        kube::Error::Api(status) if status.code == 403 && is_missing_right(&status.message) => anyhow!(
            "you may not {verb} {what}: {}; ask for a role that grants {verb} on {resource} (`kubectl auth can-i \
             {verb} {resource}{place}`)",
            status.message
        ),
        kube::Error::Api(_) | kube::Error::BuildRequest(request::Error::Validation(_)) => {
            anyhow!("cannot {verb} {what}: {}", read_failure(&error))
        }
        error => {
            let is_silent = matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_));
            let silent = if is_silent { "the API server does not answer: " } else { "" };
            anyhow!("{silent}cannot {verb} {what}: {}", Error::from(error).root_cause())
        }
    }
}

/// Whether a refusal is for a missing right: admission also refuses with 403.
#[must_use]
pub fn is_missing_right(message: &str) -> bool {
    let refused = message.split_once("User \"").and_then(|(_, user)| user.split_once("\" cannot "));
    refused.is_some_and(|(_, verb)| verb.contains(" resource \"") || verb.contains(" path \""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_existing_ones() {
        let known = ["web".to_owned(), "shop".to_owned()];
        let said = |name: &str, known: &[String]| {
            not_found("BasicDeployment", name, Some("team"), Some(known)).to_string()
        };
        assert!(said("wbe", &known).ends_with("did you mean \"web\"?"));
        assert!(said("database", &known).ends_with("existing ones: web, shop"));
        assert!(
            said("web", &[])
                .ends_with(", nor any other BasicDeployment; use -n NAMESPACE for another namespace")
        );
    }

    #[test]
    fn an_unknown_context_is_answered_with_the_existing_ones() {
        let error = KubeconfigError::LoadContext("prod".into());
        let known = ["dev".to_owned(), "test".to_owned()];
        let said = no_kubeconfig(&error, Some("prod"), &known).to_string();
        assert_eq!(said, "the kubeconfig has no context \"prod\"; it has: dev, test");
    }

    #[test]
    fn a_server_that_does_not_answer_is_told_so() {
        let error = kube::Error::Service("connection refused".into());
        let said = refused(("Pod", "pods"), "web", None, "get", error).to_string();
        assert_eq!(said, "the API server does not answer: cannot get Pod \"web\": connection refused");
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_an_answer() {
        let broken = serde_json::from_str::<bool>("1").unwrap_err();
        let said = refused(("Pod", "pods"), "web", None, "get", kube::Error::SerdeError(broken)).to_string();
        assert!(said.starts_with("cannot get Pod \"web\": invalid type"), "{said}");
    }

    #[test]
    fn only_a_missing_right_is_called_no_permission() {
        let said = |code: u16, message: &str| {
            let status =
                kube::core::Status { code, message: message.into(), ..kube::core::Status::default() };
            read_failure(&kube::Error::Api(status.into()))
        };
        let right = "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" at the cluster scope";
        assert_eq!(said(403, right), "no permission");
        for other in [
            "pods \"web\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1",
            "configmaps \"a\" is forbidden: unable to create new content in namespace shop because it is being terminated",
            "admission webhook \"policy.example.com\" denied the request: no team label",
        ] {
            assert_eq!(said(403, other), other);
        }
    }
}
