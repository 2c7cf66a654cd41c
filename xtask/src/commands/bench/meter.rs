//! Measures a piece of work: the processes of its controllers, their requests, and the machine.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt, api::ListParams};
use local_cluster::{LocalCluster, PID_ANNOTATION, client};

use super::{
    figure::{Figure, Unit},
    machine::Machine,
    process::{Process, Usage},
    requests::{Counts, Requests},
    subject::{API_SERVER, CONTROLLER_MANAGER, Subject},
};
use crate::charts::NAMESPACE;

/// Work that follows within this time counts as well.
const SETTLE: Duration = Duration::from_secs(2);

/// Measures on a cluster.
pub struct Meter {
    cluster: LocalCluster,
    pub client: Client,
    /// Its supervisor, whose descendants are all processes of the cluster.
    supervisor: u32,
    /// Pause before each measurement.
    rest: Duration,
}

/// A process with its usage.
#[derive(Clone, Debug)]
struct Reading {
    process: Process,
    usage: Usage,
}

impl Meter {
    /// A meter for a cluster that is up.
    pub async fn new(cluster: &LocalCluster, rest: Duration) -> Result<Self> {
        let health = cluster.health().await.context("the cluster does not run")?;
        let client = client(&cluster.kubeconfig()).await?;
        Ok(Self { cluster: cluster.clone(), client, supervisor: health.supervisor.cast_unsigned(), rest })
    }

    /// Measures `work` of a subject on this number of objects; the work returns figures of its own.
    pub async fn measure(
        &self,
        subject: Subject,
        objects: usize,
        work: impl AsyncFnOnce() -> Result<Vec<Figure>>,
    ) -> Result<(Vec<Figure>, Counts)> {
        tokio::time::sleep(self.rest).await;
        let before = self.readings(subject).await?;
        for reading in &before {
            if let Err(error) = reading.process.reset_peak() {
                eprintln!("the peak of {} counts from its start: {error:#}", reading.process.name);
            }
        }
        let requests = Requests::from_now(&self.cluster)?;
        let machine = self.machine()?;
        let mut figures = work().await?;
        tokio::time::sleep(SETTLE).await;
        let machine = self.machine()?.since(&machine);
        let after = self.readings(subject).await?;
        let counts = requests.since(&self.cluster, &subject.callers())?;
        figures.extend(costs(&before, &after));
        figures.extend(counts.figures(objects));
        figures.extend(machine);
        Ok((figures, counts))
    }

    /// The running processes of these charts and components.
    pub async fn processes(&self, names: &[&str]) -> Result<Vec<Process>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let pods = pods.list(&ListParams::default()).await?.items;
        let components = self.cluster.components();
        let process = |name: &&str| {
            let of_chart = |pod: &Pod| {
                let is_it = pod.labels().get("app.kubernetes.io/name").is_some_and(|label| label == name);
                let pid = pod.annotations().get(PID_ANNOTATION).filter(|_| is_it)?;
                pid.parse().ok()
            };
            let component = components.get(*name).and_then(|kept| kept.pid);
            let pid = component.or_else(|| pods.iter().find_map(of_chart));
            Ok(Process { name: full_name(name), pid: pid.with_context(|| format!("{name} does not run"))? })
        };
        names.iter().map(process).collect()
    }

    async fn readings(&self, subject: Subject) -> Result<Vec<Reading>> {
        // The cost of the requests is the server's.
        let names = [subject.controllers(), &[API_SERVER]].concat();
        let processes = self.processes(&names).await?;
        processes.into_iter().map(|process| Ok(Reading { usage: process.usage()?, process })).collect()
    }

    fn machine(&self) -> Result<Machine> {
        Machine::now(&[self.supervisor, std::process::id()])
    }
}

fn full_name(name: &str) -> String {
    match name {
        API_SERVER => "the API server".to_owned(),
        CONTROLLER_MANAGER => "kube-controller-manager".to_owned(),
        chart => chart.to_owned(),
    }
}

/// The costs of the controllers together, of each of them if there are several, and of the API server, which is the last one.
fn costs(before: &[Reading], after: &[Reading]) -> Vec<Figure> {
    let Some((server, controllers)) = after.split_last() else { return Vec::new() };
    let mut parts = vec![("the controllers", controllers)];
    if controllers.len() > 1 {
        parts.extend(controllers.chunks(1).map(|one| (one[0].process.name.as_str(), one)));
    }
    parts.push((server.process.name.as_str(), std::slice::from_ref(server)));
    let cpu = |of: &[Reading]| of.iter().map(|reading| cpu(before, reading)).sum();
    let mebibytes = |of: &[Reading], part: fn(&Usage) -> u64| {
        kib_as_mib(of.iter().map(|reading| part(&reading.usage)).sum())
    };
    let cpus = parts.iter().map(|(name, of)| Figure::seconds(format!("CPU of {name}"), cpu(of)));
    let memory = parts.iter().flat_map(|(name, of)| {
        [
            Figure::new(format!("memory of {name}"), Unit::Mebibytes, mebibytes(of, |usage| usage.resident)),
            Figure::new(format!("peak memory of {name}"), Unit::Mebibytes, mebibytes(of, |usage| usage.peak)),
        ]
    });
    cpus.chain(memory).collect()
}

/// The CPU time of a process since `before`, or since its start if it is a later one.
fn cpu(before: &[Reading], after: &Reading) -> Duration {
    let earlier = before.iter().find(|reading| reading.process == after.process);
    after.usage.cpu.saturating_sub(earlier.map_or(Duration::ZERO, |reading| reading.usage.cpu))
}

#[expect(clippy::cast_precision_loss, reason = "memory in KiB is far below 2^52")]
fn kib_as_mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(name: &str, pid: u32, seconds: u64, mebibytes: u64) -> Reading {
        let usage = Usage {
            cpu: Duration::from_secs(seconds),
            resident: mebibytes * 1024,
            peak: 2 * mebibytes * 1024,
        };
        Reading { process: Process { name: name.into(), pid }, usage }
    }

    #[test]
    fn costs_are_told_of_all_controllers_of_each_and_of_the_server() {
        let before = [reading("a", 1, 10, 5), reading("b", 2, 10, 5), reading("server", 3, 100, 50)];
        // The process of b was replaced, so that all of its time counts.
        let after = [reading("a", 1, 12, 7), reading("b", 4, 1, 6), reading("server", 3, 130, 60)];
        let costs = costs(&before, &after);
        let value = |name: &str| costs.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        for (name, wanted) in [
            ("CPU of the controllers", 3.0),
            ("CPU of a", 2.0),
            ("CPU of b", 1.0),
            ("CPU of server", 30.0),
            ("memory of the controllers", 13.0),
            ("peak memory of the controllers", 26.0),
            ("peak memory of server", 120.0),
        ] {
            assert_eq!(value(name), Some(wanted), "{name}");
        }
    }

    #[test]
    fn one_controller_is_not_told_twice() {
        let after = [reading("a", 1, 12, 7), reading("server", 3, 130, 60)];
        assert!(costs(&[], &after).iter().all(|figure| !figure.name.ends_with(" a")));
    }
}
