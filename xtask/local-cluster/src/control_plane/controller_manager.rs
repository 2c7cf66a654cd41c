//! kube-controller-manager.

use anyhow::Result;

use super::component::{Component, certificate};
use crate::{home::Home, state::State, toolchain::Tool};

pub const NAME: &str = "controller-manager";

pub fn component(home: &Home, state: &State) -> Result<Component> {
    Component::new(
        NAME,
        state,
        Tool::ControllerManager,
        [
            ("kubeconfig", home.kubeconfig_of(NAME).display().to_string()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", state.addresses.controller_manager.to_string()),
            ("service-account-private-key-file", certificate(home, "service-accounts.key")),
            ("root-ca-file", certificate(home, "ca.crt")),
            ("cluster-signing-cert-file", certificate(home, "ca.crt")),
            ("cluster-signing-key-file", certificate(home, "ca.key")),
            ("use-service-account-credentials", "true".to_owned()),
            ("leader-elect", "false".to_owned()),
            // Ours are measured against apps/v1 Deployments, which therefore run without rate limits.
            ("kube-api-qps", "2000".to_owned()),
            ("kube-api-burst", "4000".to_owned()),
            ("concurrent-deployment-syncs", "20".to_owned()),
            ("concurrent-replicaset-syncs", "20".to_owned()),
            // Heartbeats are late on a busy machine, which must not evict pods in the middle of a test.
            ("node-monitor-grace-period", "5m".to_owned()),
        ],
    )
}
