//! A script that asks for a format gets a document also for a command line with a mistake.

use std::{
    io,
    process::{Command, Output},
};

use serde_json::Value;

fn catena(arguments: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_kubectl-catena")).args(arguments).output()
}

#[test]
fn a_usage_error_is_a_document_in_the_format_that_was_asked_for() {
    let said = catena(&["why", "web", "--wrong", "-o", "json"]).unwrap();
    let document: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert!(document["error"].as_str().unwrap().contains("'--wrong'"), "{document}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("Usage:"), "{said:?}");
    assert_eq!(said.status.code(), Some(1));
}

#[test]
fn a_usage_error_without_a_format_is_text_alone() {
    let said = catena(&["why", "web", "--wrong"]).unwrap();
    assert_eq!((said.stdout.len(), said.status.code()), (0, Some(1)));
    let said = catena(&["why", "--help", "-o", "json"]).unwrap();
    assert_eq!(said.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("Explain why"), "{said:?}");
}
