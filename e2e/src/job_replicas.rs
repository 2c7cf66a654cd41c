use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    api::PostParams,
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, MutexGuard},
    time::timeout,
};

use crate::{
    COLLECTION_TIMEOUT, ChaosProxy, Cluster, Namespace, OwnProcess, WAIT_TIMEOUT, eventually, example,
    example_program, kubectl,
};

/// The name of its definition.
const DEFINITION: &str = "jobreplicas.example.com";

/// A second controller would work on the same objects, and there can be only one definition.
static TURN: Mutex<()> = Mutex::const_new(());

/// The kind and the running controller of examples/job-replicas, until this is dropped. A test that wants it waits for the
/// one that has it.
pub struct JobReplicas {
    process: OwnProcess,
    _proxy: ChaosProxy,
    /// It owns the definition.
    _namespace: Namespace,
    _turn: MutexGuard<'static, ()>,
}

impl JobReplicas {
    /// Installs the kind, and starts its controller. The test has to say that it `needs!(HostProcesses)`.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let turn = TURN.lock().await;
        let namespace = cluster.namespace("example").await?;
        let mut definition: Value = serde_saphyr::from_str(&example("job-replicas/crd.yaml")?)?;
        let owner = namespace.owns(DEFINITION);
        definition["metadata"]["ownerReferences"] = owner["ownerReferences"].clone();
        let definition: CustomResourceDefinition = serde_json::from_value(definition)?;
        let definitions = cluster.all::<CustomResourceDefinition>();
        eventually("it is created, after that of the test before is gone", COLLECTION_TIMEOUT, async || {
            definitions.create(&PostParams::default(), &definition).await
        })
        .await;
        timeout(WAIT_TIMEOUT, await_condition(definitions, DEFINITION, is_crd_established())).await??;
        eventually("its schema is published", WAIT_TIMEOUT, async || {
            let said = kubectl(&["get", "--raw", "/openapi/v3/apis/example.com/v1"]).await;
            said.map_err(|error| format!("{error:#}"))
        })
        .await;
        let proxy = ChaosProxy::start().await?;
        let process = OwnProcess::start(example_program("job-replicas")?, &proxy, &json!({}))?;
        Ok(Self { process, _proxy: proxy, _namespace: namespace, _turn: turn })
    }

    /// The output of its controller so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }
}
