//! The progress of a command, from its status. Pure.

use kube::core::DynamicObject;

use crate::object::{conditions, text};

/// The progress of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not finished.
    Waiting {
        /// One word.
        reason: String,
        /// Done, and all.
        progress: Option<(u64, u64)>,
    },
    /// It succeeded, with this message.
    Succeeded(String),
    /// It failed, for this reason.
    Failed(String),
}

/// The progress of a command, from our own conditions or those of Jobs and of other operators.
pub fn outcome(command: &DynamicObject) -> Outcome {
    let all = conditions(command);
    let find = |types: &[&str], status: &str| {
        all.iter().find(|condition| types.contains(&condition.type_.as_str()) && condition.status == status)
    };
    if let Some(done) = find(&["Succeeded", "Complete", "Completed"], "True") {
        return Outcome::Succeeded(joined(&done.reason, &done.message));
    }
    if let Some(failed) = find(&["Succeeded"], "False").or_else(|| find(&["Failed"], "True")) {
        return Outcome::Failed(joined(&failed.reason, &failed.message));
    }
    match text(command, "/status/phase").map(str::to_lowercase).as_deref() {
        Some("succeeded" | "completed" | "complete" | "done") => return Outcome::Succeeded(String::new()),
        Some("failed" | "error") => {
            return Outcome::Failed(text(command, "/status/message").unwrap_or("failed").to_owned());
        }
        _ => {}
    }
    let last = ["Succeeded", "Accepted", "Bound"].iter().find_map(|type_| {
        all.iter().find(|condition| condition.type_ == *type_ && condition.reason != "Pending")
    });
    let reason = last.map_or_else(|| "Pending".to_owned(), |condition| condition.reason.clone());
    Outcome::Waiting { reason, progress: text(command, "/status/progress").and_then(progress) }
}

fn joined(reason: &str, message: &str) -> String {
    match (reason, message) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// `2/5`
fn progress(text: &str) -> Option<(u64, u64)> {
    let (done, all) = text.split_once('/')?;
    Some((done.trim().parse().ok()?, all.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(status: &Value) -> Outcome {
        outcome(
            &serde_json::from_value(
                json!({"apiVersion": "a/v1", "kind": "X", "metadata": {}, "status": status}),
            )
            .unwrap(),
        )
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "m"})
    }

    #[test]
    fn a_command_has_finished_only_when_its_status_says_so() {
        assert_eq!(
            of(&json!({"conditions": [condition("Succeeded", "True", "Restarted")]})),
            Outcome::Succeeded("Restarted: m".into())
        );
        assert_eq!(
            of(&json!({"conditions": [condition("Succeeded", "False", "DeadlineExceeded")]})),
            Outcome::Failed("DeadlineExceeded: m".into())
        );
        assert_eq!(of(&json!({"phase": "Failed", "message": "no disk"})), Outcome::Failed("no disk".into()));
        assert_eq!(
            of(&json!({"conditions": [condition("Complete", "True", "")]})),
            Outcome::Succeeded("m".into())
        );
    }

    #[test]
    fn an_unfinished_command_has_its_progress() {
        let waiting = |reason: &str, progress| Outcome::Waiting { reason: reason.into(), progress };
        assert_eq!(of(&json!({})), waiting("Pending", None));
        assert_eq!(
            of(&json!({"conditions": [condition("Bound", "False", "TargetNotFound")]})),
            waiting("TargetNotFound", None)
        );
        let running = json!({"progress": "2/5", "conditions": [condition("Bound", "True", "Bound"), condition("Succeeded", "Unknown", "Restarting")]});
        assert_eq!(of(&running), waiting("Restarting", Some((2, 5))));
    }
}
