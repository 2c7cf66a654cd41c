//! A mocked API server with a Date header, because backups are judged by its clock.

use kube::Client;
pub use operator_kit::testing::{Answer, Log, Sent};
use serde_json::Value;

/// The time of the server's answers.
pub const DATE: &str = "Mon, 01 Jun 2026 12:00:00 GMT";

/// A client of a server that answers each path with a code and a body.
pub fn server(date: Option<&'static str>, answer: impl Fn(&str) -> (u16, Value) + Send + 'static) -> Client {
    let by_path = move |sent: &Sent| {
        let (code, body) = answer(sent.uri.split('?').next().unwrap_or_default());
        Answer::Json(code, body)
    };
    answering(date, by_path).0
}

/// A client of a server that answers each request by `answer`.
pub fn answering(
    date: Option<&'static str>,
    answer: impl FnMut(&Sent) -> Answer + Send + 'static,
) -> (Client, Log) {
    match date {
        Some(date) => operator_kit::testing::answering_at(date, answer),
        None => operator_kit::testing::answering(answer),
    }
}
