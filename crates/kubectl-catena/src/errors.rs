//! Errors as a person reads them: what happened, why, what to do.

use anyhow::{Error, anyhow};
use kube::{config::KubeconfigError, core::request};

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its kind.
    pub kind: String,
    /// Its kind's plural.
    pub resource: String,
    /// Its name; empty for all of them.
    pub name: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
}

/// The chain of causes in one line. A layer that only repeats the next one is left out.
pub fn in_one_line(error: &Error) -> String {
    let layers: Vec<String> = error.chain().map(ToString::to_string).collect();
    let says_more = |(index, layer): (usize, &String)| {
        layers.get(index + 1).is_none_or(|next| !layer.contains(next.as_str())).then(|| layer.clone())
    };
    layers.iter().enumerate().filter_map(says_more).collect::<Vec<_>>().join(": ")
}

/// The kubeconfig does not lead to a cluster.
pub fn no_kubeconfig(error: &KubeconfigError, context: Option<&str>, known: &[String]) -> Error {
    let contexts = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    match error {
        KubeconfigError::ReadConfig(source, path) => anyhow!(
            "the kubeconfig {} cannot be read: {source}; set KUBECONFIG or --kubeconfig to the file that you got for \
             your cluster",
            path.display()
        ),
        KubeconfigError::LoadContext(_) if context.is_some() => anyhow!(
            "there is no context {:?} in the kubeconfig; it has: {contexts}",
            context.unwrap_or_default()
        ),
        KubeconfigError::LoadContext(name) => anyhow!(
            "the kubeconfig's current context {name:?} is not in it; choose one with --context or `kubectl config \
             use-context`; it has: {contexts}"
        ),
        KubeconfigError::CurrentContextNotSet => anyhow!(
            "the kubeconfig has no current context; choose one with --context or `kubectl config use-context`; it \
             has: {contexts}"
        ),
        error => anyhow!("the kubeconfig cannot be used: {error}; `kubectl config view` shows it"),
    }
}

/// Why something could not be read, in a few words.
pub fn unread(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => "no permission".to_owned(),
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::BuildRequest(request::Error::Validation(message)) => message.clone(),
        error => error.to_string(),
    }
}

/// The API server does not answer the first question.
pub fn no_answer(server: &str, error: kube::Error) -> Error {
    let server = server.trim_end_matches('/');
    match error {
        kube::Error::Api(status) if status.code == 401 => anyhow!(
            "the API server {server} does not know you ({}): log in again, or choose another --context",
            status.message
        ),
        kube::Error::Api(status) if status.code == 403 => anyhow!(
            "the API server {server} does not let you see which kinds it has ({}): ask its administrator for the \
             ClusterRole system:discovery",
            status.message
        ),
        kube::Error::Api(status) => {
            anyhow!("the API server {server} answers {}: {}", status.code, status.message)
        }
        kube::Error::Auth(error) => anyhow!(
            "the credentials of the kubeconfig cannot be had: {error}; log in again, or choose another --context"
        ),
        error => anyhow!(
            "no API server answers at {server}: {}; is the cluster running, and is this the right context (`kubectl \
             config current-context`)?",
            innermost(&error)
        ),
    }
}

/// An object is not there.
pub fn not_found(kind: &str, name: &str, namespace: Option<&str>, known: &[String]) -> Error {
    let place = namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace:?}"));
    if known.is_empty() {
        let elsewhere = if namespace.is_some() { "; -n NAMESPACE looks in another one" } else { "" };
        return anyhow!("there is no {kind} {name:?}{place}, nor any other{elsewhere}");
    }
    let nearest = known.iter().min_by_key(|known| distance(known, name));
    if let Some(near) = nearest.filter(|known| distance(known, name) <= 2.max(name.len() / 3)) {
        return anyhow!("there is no {kind} {name:?}{place}; did you mean {near:?}?");
    }
    let more = if known.len() > 5 { ", …" } else { "" };
    let some: Vec<&str> = known.iter().take(5).map(String::as_str).collect();
    anyhow!("there is no {kind} {name:?}{place}; there are: {}{more}", some.join(", "))
}

/// The API server did not do what was asked for.
pub fn refused(subject: &Subject, verb: &str, error: kube::Error) -> Error {
    let Subject { kind, resource, name, namespace } = subject;
    let what = if name.is_empty() { resource.clone() } else { format!("{kind} {name:?}") };
    let place = namespace.as_ref().map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    match error {
        kube::Error::Api(status) if status.code == 403 && is_missing_right(&status.message) => anyhow!(
            "you may not {verb} {what}: {}; ask for a role that grants {verb} on {resource} (`kubectl auth can-i \
             {verb} {resource}{place}`)",
            status.message
        ),
        kube::Error::Api(status) => anyhow!("cannot {verb} {what}: {}", status.message),
        error => anyhow!("cannot {verb} {what}: {}", innermost(&error)),
    }
}

/// What a server without a right for it says; admission refuses with 403 too.
pub fn is_missing_right(message: &str) -> bool {
    message.contains("User \"") && message.contains("cannot ")
}

/// The layers above the cause name only our libraries.
fn innermost(error: &kube::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// How many characters lie between two words (Levenshtein).
pub fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.chars().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_there_is_answered_with_those_that_are() {
        let known = ["web".to_owned(), "shop".to_owned()];
        let said = |name: &str, known: &[String]| {
            not_found("BasicDeployment", name, Some("team"), known).to_string()
        };
        assert!(said("wbe", &known).ends_with("did you mean \"web\"?"));
        assert!(said("database", &known).ends_with("there are: web, shop"));
        assert!(said("web", &[]).ends_with("-n NAMESPACE looks in another one"));
    }

    #[test]
    fn a_context_that_is_not_there_is_answered_with_those_that_are() {
        let error = KubeconfigError::LoadContext("prod".into());
        let known = ["dev".to_owned(), "test".to_owned()];
        let said = no_kubeconfig(&error, Some("prod"), &known).to_string();
        assert_eq!(said, "there is no context \"prod\" in the kubeconfig; it has: dev, test");
    }

    #[test]
    fn distances_between_words() {
        assert_eq!((distance("web", "web"), distance("wbe", "web"), distance("", "web")), (0, 2, 3));
    }
}
