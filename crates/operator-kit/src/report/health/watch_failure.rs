/// Why a watch fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchFailure {
    /// The cluster does not know its kind: what there was of it is gone.
    NotServed(String),
    /// No answer came in time.
    Silent(String),
    /// Anything else, which may pass before anything happens that it would have shown.
    Other(String),
}

impl WatchFailure {
    /// What is so, and what to do.
    pub fn text(&self) -> &str {
        let (Self::NotServed(text) | Self::Silent(text) | Self::Other(text)) = self;
        text
    }
}
