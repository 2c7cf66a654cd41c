//! etcd.

use anyhow::Result;

use super::component::Component;
use crate::{home::Home, state::State, toolchain::Tool};

pub const NAME: &str = "etcd";

pub fn component(home: &Home, state: &State) -> Result<Component> {
    let clients = format!("http://127.0.0.1:{}", state.addresses.etcd);
    let peers = format!("http://127.0.0.1:{}", state.addresses.etcd_peer);
    Component::new(
        NAME,
        state,
        Tool::Etcd,
        [
            ("name", "local".to_owned()),
            ("data-dir", home.data().display().to_string()),
            ("listen-client-urls", clients.clone()),
            ("advertise-client-urls", clients),
            ("listen-peer-urls", peers.clone()),
            ("initial-advertise-peer-urls", peers.clone()),
            ("initial-cluster", format!("local={peers}")),
            // For short-lived clusters: a power cut may lose data, but a killed process does not.
            ("unsafe-no-fsync", "true".to_owned()),
            // Room for big benchmarks; the default of 2 GiB is soon full of old versions.
            ("quota-backend-bytes", (8_u64 << 30).to_string()),
            ("log-level", "warn".to_owned()),
        ],
    )
}
