//! The controllers of an earlier demo. A new build does not change their Deployments, so that an installation alone would
//! leave the old programs running.

use anyhow::Result;

use super::{kubectl::Kubectl, story::say};
use crate::charts::NAMESPACE;

/// Whether the cluster had controllers before the installation.
pub struct Outdated(bool);

impl Outdated {
    /// Looks before the installation.
    pub async fn look(kubectl: &Kubectl<'_>) -> Result<Self> {
        let names = kubectl.read(&["get", "deployments", "--namespace", NAMESPACE, "--output=name"]).await?;
        Ok(Self(!names.is_empty()))
    }

    /// Restarts the controllers after the installation, if there were any; returns whether it did.
    pub async fn restart(self, kubectl: &Kubectl<'_>) -> Result<bool> {
        if self.0 {
            say("   The cluster had them already: they restart as the programs that were built just now.");
            kubectl.run(&["rollout", "restart", "deployment", "--namespace", NAMESPACE]).await?;
        }
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use local_cluster::{Access, Interrupt};

    use super::*;

    fn access(kubectl: &str) -> Access {
        Access {
            kubeconfig: PathBuf::new(),
            logs: PathBuf::new(),
            audit_log: None,
            kubectl: kubectl.into(),
            helm: "false".into(),
        }
    }

    #[tokio::test]
    async fn a_second_demo_restarts_the_controllers_and_a_first_one_does_not() {
        let interrupt = Interrupt::listen().unwrap();
        // Instead of kubectl: one program that lists nothing, one that lists something, and one that fails.
        let [nothing, something, failing] = ["true", "echo", "false"].map(access);
        let failing = Kubectl::new(&failing, &interrupt);
        let first = Outdated::look(&Kubectl::new(&nothing, &interrupt)).await.unwrap();
        assert!(!first.restart(&failing).await.unwrap());
        let second = Outdated::look(&Kubectl::new(&something, &interrupt)).await.unwrap();
        let asked = second.restart(&failing).await.unwrap_err().to_string();
        assert!(asked.contains("rollout restart deployment --namespace catena-system"), "{asked}");
    }
}
