//! The pause before an ended container, or component of the control plane, is restarted.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(10);
/// Running time after which the backoff is reset.
const WELL_AFTER: Duration = Duration::from_secs(60);

/// Like a kubelet's, with shorter times: the first restart comes at once, then after 1 s, doubling up to 10 s.
#[derive(Debug, Default)]
pub struct Backoff {
    next: Option<Duration>,
}

impl Backoff {
    /// The pause after a run of this length.
    pub fn after(&mut self, ran: Duration) -> Duration {
        if ran >= WELL_AFTER {
            self.next = None;
        }
        let pause = self.next.unwrap_or_default();
        self.next = Some((pause * 2).clamp(FIRST, LONGEST));
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_seconds_and_start_over_after_a_good_run() {
        let mut backoff = Backoff::default();
        let short = Duration::from_secs(1);
        let pauses: Vec<u64> = (0..7).map(|_| backoff.after(short).as_secs()).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff.after(WELL_AFTER), Duration::ZERO);
        assert_eq!(backoff.after(short), FIRST);
    }
}
