use std::time::Duration;

/// How often a status is rewritten for numbers alone.
const PROGRESS: Duration = Duration::from_secs(20);

/// When a changed status is to be written: `None` is now.
///
/// What others wait for (`urgent`) goes out at once. Mere numbers are gathered, so that a rollout of many
/// replicas costs few writes. `age` is the time since this process last wrote the status.
#[must_use]
pub fn due_in(urgent: bool, age: Option<Duration>) -> Option<Duration> {
    let age = age.filter(|_| !urgent)?;
    PROGRESS.checked_sub(age).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_gathered_and_what_others_wait_for_is_not() {
        let second = Duration::from_secs(1);
        assert_eq!(due_in(true, Some(second)), None);
        assert_eq!(due_in(false, Some(second)), Some(19 * second));
        assert_eq!(due_in(false, Some(PROGRESS)), None);
        assert_eq!(due_in(false, None), None);
    }
}
