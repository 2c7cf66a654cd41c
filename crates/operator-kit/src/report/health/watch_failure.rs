/// Why a watch fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchFailure {
    /// The cluster does not know its kind, so all its objects are gone.
    NotServed(String),
    /// No answer came in time.
    Silent(String),
    /// Anything else; it may pass before the watch misses a change.
    Other(String),
}

impl WatchFailure {
    /// The state and the remedy.
    pub fn text(&self) -> &str {
        let (Self::NotServed(text) | Self::Silent(text) | Self::Other(text)) = self;
        text
    }
}
