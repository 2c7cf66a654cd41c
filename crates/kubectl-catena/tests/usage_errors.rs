//! A command line with a mistake is answered with its usage, also for a script.

use std::{
    io,
    process::{Command, Output},
};

fn catena(arguments: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_kubectl-catena")).args(arguments).output()
}

#[test]
fn a_usage_error_is_text_on_standard_error_alone() {
    for arguments in [&["why", "web", "--wrong"][..], &["why", "web", "--wrong", "-o", "json"]] {
        let said = catena(arguments).unwrap();
        assert_eq!((said.stdout.len(), said.status.code()), (0, Some(1)));
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(text.contains("'--wrong'") && text.contains("Usage:"), "{text}");
    }
    let said = catena(&["why", "--help", "-o", "json"]).unwrap();
    assert_eq!(said.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("Explain why"), "{said:?}");
}

#[test]
fn an_error_has_no_colours_where_nobody_sees_them() {
    let said = catena(&["why", "web", "--kubeconfig", "/does/not/exist"]).unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(text.starts_with("error: the kubeconfig /does/not/exist cannot be read"), "{text:?}");
}
