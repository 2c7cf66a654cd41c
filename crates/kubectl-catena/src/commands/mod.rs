//! One file per command, or for those that belong together.

pub mod archive;
pub mod contract;
pub mod held;
pub mod history;
pub mod inspect;
pub mod issue;
pub mod release;
pub mod templates;
pub mod upgrade;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use catena_cluster::{BASIC_DEPLOYMENTS, Cluster, Target};

/// The exit code of a check.
fn exit_code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Refuses a target that is no BasicDeployment. Its kind has any of the names that the server knows.
fn ensure_basic_deployment(cluster: &Cluster, target: &Target) -> Result<()> {
    let Target { kind, name } = target;
    ensure!(
        cluster.kinds.find(kind)?.full_name() == BASIC_DEPLOYMENTS,
        "{kind}/{name} is not a BasicDeployment, and only these have restarts and revisions; `kubectl catena run KIND NAME` \
         issues other commands"
    );
    Ok(())
}

#[cfg(test)]
mod tests {

    use catena_cluster::testing::cluster;

    use super::*;

    #[tokio::test]
    async fn a_basic_deployment_has_all_names_that_the_server_knows() {
        let (cluster, _) = cluster();
        let check =
            |kind: &str| ensure_basic_deployment(&cluster, &Target { kind: kind.into(), name: "web".into() });
        for kind in ["bd", "bdep", "BasicDeployment", "basicdeployments.v1alpha1.catena.dev"] {
            check(kind).unwrap();
        }
        let error = check("deployments").unwrap_err().to_string();
        assert!(error.contains("deployments/web is not a BasicDeployment"), "{error}");
        assert!(check("deploymentz").unwrap_err().to_string().contains("did you mean"));
    }
}
