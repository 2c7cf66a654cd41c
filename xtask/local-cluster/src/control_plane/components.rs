//! The programs of the control plane, with their flags.

use std::path::PathBuf;

use anyhow::Result;

use crate::{files, local_cluster::LocalCluster, state::State, toolchain::Tool};

/// A program, its arguments and its environment.
#[derive(Clone, Debug)]
pub struct Component {
    pub name: &'static str,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(&'static str, String)>,
}

impl Component {
    /// A component whose flags are given as pairs.
    fn new<const N: usize>(
        name: &'static str,
        state: &State,
        tool: Tool,
        flags: [(&'static str, String); N],
    ) -> Result<Self> {
        let arguments = flags.into_iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
        let program = state.toolchain.path(tool)?.clone();
        Ok(Self { name, program, arguments, environment: Vec::new() })
    }
}

/// The path of a file in the certificates directory, as a flag's value.
fn certificate(cluster: &LocalCluster, file: &str) -> String {
    cluster.certificates().join(file).display().to_string()
}

/// Writes a configuration file; returns its path, as a flag's value.
fn configuration(cluster: &LocalCluster, file: &str, text: &str) -> Result<String> {
    let path = cluster.configs().join(file);
    files::write_atomically(&path, text)?;
    Ok(path.display().to_string())
}

pub fn etcd(cluster: &LocalCluster, state: &State) -> Result<Component> {
    let clients = format!("http://127.0.0.1:{}", state.addresses.etcd);
    let peers = format!("http://127.0.0.1:{}", state.addresses.etcd_peer);
    Component::new(
        "etcd",
        state,
        Tool::Etcd,
        [
            ("name", "local".to_owned()),
            ("data-dir", cluster.data().display().to_string()),
            ("listen-client-urls", clients.clone()),
            ("advertise-client-urls", clients),
            ("listen-peer-urls", peers.clone()),
            ("initial-advertise-peer-urls", peers.clone()),
            ("initial-cluster", format!("local={peers}")),
            // For short-lived clusters: a power cut may lose data, but a killed process does not.
            ("unsafe-no-fsync", "true".to_owned()),
            // As kubeadm sets it: otherwise, a watch of a kind that does not change shows no progress.
            ("watch-progress-notify-interval", "5s".to_owned()),
            // Room for big benchmarks; the default of 2 GiB is soon full of old versions.
            ("quota-backend-bytes", (8_u64 << 30).to_string()),
            ("log-level", "warn".to_owned()),
        ],
    )
}

pub fn api_server(cluster: &LocalCluster, state: &State) -> Result<Component> {
    let policy = include_str!("../../control-plane/audit-policy.yaml");
    let mut component = Component::new(
        "api-server",
        state,
        Tool::ApiServer,
        [
            ("etcd-servers", format!("http://127.0.0.1:{}", state.addresses.etcd)),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", state.addresses.api_server.to_string()),
            ("tls-cert-file", certificate(cluster, "api-server.crt")),
            ("tls-private-key-file", certificate(cluster, "api-server.key")),
            ("client-ca-file", certificate(cluster, "ca.crt")),
            ("service-account-key-file", certificate(cluster, "service-accounts.pub")),
            ("service-account-signing-key-file", certificate(cluster, "service-accounts.key")),
            ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
            ("service-cluster-ip-range", "10.96.0.0/16".to_owned()),
            ("authorization-mode", "Node,RBAC".to_owned()),
            // As in many clusters, setting blockOwnerDeletion requires a right on the owner's finalizers.
            ("enable-admission-plugins", "OwnerReferencesPermissionEnforcement".to_owned()),
            ("audit-policy-file", configuration(cluster, "audit-policy.yaml", policy)?),
            ("audit-log-path", cluster.audit_log().display().to_string()),
            // Tests read one file, so it is not rotated.
            ("audit-log-maxsize", "4096".to_owned()),
            // The only endpoint would be a loopback address, which an EndpointSlice must not contain.
            ("endpoint-reconciler-type", "none".to_owned()),
            ("max-requests-inflight", "3000".to_owned()),
            ("max-mutating-requests-inflight", "1500".to_owned()),
        ],
    )?;
    // Everything in this cluster waits for this process, so its garbage collection runs a quarter as often, as far as the memory
    // of the machine allows: near its limit it runs all the time, and a benchmark would measure what earlier runs have left.
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let limit = memory_limit(&read("/proc/meminfo"), &read("/sys/fs/cgroup/memory.max"));
    component.environment = vec![("GOGC", "400".to_owned()), ("GOMEMLIMIT", format!("{limit}MiB"))];
    Ok(component)
}

/// A tenth of the memory of the machine, or of the container if that has less, because three clusters may run at once, and at
/// least 2 GiB; in MiB.
fn memory_limit(meminfo: &str, of_container: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    // `max` if there is none.
    let allowed = of_container.trim().parse::<u64>().map_or(u64::MAX, |bytes| bytes / 1024);
    (kib.unwrap_or_default().min(allowed) / 1024 / 10).max(2048)
}

pub fn controller_manager(cluster: &LocalCluster, state: &State) -> Result<Component> {
    let name = "controller-manager";
    Component::new(
        name,
        state,
        Tool::ControllerManager,
        [
            ("kubeconfig", cluster.kubeconfig_of(name).display().to_string()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", state.addresses.controller_manager.to_string()),
            ("service-account-private-key-file", certificate(cluster, "service-accounts.key")),
            ("root-ca-file", certificate(cluster, "ca.crt")),
            ("cluster-signing-cert-file", certificate(cluster, "ca.crt")),
            ("cluster-signing-key-file", certificate(cluster, "ca.key")),
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

pub fn scheduler(cluster: &LocalCluster, state: &State) -> Result<Component> {
    let name = "scheduler";
    let kubeconfig = cluster.kubeconfig_of(name).display().to_string();
    // Quoted as JSON, which is also YAML, because a path may contain any character.
    let config = include_str!("../../control-plane/scheduler.yaml")
        .replace("${KUBECONFIG}", &serde_json::to_string(&kubeconfig)?);
    Component::new(
        name,
        state,
        Tool::Scheduler,
        [
            ("config", configuration(cluster, "scheduler.yaml", &config)?),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", state.addresses.scheduler.to_string()),
        ],
    )
}

/// It simulates the kubelets of the fake nodes.
pub fn kwok(cluster: &LocalCluster, state: &State) -> Result<Component> {
    let name = "kwok";
    let config =
        [include_str!("../../control-plane/kwok.yaml"), include_str!("../../control-plane/stages.yaml")];
    Component::new(
        name,
        state,
        Tool::Kwok,
        [
            ("config", configuration(cluster, "kwok.yaml", &config.join("---\n"))?),
            ("kubeconfig", cluster.kubeconfig_of(name).display().to_string()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_the_memory_of_the_machine() {
        let large = "MemTotal:       24685432 kB\nMemFree: 1 kB\n";
        assert_eq!(memory_limit(large, "max\n"), 2410);
        assert_eq!(memory_limit(large, "23622320128\n"), 2252, "of a container");
        assert_eq!(memory_limit("MemTotal:        4000000 kB\n", ""), 2048);
        assert_eq!(memory_limit("", ""), 2048, "only Linux tells");
    }
}
