use std::{path::PathBuf, thread, time::Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace as CoreNamespace, ServiceAccount};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    COLLECTION_TIMEOUT, CONTROLLERS, ClusterWide, Controller, Namespace,
    claims::{Claim, Held},
    cleanup::clean_up,
    eventually,
    eventually::until_gone,
    leftovers::{self, until_settled, what_keeps},
    times::Times,
};

/// The label of the namespaces of tests, by which `cargo xtask e2e --on current` deletes leftovers.
const OF_A_TEST: &str = "e2e.catena.dev/test";

/// The tested cluster, in use until this is dropped.
pub struct Cluster {
    /// As administrator.
    pub client: Client,
    held: Option<(Held, Times)>,
    /// The number of the test in the course of the suite.
    run: usize,
    /// The namespaces of the test.
    namespaces: Mutex<Vec<String>>,
}

impl Drop for Cluster {
    /// The claim ends when the controllers that the test changed are as they were; then the test fails if it left
    /// something behind.
    fn drop(&mut self) {
        let Some((held, times)) = self.held.take() else { return };
        let changed: Vec<Controller> =
            CONTROLLERS.into_iter().filter(|controller| held.may_change(*controller)).collect();
        let settled = clean_up("waiting for the controllers that a test changed", async move |client| {
            for controller in changed {
                until_settled(&client, controller).await;
            }
            Ok(())
        });
        drop(held);
        let released = Instant::now();
        let (run, namespaces) = (self.run, std::mem::take(&mut *self.namespaces.lock()));
        let is_clean = !thread::panicking() && {
            let namespaces = namespaces.clone();
            clean_up("looking for what a test left", async move |client| {
                leftovers::end(&client, run, &namespaces).await;
                Ok(())
            })
        };
        if !is_clean {
            clean_up("releasing what a failed test left", async move |client| {
                leftovers::release(&client, &namespaces).await
            });
        }
        times.note(released);
        if !thread::panicking() {
            assert!(settled && is_clean, "the test left something behind: see above");
        }
    }
}

impl Cluster {
    /// The cluster with all its controllers unchanged, while other tests use them too.
    pub async fn shared() -> Result<Self> {
        Self::with(&CONTROLLERS).await
    }

    /// The same for a test to which only these controllers matter: others may be changed meanwhile.
    pub async fn with(controllers: &[Controller]) -> Result<Self> {
        Self::connect(Claim { uses: controllers.to_vec(), changes: Vec::new() }).await
    }

    /// The cluster with these controllers for this test only: it kills, upgrades or confuses them. No others matter to it.
    pub async fn changing(controllers: &[Controller]) -> Result<Self> {
        Self::connect(Claim { uses: Vec::new(), changes: controllers.to_vec() }).await
    }

    /// The same for a test to which several controllers matter, of which it changes one: others use the rest meanwhile.
    pub async fn changing_one_of(controllers: &[Controller], changed: Controller) -> Result<Self> {
        let uses = controllers.iter().copied().filter(|controller| *controller != changed).collect();
        Self::connect(Claim { uses, changes: vec![changed] }).await
    }

    /// The cluster without any other test, for tests that disturb all others, or are disturbed by them. Those are in a
    /// module `alone`, by which `cargo xtask e2e` runs them apart from the others.
    pub async fn alone() -> Result<Self> {
        ensure!(is_alone(), "a test that wants the cluster alone has to be in a module `alone`");
        let cluster = Self::claim(Claim { uses: Vec::new(), changes: CONTROLLERS.to_vec() }).await?;
        cluster.without_others().await;
        Ok(cluster)
    }

    async fn connect(claim: Claim) -> Result<Self> {
        ensure!(!is_alone(), "a test in a module `alone` has to claim the cluster with `Cluster::alone`");
        Self::claim(claim).await
    }

    async fn claim(claim: Claim) -> Result<Self> {
        // The suite deletes objects in its way, so it never takes a cluster just because it is the current one.
        ensure!(
            std::env::var_os("CATENA_ON").is_some(),
            "no cluster was chosen: run the suite with `cargo xtask e2e`, which makes one, or asks"
        );
        let asked = Instant::now();
        let held = claim.clone().hold().await;
        let times = Times::of(&claim, asked);
        let client = Client::try_default().await.context("the cluster cannot be reached")?;
        let run = leftovers::begin(&client).await?;
        Ok(Self { client, held: Some((held, times)), run, namespaces: Mutex::default() })
    }

    /// Fails unless the test has claimed to change a controller.
    pub(crate) fn ensure_it_may_change(&self, controller: Controller) -> Result<()> {
        let name = controller.name();
        let may_change = self.held.as_ref().is_some_and(|(held, _)| held.may_change(controller));
        ensure!(may_change, "the test has to say that it is `changing` {name}");
        Ok(())
    }

    /// Creates a namespace for a test. It is deleted when it is dropped.
    pub async fn namespace(&self, what: &str) -> Result<Namespace> {
        let namespace = serde_json::from_value(json!({
            "metadata": {
                "generateName": format!("e2e-{what}-"),
                "labels": { "pod-security.kubernetes.io/enforce": "restricted", OF_A_TEST: "" },
            },
        }))?;
        let created = self.all::<CoreNamespace>().create(&PostParams::default(), &namespace).await?;
        self.namespaces.lock().push(created.name_any());
        let namespace = Namespace::new(self.client.clone(), &created);
        // No pod is admitted before.
        namespace.until("default", "is there", |_: &ServiceAccount| true).await;
        Ok(namespace)
    }

    /// All objects of a cluster-wide kind.
    #[must_use]
    pub fn all<K: ClusterWide>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    /// Waits until a namespace is gone.
    #[track_caller]
    pub fn until_namespace_gone(&self, name: &str) -> impl Future<Output = ()> {
        until_gone("the namespace is gone", COLLECTION_TIMEOUT, self.all::<CoreNamespace>(), name)
    }

    /// Waits until the namespaces of earlier tests are gone with all their objects, also of one that failed.
    async fn without_others(&self) {
        eventually("the namespaces of other tests are gone", COLLECTION_TIMEOUT, async || {
            let others = self.all::<CoreNamespace>().list(&ListParams::default().labels(OF_A_TEST)).await;
            let others = others.map_err(|error| vec![error.to_string()])?;
            let left: Vec<_> = others.iter().map(what_keeps).collect();
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await;
    }
}

/// Whether this test is in a module `alone`.
fn is_alone() -> bool {
    thread::current().name().is_some_and(|test| test.contains("::alone::"))
}

/// A path that `cargo xtask test` gives in a variable.
pub(crate) fn path_from(variable: &str) -> Result<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .with_context(|| format!("{variable} is not set: run the suite with `cargo xtask e2e`"))
}
