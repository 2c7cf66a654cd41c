//! Access to a cluster of any kind.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The beginnings of helm's variables that overrule the kubeconfig, the namespace and where releases are kept.
const OVERRULING: [&[u8]; 3] = [b"HELM_KUBE", b"HELM_DRIVER", b"HELM_NAMESPACE"];

/// Everything that a program needs to work with a running cluster.
#[derive(Clone, Debug)]
pub struct Access {
    /// The administrator's kubeconfig, with one context.
    pub kubeconfig: PathBuf,
    /// The directory of the logs.
    pub logs: PathBuf,
    /// The requests to the API server, if the cluster records them.
    pub audit_log: Option<PathBuf>,
    /// The program kubectl.
    pub kubectl: PathBuf,
    /// The program helm.
    pub helm: PathBuf,
}

impl Access {
    /// A run of kubectl on this cluster.
    #[must_use]
    pub fn kubectl(&self) -> Command {
        self.run(&self.kubectl)
    }

    /// A run of helm on this cluster.
    #[must_use]
    pub fn helm(&self) -> Command {
        self.run(&self.helm)
    }

    fn run(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        forget_other_clusters(&mut command).env("KUBECONFIG", &self.kubeconfig);
        command
    }
}

/// Hides from a command the variables by which helm would prefer another cluster to that of the kubeconfig.
pub fn forget_other_clusters(command: &mut Command) -> &mut Command {
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| OVERRULING.iter().any(|prefix| name.as_bytes().starts_with(prefix))) {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::again;

    const OF_ANOTHER: [&str; 5] =
        ["HELM_KUBEAPISERVER", "HELM_KUBETOKEN", "HELM_KUBECONTEXT", "HELM_DRIVER", "HELM_NAMESPACE"];
    #[test]
    fn a_cluster_of_the_users_variables_is_not_touched() {
        let variables = OF_ANOTHER.map(|name| (name, "production".into()));
        if !again::has("access::tests::a_cluster_of_the_users_variables_is_not_touched", &variables) {
            return;
        }
        let access = Access {
            kubeconfig: "chosen".into(),
            logs: PathBuf::new(),
            audit_log: None,
            kubectl: "env".into(),
            helm: "env".into(),
        };
        let output = access.helm().output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("KUBECONFIG=chosen") && !said.contains("production"), "{said}");
    }
}
