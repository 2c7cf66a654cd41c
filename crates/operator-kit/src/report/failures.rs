use operator_watch::Failure;

/// The failures of a pass: of its step as a whole, or of single items of its batch, which then back off alone. Whatever
/// converts into a [`Failure`] converts into this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// Each of them.
    pub parts: Vec<Failure>,
    /// The only step that they hold up, if they come from observing, which otherwise holds up everything.
    pub step: Option<&'static str>,
    /// Whether a part of the step succeeded nevertheless.
    pub has_progressed: bool,
}

impl<E: Into<Failure>> From<E> for Failures {
    fn from(error: E) -> Self {
        Self { parts: vec![error.into()], step: None, has_progressed: false }
    }
}
