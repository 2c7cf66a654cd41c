//! The versions that `xtask/local-cluster/control-plane/go.mod` pins.

use anyhow::{Context, Error, Result, bail};
use serde::Deserialize;

/// The Go module that pins the tools.
pub const GO_MOD: &str = include_str!("../../control-plane/go.mod");

/// One of the programs that make up a local cluster.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(try_from = "String")]
pub enum Tool {
    /// etcd
    Etcd,
    /// kube-apiserver
    ApiServer,
    /// kube-controller-manager
    ControllerManager,
    /// kube-scheduler
    Scheduler,
    /// kubectl
    Kubectl,
    /// kwok, which simulates the fake nodes
    Kwok,
    /// helm
    Helm,
}

impl Tool {
    /// All of them, the quickest to build last, so that the long ones are seen first.
    pub const ALL: [Self; 7] = [
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Helm,
        Self::Etcd,
    ];

    /// The name of the binary, built or found on a PATH.
    #[must_use]
    pub fn binary(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Helm => "helm",
        }
    }

    /// The Go package that builds it.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            Self::Helm => "helm.sh/helm/v4/cmd/helm",
        }
    }

    /// The name that `go build` gives to the binary.
    pub(super) fn built_as(self) -> &'static str {
        if self == Self::Etcd { "server" } else { self.binary() }
    }
}

impl TryFrom<String> for Tool {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        match Self::ALL.into_iter().find(|tool| tool.binary() == name) {
            Some(tool) => Ok(tool),
            None => bail!(
                "a local cluster has no program {name}, only {}",
                Self::ALL.map(Self::binary).join(", ")
            ),
        }
    }
}

/// The pinned version of a tool, with its leading `v`.
pub fn version(tool: Tool) -> Result<&'static str> {
    version_in(GO_MOD, tool)
}

/// The version of the module in which the tool's package is.
fn version_in(go_mod: &'static str, tool: Tool) -> Result<&'static str> {
    let package = tool.package();
    let is_in = |module: &str| {
        package.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let version = go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace().filter(|word| *word != "require");
        let (module, version) = (words.next()?, words.next()?);
        (is_in(module) && version.starts_with('v')).then_some(version)
    });
    version.with_context(|| {
        format!("go.mod pins no module of {package}: restore xtask/local-cluster/control-plane/go.mod")
    })
}

/// The tools with their versions, for messages.
pub fn names(tools: &[Tool]) -> Result<String> {
    let name = |tool: &Tool| Ok(format!("{} {}", tool.binary(), version(*tool)?));
    Ok(tools.iter().map(name).collect::<Result<Vec<_>>>()?.join(", "))
}

/// The Go version that the module asks for, as `1.26.0`.
pub fn go() -> Result<&'static str> {
    let line = GO_MOD.lines().find_map(|line| line.strip_prefix("go "));
    line.map(str::trim)
        .context("go.mod names no Go version: restore xtask/local-cluster/control-plane/go.mod")
}

/// Major and minor of a version like `v1.37.1` or `1.26`.
pub fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split('.');
    let leading_number =
        |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    Some((leading_number(parts.next()?)?, leading_number(parts.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "module x\n\nreplace k8s.io/api => k8s.io/api v0.37.1\n\n\
        require k8s.io/kubernetes v1.37.1 // indirect\n\nrequire (\n\tsigs.k8s.io/kwok v0.8.0 // indirect\n)\n";

    #[test]
    fn versions_are_read_from_single_and_grouped_requirements() {
        assert_eq!(version_in(MODULE, Tool::Kubectl).unwrap(), "v1.37.1");
        assert_eq!(version_in(MODULE, Tool::Kwok).unwrap(), "v0.8.0");
        assert!(version_in(MODULE, Tool::Helm).unwrap_err().to_string().contains("helm.sh/helm/v4"));
        assert!(minor(go().unwrap()).is_some());
    }

    #[test]
    fn a_minor_is_read_from_every_way_to_write_a_version() {
        assert_eq!(minor("v1.37.1"), Some((1, 37)));
        assert_eq!(minor("1.26"), Some((1, 26)));
        assert_eq!(minor("v4.3.1+gabc"), Some((4, 3)));
        assert_eq!(minor("1.27rc1"), Some((1, 27)));
        assert_eq!(minor("devel"), None);
    }
}
