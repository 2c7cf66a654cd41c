//! Settings: a `ConfigMap` that a person or a chart wrote.

use operator_kit::{run::Validate, testing};
use serde::de::DeserializeOwned;

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    read_as::<backup_controller::Settings>(&text);
    read_as::<basic_deployment_controller::Settings>(&text);
    read_as::<basic_replicaset_controller::Settings>(&text);
    read_as::<command_binder::Settings>(&text);
    read_as::<command_reaper::Settings>(&text);
    read_as::<command_runner::Settings>(&text);
}

fn read_as<S: DeserializeOwned + Validate>(text: &str) {
    let said = |text: &str| {
        let settings = testing::settings::<S>(text).map_err(|error| error.to_string())?;
        Ok::<_, String>(settings.warnings())
    };
    let first = said(text);
    if let Err(problem) = &first {
        assert!(!problem.is_empty(), "a refusal says why");
    }
    // The next leader reads the same file.
    assert_eq!(first, said(text), "the same settings say the same of themselves");
}
