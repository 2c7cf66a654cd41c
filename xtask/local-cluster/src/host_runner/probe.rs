//! A container's probes: their timing, and the meaning of their results.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};

use super::probe_attempt::{Target, seconds};

/// Interval until the first success, shorter than requested, because a local process starts within milliseconds.
const EAGER: Duration = Duration::from_millis(200);

/// Counts results against the thresholds.
#[derive(Debug)]
pub struct Tally {
    successes_needed: u32,
    failures_needed: u32,
    successes: u32,
    failures: u32,
    verdict: Option<bool>,
}

impl Tally {
    pub fn new(probe: &Probe) -> Self {
        let positive = |value: Option<i32>, default| {
            value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0).unwrap_or(default)
        };
        Self {
            successes_needed: positive(probe.success_threshold, 1),
            failures_needed: positive(probe.failure_threshold, 3),
            successes: 0,
            failures: 0,
            verdict: None,
        }
    }

    /// Counts one result; returns the new verdict when it changes.
    pub fn count(&mut self, success: bool) -> Option<bool> {
        if success {
            self.successes += 1;
            self.failures = 0;
        } else {
            self.failures += 1;
            self.successes = 0;
        }
        let verdict = if success && self.successes >= self.successes_needed {
            Some(true)
        } else if !success && self.failures >= self.failures_needed {
            Some(false)
        } else {
            self.verdict
        };
        let changed = verdict != self.verdict;
        self.verdict = verdict;
        verdict.filter(|_| changed)
    }
}

/// Makes the container's probes while it runs and reports whether it is ready; returns, with the reason, when it must be
/// restarted.
pub async fn watch_health(container: &Container, target: &Target<'_>, report: impl Fn(bool)) -> String {
    if container.readiness_probe.is_none() {
        report(true);
    }
    let readiness = async {
        match &container.readiness_probe {
            Some(probe) => follow_readiness(probe, target, report).await,
            None => std::future::pending().await,
        }
    };
    let liveness = async {
        match &container.liveness_probe {
            Some(probe) => until_dead(probe, target).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = readiness => String::new(),
        reason = liveness => reason,
    }
}

async fn follow_readiness(probe: &Probe, target: &Target<'_>, report: impl Fn(bool)) {
    tokio::time::sleep(initial_delay(probe)).await;
    let mut tally = Tally::new(probe);
    let mut was_ready = false;
    loop {
        if let Some(ready) = tally.count(target.attempt(probe).await.is_ok()) {
            was_ready |= ready;
            report(ready);
        }
        let pause = if was_ready { period(probe) } else { period(probe).min(EAGER) };
        tokio::time::sleep(pause).await;
    }
}

async fn until_dead(probe: &Probe, target: &Target<'_>) -> String {
    tokio::time::sleep(initial_delay(probe)).await;
    let mut tally = Tally::new(probe);
    loop {
        let result = target.attempt(probe).await;
        let verdict = tally.count(result.is_ok());
        if let (Err(reason), Some(false)) = (result, verdict) {
            return format!("liveness probe failed: {reason}");
        }
        tokio::time::sleep(period(probe)).await;
    }
}

fn initial_delay(probe: &Probe) -> Duration {
    seconds(probe.initial_delay_seconds, 0)
}

fn period(probe: &Probe) -> Duration {
    seconds(probe.period_seconds, 10).max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(probe: &Probe, results: &[bool]) -> Vec<Option<bool>> {
        let mut tally = Tally::new(probe);
        results.iter().map(|result| tally.count(*result)).collect()
    }

    #[test]
    fn a_verdict_changes_only_at_its_threshold_and_is_told_once() {
        let probe = Probe { failure_threshold: Some(2), success_threshold: Some(1), ..Probe::default() };
        assert_eq!(
            verdicts(&probe, &[false, true, true, false, true, false, false, false, true]),
            [None, Some(true), None, None, None, None, Some(false), None, Some(true)]
        );
    }

    #[test]
    fn thresholds_have_the_defaults_of_kubernetes() {
        let probe = Probe::default();
        assert_eq!(verdicts(&probe, &[true]), [Some(true)]);
        assert_eq!(verdicts(&probe, &[false, false, false]), [None, None, Some(false)]);
        let twice = Probe { success_threshold: Some(2), ..Probe::default() };
        assert_eq!(verdicts(&twice, &[true, false, true, true]), [None, None, None, Some(true)]);
    }
}
