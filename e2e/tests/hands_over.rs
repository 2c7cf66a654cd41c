//! A leader ends in the middle of a story, in each way in which one can, and the story ends as without that: what people
//! were told still holds.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use catena_api::{BasicDeploymentRestart, BasicDeploymentRollback, keys::KEPT};
use e2e::{
    BINDER, Cluster, GROUP_VERSION, Namespace, REAPER, Release, Replicas, doubled, kubectl, kubectl_apply,
};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

const SYSTEM: &str = "catena-system";

/// A way in which a leader ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// SIGTERM, as by an upgrade, an eviction or a drain.
    Stopped,
    /// SIGKILL together with its pod, as by the loss of its node.
    Killed,
}

impl End {
    /// Ends the leader, and waits until another replica leads.
    async fn of_the_leader(self, cluster: &Cluster) -> Result<()> {
        let lost = Replicas::until_ready(cluster, REAPER).await?;
        let delete = ["delete", "pod", &lost.leader, "--namespace", SYSTEM, "--wait=false"];
        match self {
            Self::Stopped => drop(kubectl(&delete).await?),
            Self::Killed => {
                lost.process.kill()?;
                // Otherwise it would be restarted at once under its former identity.
                kubectl(&[&delete[..], &["--grace-period=0", "--force"]].concat()).await?;
            }
        }
        lost.until_taken_over(cluster).await;
        Ok(())
    }
}

/// A command of a pipeline without any mark of its own.
async fn apply<K: Resource<DynamicType = ()>>(namespace: &Namespace, name: &str) -> Result<String> {
    let manifest = json!({
        "apiVersion": GROUP_VERSION, "kind": K::kind(&()), "metadata": {"name": name},
        "spec": {"targetRef": {"name": "nothing"}, "ttlSecondsAfterFinished": 0},
    });
    kubectl_apply(&namespace.name, &manifest.to_string()).await
}

/// Finishes a command in place of the target's controller.
async fn finish<K>(namespace: &Namespace, name: &str) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let now = Timestamp::now();
    let succeeded = json!({
        "type": "Succeeded", "status": "True", "reason": "Complete", "message": "", "lastTransitionTime": now,
    });
    let status = json!({
        "apiVersion": GROUP_VERSION, "kind": K::kind(&()), "metadata": {"name": name},
        "status": {"completionTime": now, "conditions": [succeeded]},
    });
    let params = PatchParams::apply("e2e").force();
    namespace.api::<K>().patch_status(name, &params, &Patch::Apply(status)).await?;
    Ok(())
}

/// Applies a command, and waits until it has finished and is deleted.
async fn reaped<K>(namespace: &Namespace, name: &str) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    apply::<K>(namespace, name).await?;
    finish::<K>(namespace, name).await?;
    namespace.until_gone::<K>(name).await;
    Ok(())
}

/// A command that is applied again is told to be kept; then the leader ends, and the next one keeps it.
async fn kept<K>(cluster: &Cluster, namespace: &Namespace, end: End) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let name = format!("told-{end:?}").to_lowercase();
    reaped::<K>(namespace, &name).await?;
    apply::<K>(namespace, &name).await?;
    let note = namespace.until_event(&name, "CreatedAgain").await;
    ensure!(note.contains("prevents a further repetition"), "{note}");
    let told = namespace.api::<K>().get(&name).await?;
    assert_eq!(told.annotations().get(KEPT), told.uid().as_ref(), "it was told before it was written");

    end.of_the_leader(cluster).await?;
    finish::<K>(namespace, &name).await?;
    // Another command shows that the next leader has passed.
    reaped::<K>(namespace, &format!("{name}-marker")).await?;
    let said = apply::<K>(namespace, &name).await?;
    ensure!(said.contains("unchanged"), "{said}");
    assert_eq!(namespace.api::<K>().get(&name).await?.uid(), told.uid());

    // A copy of it is another command, of which nobody was told anything.
    let mut copy = told.clone();
    let annotations = told.meta().annotations.clone();
    *copy.meta_mut() =
        kube::api::ObjectMeta { name: Some(format!("{name}-copy")), annotations, ..<_>::default() };
    namespace.create(&copy).await?;
    finish::<K>(namespace, &copy.name_any()).await?;
    namespace.until_gone::<K>(&copy.name_any()).await;
    Ok(())
}

#[tokio::test]
async fn a_command_of_which_a_leader_said_that_it_is_kept_is_kept_by_the_next_one_however_the_first_ended()
-> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing_one_of(&[BINDER, REAPER], REAPER).await?;
    let release = Release::upgrade(&cluster, REAPER, &doubled(REAPER)?).await?;
    let namespace = cluster.namespace("kept").await?;
    kept::<BasicDeploymentRestart>(&cluster, &namespace, End::Stopped).await?;
    kept::<BasicDeploymentRollback>(&cluster, &namespace, End::Killed).await?;
    release.restore().await
}
