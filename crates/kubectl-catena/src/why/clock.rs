//! The clock of the API server, by which Leases are judged: the one of this machine may be ahead.

use http::{Request, header::DATE};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use kube::client::Body;

use crate::connection::Cluster;

/// How far the clock of this machine is ahead of the one of the API server, in whole seconds of that; zero if the server does
/// not tell its time.
pub async fn lead(cluster: &Cluster) -> SignedDuration {
    lead_told_by(cluster).await.unwrap_or_default()
}

async fn lead_told_by(cluster: &Cluster) -> Option<SignedDuration> {
    let request = Request::get("/version").body(Body::empty()).ok()?;
    let answer = cluster.client.send(request).await.ok()?;
    lead_over(answer.headers().get(DATE)?.to_str().ok()?, Timestamp::now())
}

fn lead_over(date: &str, now: Timestamp) -> Option<SignedDuration> {
    Some(now.duration_since(rfc2822::parse(date).ok()?.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_of_a_clock_is_read_from_the_date_of_an_answer() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let lead = |date: &str| lead_over(date, now).map(|lead| lead.as_secs());
        assert_eq!(lead("Thu, 01 Jan 2026 00:00:00 GMT"), Some(600));
        assert_eq!(lead("Thu, 01 Jan 2026 00:10:30 GMT"), Some(-30));
        assert_eq!(lead("yesterday"), None);
    }
}
