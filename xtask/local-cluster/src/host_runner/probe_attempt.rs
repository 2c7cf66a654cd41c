//! One attempt of a probe against a local process.

use std::{net::Ipv4Addr, time::Duration};

use k8s_openapi::{
    api::core::v1::{ContainerPort, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Enough for a status line.
const ENOUGH: usize = 1024;

/// The probed process.
pub struct Target<'a> {
    pub address: Ipv4Addr,
    pub ports: &'a [ContainerPort],
}

impl Target<'_> {
    /// Makes the probe once; the error is the reason of the failure.
    pub async fn attempt(&self, probe: &Probe) -> Result<(), String> {
        let timeout = seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1));
        match tokio::time::timeout(timeout, self.ask(probe)).await {
            Ok(result) => result,
            Err(_) => Err(format!("no answer within {} s", timeout.as_secs())),
        }
    }

    async fn ask(&self, probe: &Probe) -> Result<(), String> {
        let action = probe.http_get.as_ref().ok_or("the probe names no action")?;
        http_get(self.address, self.port(&action.port)?, action.path.as_deref().unwrap_or("/")).await
    }

    fn port(&self, port: &IntOrString) -> Result<u16, String> {
        let number = match port {
            IntOrString::Int(number) => Some(*number),
            IntOrString::String(name) => {
                let named = self.ports.iter().find(|port| port.name.as_ref() == Some(name));
                named.map(|port| port.container_port).or_else(|| name.parse().ok())
            }
        };
        number
            .and_then(|number| u16::try_from(number).ok())
            .ok_or_else(|| format!("the container has no port {port:?}"))
    }
}

/// A probe's time in seconds, or the default.
pub fn seconds(value: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
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
        stream.take(ENOUGH as u64).read_to_end(&mut answer).await?;
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

    #[test]
    fn the_status_code_is_read_from_the_first_line() {
        assert_eq!(status_code(b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n"), Some(200));
        assert_eq!(status_code(b"HTTP/1.0 503 Service Unavailable\r\n"), Some(503));
        assert_eq!(status_code(b"SSH-2.0-x\r\n"), None);
        assert_eq!(status_code(b""), None);
    }
}
