use std::time::Duration;

use crate::report::health::WatchFailure;

/// An interruption of a list or a watch.
#[derive(Debug)]
pub(super) enum Interruption {
    /// The server's answer, or the reason why there is none.
    Refused(kube::Error),
    /// No answer came for this long.
    Silent(Duration),
    /// A list has no resourceVersion.
    Unversioned,
    /// A watch ended at once, and showed nothing.
    Brief,
}

impl From<kube::Error> for Interruption {
    fn from(error: kube::Error) -> Self {
        Self::Refused(error)
    }
}

impl Interruption {
    /// Whether the version is too old, or belongs to a former definition of the kind, so that a new list is needed.
    pub fn is_expired(&self) -> bool {
        matches!(self, Self::Refused(kube::Error::Api(status)) if status.code == 410)
    }

    /// Whether a line was cut off with the connection.
    pub fn is_cut_off(&self) -> bool {
        matches!(self, Self::Refused(kube::Error::SerdeError(error)) if error.is_eof())
    }

    pub fn explain(self, kind: &str) -> WatchFailure {
        let status = match self {
            Self::Refused(kube::Error::Api(status)) => status,
            Self::Refused(error) => {
                return WatchFailure::Other(format!("{kind} cannot be watched: {error}; retrying"));
            }
            Self::Silent(limit) => {
                let seconds = limit.as_secs();
                return WatchFailure::Silent(format!(
                    "{kind} cannot be watched: the API server did not answer within {seconds} s; retrying"
                ));
            }
            Self::Unversioned => {
                return WatchFailure::Other(format!(
                    "{kind} cannot be watched: its list has no resourceVersion; retrying"
                ));
            }
            Self::Brief => {
                return WatchFailure::Other(format!(
                    "{kind} cannot be watched: the watch ends as soon as it has started; retrying"
                ));
            }
        };
        let message = &status.message;
        match status.code {
            404 => WatchFailure::NotServed(format!(
                "{kind} is not served by the cluster: install its CustomResourceDefinition, or set served: true for a version of it; the watch then starts by itself"
            )),
            403 => WatchFailure::Other(format!(
                "{kind} cannot be watched: {message}; grant get, list and watch on it to the controller's ServiceAccount, or correct its plural"
            )),
            _ => WatchFailure::Other(format!("{kind} cannot be watched: {message}; retrying")),
        }
    }
}
