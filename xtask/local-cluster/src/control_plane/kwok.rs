//! kwok, which simulates the kubelets of the fake nodes.

use anyhow::Result;

use super::component::Component;
use crate::{
    home::{Home, write_atomically},
    state::State,
    toolchain::Tool,
};

pub const NAME: &str = "kwok";

pub fn component(home: &Home, state: &State) -> Result<Component> {
    let config = home.configs().join("kwok.yaml");
    let text =
        [include_str!("../../control-plane/kwok.yaml"), include_str!("../../control-plane/stages.yaml")];
    write_atomically(&config, text.join("---\n").as_bytes())?;
    Component::new(
        NAME,
        state,
        Tool::Kwok,
        [
            ("config", config.display().to_string()),
            ("kubeconfig", home.kubeconfig_of(NAME).display().to_string()),
        ],
    )
}
