//! kube-scheduler.

use anyhow::Result;

use super::component::Component;
use crate::{
    home::{Home, write_atomically},
    state::State,
    toolchain::Tool,
};

pub const NAME: &str = "scheduler";

pub fn component(home: &Home, state: &State) -> Result<Component> {
    let config = home.configs().join("scheduler.yaml");
    let kubeconfig = home.kubeconfig_of(NAME).display().to_string();
    // Quoted as JSON, which is also YAML, because a path may contain any character.
    let text = include_str!("../../control-plane/scheduler.yaml")
        .replace("${KUBECONFIG}", &serde_json::to_string(&kubeconfig)?);
    write_atomically(&config, text.as_bytes())?;
    Component::new(
        NAME,
        state,
        Tool::Scheduler,
        [
            ("config", config.display().to_string()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", state.addresses.scheduler.to_string()),
        ],
    )
}
