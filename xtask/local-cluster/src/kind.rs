//! A kind cluster: real kubelets and real images, on Docker.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;

use crate::{
    access::Access,
    cache, files,
    programs::{Interrupt, output},
    progress::Step,
    toolchain::{Tool, Toolchain},
};

/// Time limit for the nodes to become ready.
const WAIT: &str = "300s";
/// A registry that cannot exist (RFC 6761), for images that are never pulled.
const NO_REGISTRY: &str = "registry.invalid";

/// One kind cluster, and the paths of its files.
#[derive(Clone, Debug)]
pub struct KindCluster {
    name: String,
    directory: PathBuf,
}

/// The reason why no kind cluster is possible on this machine, if there is one.
#[must_use]
pub fn problem() -> Option<String> {
    let answers = |program: &str, argument: &str| {
        let status = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !answers("docker", "info") {
        return Some("Docker does not answer (`docker info` tells why)".into());
    }
    (!answers("kind", "version")).then(|| "kind is not installed".into())
}

impl KindCluster {
    /// The cluster with a name in kind, whether or not it exists.
    fn of(name: &str) -> Result<Self> {
        Ok(Self { name: name.to_owned(), directory: cache::directory()?.join("kind").join(name) })
    }

    /// The cluster with this name, whether or not it exists; kind uses a longer one.
    pub fn named(name: &str) -> Result<Self> {
        Self::of(&format!("catena-{name}"))
    }

    /// All that were created on this machine and not deleted by [`Self::delete`].
    pub fn known() -> Result<Vec<Self>> {
        let all = cache::directory()?.join("kind");
        if !all.is_dir() {
            return Ok(Vec::new());
        }
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files::list(&all)?.iter().map(|path| Self::of(&name(path))).collect()
    }

    /// Whether it was created on this machine.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.directory.exists()
    }

    /// Its name in kind.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// The directory of its logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    /// Whether it exists in kind.
    pub fn exists(&self) -> Result<bool> {
        let clusters = output(Command::new("kind").args(["get", "clusters"]));
        let clusters = clusters.context("kind does not answer")?;
        Ok(clusters.lines().any(|line| line.trim() == self.name))
    }

    /// Fails if kind has it, but its files are not here, so that it can be neither used nor deleted with them.
    pub fn ensure_known(&self) -> Result<()> {
        let name = &self.name;
        ensure!(
            self.is_known() || !self.exists()?,
            "kind has a cluster {name:?} that was not created with this cache directory: set CATENA_CACHE to the one it \
             was created with, choose another --name, or delete it with `kind delete cluster --name {name}` if nobody \
             uses it"
        );
        Ok(())
    }

    /// Fails if kind has one of this name, which belongs to somebody else: a failure to create another would delete it.
    pub fn ensure_new(&self) -> Result<()> {
        let name = &self.name;
        ensure!(
            !self.exists()?,
            "kind has a cluster {name:?} already: `kind delete cluster --name {name}` deletes it, if nobody uses it"
        );
        Ok(())
    }

    /// Creates it, from a node image or from kind's default one; an error names the log with kind's output.
    pub async fn create(&self, node_image: Option<&str>, interrupt: &Interrupt) -> Result<()> {
        self.ensure_new()?;
        let step = Step::start(format!("kind create cluster --name {}", self.name));
        let mut kind = Command::new("kind");
        kind.args(["create", "cluster", "--name", &self.name, "--wait", WAIT, "--config"])
            .arg(self.configure()?)
            .arg("--kubeconfig")
            .arg(self.kubeconfig());
        if let Some(image) = node_image {
            kind.args(["--image", image]);
        }
        let created = async {
            interrupt.run_quietly(&mut kind, &self.logs().join("kind-create.log")).await?;
            self.refuse_at_once(interrupt).await
        };
        if let Err(error) = created.await {
            // The next run would take half a cluster for a complete one.
            return Err(match self.delete_nodes() {
                Ok(()) => error,
                Err(left) => error.context(format!("half a cluster is left: {left:#}")),
            });
        }
        step.done("");
        Ok(())
    }

    /// Writes the files that the nodes mount, and the configuration for kind, whose path is returned.
    fn configure(&self) -> Result<PathBuf> {
        let configs = self.directory.join("configs");
        files::create_directory(&configs)?;
        files::create_directory(&self.logs())?;
        let policy = include_str!("../control-plane/audit-policy.yaml");
        files::write(&configs.join("audit-policy.yaml"), policy)?;
        // Otherwise, the API server, which is root in its node, would create it readable by root only.
        files::create(&self.audit_log())?;
        let nothing = configs.join("nothing.sh");
        files::write(&nothing, "#!/bin/sh\n")?;
        fs::set_permissions(&nothing, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("could not make {} executable", nothing.display()))?;
        // Quoted as JSON, which is also YAML, because a path may contain any character.
        let quoted = |path: &Path| serde_json::to_string(&path.display().to_string());
        let text = include_str!("../kind/cluster.yaml")
            .replace("${CONFIGS}", &quoted(&configs)?)
            .replace("${LOGS}", &quoted(&self.logs())?)
            .replace("${NOTHING}", &quoted(&nothing)?);
        let config = configs.join("cluster.yaml");
        files::write(&config, text)?;
        Ok(config)
    }

    /// Makes the nodes fail at once for the missing registry: without a name server, they would wait for a minute
    /// before they report that an image cannot be pulled.
    async fn refuse_at_once(&self, interrupt: &Interrupt) -> Result<()> {
        for node in self.nodes()? {
            let mut docker = Command::new("docker");
            let line = format!("echo 127.0.0.1 {NO_REGISTRY} >> /etc/hosts");
            docker.args(["exec", &node, "sh", "-c", &line]);
            interrupt.run_quietly(&mut docker, &self.logs().join("kind-hosts.log")).await?;
        }
        Ok(())
    }

    fn nodes(&self) -> Result<Vec<String>> {
        let nodes = output(Command::new("kind").args(["get", "nodes", "--name", &self.name]))?;
        Ok(nodes.lines().map(Into::into).collect())
    }

    /// Loads images into the nodes that run pods of users.
    pub async fn load(&self, archives: &[PathBuf], interrupt: &Interrupt) -> Result<()> {
        let step = Step::start("loading the images into the nodes");
        let workers: Vec<String> =
            self.nodes()?.into_iter().filter(|node| !node.ends_with("-control-plane")).collect();
        let nodes = workers.join(",");
        let load = async |archive: &PathBuf| {
            let mut kind = Command::new("kind");
            kind.args(["load", "image-archive", "--name", &self.name, "--nodes", &nodes]).arg(archive);
            let image = archive.file_stem().unwrap_or_default().to_string_lossy();
            interrupt.run_quietly(&mut kind, &self.logs().join(format!("kind-load-{image}.log"))).await
        };
        try_join_all(archives.iter().map(load)).await?;
        step.done(format!("{} images", archives.len()));
        Ok(())
    }

    /// Its access.
    pub fn access(&self) -> Result<Access> {
        let clients = Toolchain::clients_at_once()?;
        Ok(Access {
            kubeconfig: self.kubeconfig(),
            logs: self.logs(),
            audit_log: Some(self.audit_log()),
            kubectl: clients.path(Tool::Kubectl)?.clone(),
            helm: clients.path(Tool::Helm)?.clone(),
        })
    }

    /// Removes it with all its files.
    pub fn delete(&self) -> Result<()> {
        let step = Step::start(format!("kind delete cluster --name {}", self.name));
        self.delete_nodes()?;
        if self.directory.exists() {
            files::remove_directory(&self.directory)?;
        }
        step.done("");
        Ok(())
    }

    fn delete_nodes(&self) -> Result<()> {
        let mut kind = Command::new("kind");
        kind.args(["delete", "cluster", "--name", &self.name, "--kubeconfig"]).arg(self.kubeconfig());
        output(&mut kind).with_context(|| format!("kind could not delete {:?}", self.name)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::again;

    /// Whether this process has a kind that answers by a script: see [`again::has`].
    fn has_kind(directory: &TempDir, script: &str, test: &str) -> bool {
        let kind = again::program(directory.path(), "kind", script);
        let variables = [("PATH", kind), ("CATENA_CACHE", directory.path().join("cache").into())];
        again::has(&format!("kind::tests::{test}"), &variables)
    }

    #[tokio::test]
    async fn a_cluster_that_is_there_is_neither_adopted_nor_deleted() {
        let directory = tempfile::tempdir().unwrap();
        // A kind that has one cluster, creates no other, and notes what it is asked for.
        let script = r#"echo "$@" >>"${0%/*}/asked"; [ "$1" != create ] && echo catena-theirs"#;
        if has_kind(&directory, script, "a_cluster_that_is_there_is_neither_adopted_nor_deleted") {
            let interrupt = Interrupt::listen().unwrap();
            let created = KindCluster::named("theirs").unwrap().create(None, &interrupt).await;
            let error = created.unwrap_err().to_string();
            assert!(error.contains("already"), "{error}");
            return;
        }
        let asked = fs::read_to_string(directory.path().join("asked")).unwrap();
        assert_eq!(asked, "get clusters\n");
    }

    #[test]
    fn a_cluster_of_another_cache_is_refused_with_the_ways_out() {
        let directory = tempfile::tempdir().unwrap();
        let script = "echo catena-theirs; echo catena-ours";
        if has_kind(&directory, script, "a_cluster_of_another_cache_is_refused_with_the_ways_out") {
            let [theirs, ours, new] = ["theirs", "ours", "new"].map(|name| KindCluster::named(name).unwrap());
            fs::create_dir_all(&ours.directory).unwrap();
            ours.ensure_known().unwrap();
            new.ensure_known().unwrap();
            let said = theirs.ensure_known().unwrap_err().to_string();
            assert!(said.contains("CATENA_CACHE") && said.contains("kind delete cluster"), "{said}");
        }
    }

    #[test]
    fn a_kind_that_does_not_answer_is_not_taken_for_one_without_the_cluster() {
        let directory = tempfile::tempdir().unwrap();
        let test = "a_kind_that_does_not_answer_is_not_taken_for_one_without_the_cluster";
        if has_kind(&directory, "echo no Docker >&2; exit 1", test) {
            let error = KindCluster::named("ours").unwrap().exists().unwrap_err();
            assert_eq!(format!("{error:#}"), "kind does not answer: kind: no Docker");
        }
    }
}
