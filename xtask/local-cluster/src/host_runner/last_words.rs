//! The end of a container's log as its termination message, where its policy asks for that, as a kubelet does.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use k8s_openapi::api::core::v1::Container;

/// A kubelet's limits.
const MAX_BYTES: u64 = 2048;
const MAX_LINES: usize = 80;

/// The last words of a container that failed.
pub fn of(container: &Container, exit_code: i32, log: &Path) -> Option<String> {
    let is_asked = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if exit_code == 0 || !is_asked {
        return None;
    }
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Some(lines[lines.len().saturating_sub(MAX_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failure_has_last_words_and_only_where_they_are_asked_for() {
        let log = std::env::temp_dir().join(format!("last-words-{}", std::process::id()));
        let lines: Vec<String> = (0..200).map(|line| format!("line {line}")).collect();
        std::fs::write(&log, lines.join("\n")).unwrap();
        let asked = Container {
            termination_message_policy: Some("FallbackToLogsOnError".into()),
            ..Container::default()
        };
        let words = of(&asked, 1, &log).unwrap();
        assert!(words.ends_with("line 198\nline 199") && words.lines().count() == 80, "{words}");
        assert_eq!(of(&asked, 0, &log), None);
        assert_eq!(of(&Container::default(), 1, &log), None);
        std::fs::remove_file(log).unwrap();
    }
}
