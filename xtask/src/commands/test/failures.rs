//! What failed tests said, to be told again at the end: much is printed after them.

use std::{
    io::{BufRead, BufReader, Read, Write, pipe, stdout},
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Result, anyhow};
use local_cluster::Interrupt;

/// Number of lines that are told again.
const MOST: usize = 100;
/// Time in which the output ends after the program that wrote it.
const GRACE: Duration = Duration::from_secs(60);

/// Runs tests, whose output is the progress; an error has what the failed ones said.
pub async fn run(mut tests: Command, interrupt: &Interrupt) -> Result<()> {
    let (output, input) = pipe()?;
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(pass_on(output, stdout())));
    let result = interrupt.run(tests.stdout(input)).await;
    result.map_err(|error| {
        let failures = told.recv_timeout(GRACE).unwrap_or_default();
        anyhow!([vec![format!("{error:#}")], failures].concat().join("\n"))
    })
}

/// Passes lines on, and returns those about failures.
fn pass_on(output: impl Read, mut to: impl Write) -> Vec<String> {
    let (mut failures, mut is_about_failures) = (Vec::new(), false);
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        writeln!(to, "{line}").ok();
        is_about_failures = (is_about_failures || line == "failures:") && !line.starts_with("test result:");
        if is_about_failures && failures.len() < MOST {
            failures.push(line);
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nit is red\n\nfailures:\n    b\n\ntest result: FAILED.\nmore\n";

    #[test]
    fn all_is_passed_on_and_what_failed_tests_said_is_kept() {
        let mut all = Vec::new();
        let kept = pass_on(OUTPUT.as_bytes(), &mut all);
        assert_eq!(String::from_utf8(all).unwrap(), OUTPUT);
        assert_eq!(kept.join("\n"), "failures:\n\n---- b stdout ----\nit is red\n\nfailures:\n    b\n");
        let long = format!("failures:\n{}", "a\n".repeat(9 * MOST));
        assert_eq!(pass_on(long.as_bytes(), Vec::new()).len(), MOST);
    }

    #[tokio::test]
    async fn the_error_of_a_run_has_what_failed_tests_said() {
        let interrupt = Interrupt::listen().unwrap();
        let shell = |script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            shell
        };
        run(shell("echo failures:"), &interrupt).await.unwrap();
        let error = run(shell("echo failures:; echo b; exit 3"), &interrupt).await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("\nfailures:\nb"), "{error}");
    }
}
