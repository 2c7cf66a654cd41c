//! kube-apiserver.

use anyhow::Result;

use super::component::{Component, certificate};
use crate::{
    home::{Home, write_atomically},
    state::State,
    toolchain::Tool,
};

pub const NAME: &str = "api-server";

pub fn component(home: &Home, state: &State) -> Result<Component> {
    let policy = home.configs().join("audit-policy.yaml");
    write_atomically(&policy, include_bytes!("../../control-plane/audit-policy.yaml"))?;
    let component = Component::new(
        NAME,
        state,
        Tool::ApiServer,
        [
            ("etcd-servers", format!("http://127.0.0.1:{}", state.addresses.etcd)),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", state.addresses.api_server.to_string()),
            ("tls-cert-file", certificate(home, "api-server.crt")),
            ("tls-private-key-file", certificate(home, "api-server.key")),
            ("client-ca-file", certificate(home, "ca.crt")),
            ("service-account-key-file", certificate(home, "service-accounts.pub")),
            ("service-account-signing-key-file", certificate(home, "service-accounts.key")),
            ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
            ("service-cluster-ip-range", "10.96.0.0/16".to_owned()),
            ("authorization-mode", "Node,RBAC".to_owned()),
            // As in many clusters, setting blockOwnerDeletion requires a right on the owner's finalizers.
            ("enable-admission-plugins", "OwnerReferencesPermissionEnforcement".to_owned()),
            ("audit-policy-file", policy.display().to_string()),
            ("audit-log-path", home.audit_log().display().to_string()),
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
    Ok(component.with_variable("GOGC", "400").with_variable("GOMEMLIMIT", format!("{limit}MiB")))
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
