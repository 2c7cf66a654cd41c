//! A container's probes: their requests, their timing, and the meaning of their results.

use std::{net::Ipv4Addr, time::Duration};

use k8s_openapi::{
    api::core::v1::{Container, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Interval until the first success, shorter than requested, because a local process starts within milliseconds.
const EAGER: Duration = Duration::from_millis(200);
/// Bytes of an answer that are enough for a status line.
const ENOUGH: u64 = 1024;

/// Makes the container's probes while it runs at this address and reports whether it is ready; returns, with the reason, when
/// it must be restarted.
pub async fn watch_health(container: &Container, address: Ipv4Addr, report: impl Fn(bool)) -> String {
    let readiness = async {
        match &container.readiness_probe {
            Some(probe) => follow_readiness(container, probe, address, report).await,
            None => report(true),
        }
        std::future::pending().await
    };
    let liveness = async {
        match &container.liveness_probe {
            Some(probe) => until_dead(container, probe, address).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        reason = readiness => reason,
        reason = liveness => reason,
    }
}

async fn follow_readiness(container: &Container, probe: &Probe, address: Ipv4Addr, report: impl Fn(bool)) {
    sleep(seconds(probe.initial_delay_seconds, 0)).await;
    let mut tally = Tally::default();
    let mut was_ready = false;
    loop {
        let is_success = attempt(container, probe, address).await.is_ok();
        if let Some(ready) = tally.count(probe, is_success) {
            was_ready |= ready;
            report(ready);
        }
        sleep(if was_ready { period(probe) } else { period(probe).min(EAGER) }).await;
    }
}

async fn until_dead(container: &Container, probe: &Probe, address: Ipv4Addr) -> String {
    sleep(seconds(probe.initial_delay_seconds, 0)).await;
    let mut tally = Tally::default();
    loop {
        let result = attempt(container, probe, address).await;
        let verdict = tally.count(probe, result.is_ok());
        if let (Err(reason), Some(false)) = (result, verdict) {
            return format!("liveness probe failed: {reason}");
        }
        sleep(period(probe)).await;
    }
}

/// A probe's time in seconds, or the default.
fn seconds(value: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
}

fn period(probe: &Probe) -> Duration {
    seconds(probe.period_seconds, 10).max(Duration::from_secs(1))
}

/// Counts results against the thresholds.
#[derive(Debug, Default)]
struct Tally {
    last: Option<bool>,
    /// The number of equal results up to the last one.
    equal: i32,
    verdict: Option<bool>,
}

impl Tally {
    /// Counts one result; returns the new verdict when it changes.
    fn count(&mut self, probe: &Probe, success: bool) -> Option<bool> {
        self.equal = if self.last.replace(success) == Some(success) { self.equal + 1 } else { 1 };
        let (threshold, default) =
            if success { (probe.success_threshold, 1) } else { (probe.failure_threshold, 3) };
        let needed = threshold.filter(|threshold| *threshold > 0).unwrap_or(default);
        (self.equal >= needed && self.verdict.replace(success) != Some(success)).then_some(success)
    }
}

/// Makes a probe once; the error is the reason of the failure.
async fn attempt(container: &Container, probe: &Probe, address: Ipv4Addr) -> Result<(), String> {
    let action = probe.http_get.as_ref().ok_or("the probe names no action")?;
    let port = port(container, &action.port)?;
    let longest = seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1));
    let request = http_get(address, port, action.path.as_deref().unwrap_or("/"));
    let late = |_| format!("no answer within {} s", longest.as_secs());
    timeout(longest, request).await.map_err(late)?
}

fn port(container: &Container, port: &IntOrString) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|port| port.name.as_ref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())
        }
    };
    number
        .and_then(|number| u16::try_from(number).ok())
        .ok_or_else(|| format!("the container has no port {port:?}"))
}

async fn http_get(address: Ipv4Addr, port: u16, path: &str) -> Result<(), String> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}:{port}\r\nUser-Agent: kube-probe/host-runner\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n"
    );
    let answer = async {
        let mut stream = TcpStream::connect((address, port)).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(ENOUGH).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = answer.await.map_err(|error| format!("{address}:{port}{path}: {error}"))?;
    match status_code(&answer) {
        Some(200..=399) => Ok(()),
        Some(code) => Err(format!("{address}:{port}{path} answered {code}")),
        None => Err(format!("{address}:{port}{path} did not answer in HTTP")),
    }
}

fn status_code(answer: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(answer);
    let mut words = text.lines().next()?.split(' ');
    words.next()?.starts_with("HTTP/1.").then(|| words.next()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(probe: &Probe, results: &[bool]) -> Vec<Option<bool>> {
        let mut tally = Tally::default();
        results.iter().map(|result| tally.count(probe, *result)).collect()
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

    #[test]
    fn the_status_code_is_read_from_the_first_line() {
        assert_eq!(status_code(b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n"), Some(200));
        assert_eq!(status_code(b"HTTP/1.0 503 Service Unavailable\r\n"), Some(503));
        assert_eq!(status_code(b"SSH-2.0-x\r\n"), None);
        assert_eq!(status_code(b""), None);
    }
}
