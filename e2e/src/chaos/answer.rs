//! Answers that a fault generates or spoils.

use std::{convert::Infallible, io, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// Number of bytes after which a list stalls.
const FIRST: usize = 1024;
/// Bytes per second of a slow connection.
const PER_SECOND: usize = 1000;

/// An answer with its whole body.
pub(super) type Answer = Response<Bytes>;

/// An error in the words of the API server.
pub(super) fn error(code: u16) -> Answer {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": reason, "code": code,
        "message": "the chaos proxy answered instead of the API server", "details": {"retryAfterSeconds": 1},
    });
    let mut answer = json_answer(Bytes::from(status.to_string()));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if code == 429 {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

/// An answer that is not JSON.
pub(super) fn garbled() -> Answer {
    json_answer(Bytes::from_static(b"{\"metadata\":{\"name\":\"we"))
}

fn json_answer(body: Bytes) -> Answer {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// The answer as it is, at 1 kB/s until then.
pub(super) fn whole(answer: Answer, slow_until: Instant) -> Response<Body> {
    answer.map(|bytes| {
        if Instant::now() >= slow_until {
            return Body::from(bytes);
        }
        let parts = stream::unfold(bytes, move |mut left| async move {
            if left.is_empty() {
                return None;
            }
            let is_slow = Instant::now() < slow_until;
            if is_slow {
                sleep(Duration::from_secs(1)).await;
            }
            let now =
                if is_slow { left.split_to(PER_SECOND.min(left.len())) } else { std::mem::take(&mut left) };
            Some((Ok::<_, Infallible>(now), left))
        });
        Body::from_stream(parts)
    })
}

/// Its first KiB, and then nothing more.
pub(super) fn stalled(answer: Answer) -> Response<Body> {
    answer.map(|mut bytes| {
        bytes.truncate(FIRST.min(bytes.len().saturating_sub(1)));
        Body::from_stream(stream::iter([Ok::<_, Infallible>(bytes)]).chain(stream::pending()))
    })
}

/// Its first half, and then the connection breaks.
pub(super) fn cut(answer: Answer) -> Response<Body> {
    answer.map(|mut bytes| {
        bytes.truncate(bytes.len() / 2);
        let broken = io::Error::from(io::ErrorKind::ConnectionReset);
        Body::from_stream(stream::iter([Ok(bytes), Err(broken)]))
    })
}
