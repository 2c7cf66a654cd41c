//! The real programs of a local cluster, pinned in `control-plane/go.mod`.

mod build;
mod download;
mod downloads;
#[cfg(test)]
mod file_server;
mod pins;
mod preinstalled;

use std::{collections::BTreeMap, path::PathBuf, thread};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

pub use self::pins::Tool;
use self::{download::Downloader, downloads::Downloads};

const CLIENTS: [Tool; 2] = [Tool::Kubectl, Tool::Helm];

/// The path of each tool.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Toolchain {
    binaries: BTreeMap<String, PathBuf>,
    /// Where each was found, for people.
    #[serde(skip)]
    sources: BTreeMap<String, String>,
}

impl Toolchain {
    /// Finds each tool in the cache or on this machine, downloads what is missing, and builds the rest.
    pub async fn provide() -> Result<Self> {
        Self::aside(&Tool::ALL).await
    }

    /// The same for the tools of any cluster: kubectl and helm.
    pub async fn clients() -> Result<Self> {
        Self::aside(&CLIENTS).await
    }

    /// The same for callers that have nothing else to wait for.
    pub(crate) fn clients_at_once() -> Result<Self> {
        Self::of(&CLIENTS)
    }

    /// Works on a separate thread, which is abandoned if a signal comes first.
    async fn aside(wanted: &'static [Tool]) -> Result<Self> {
        let (tell, told) = oneshot::channel();
        thread::spawn(move || tell.send(Self::of(wanted)));
        told.await.context("the search for the tools ended unexpectedly")?
    }

    fn of(wanted: &[Tool]) -> Result<Self> {
        let downloads = Downloads::chosen()?;
        let at_hand = |tool| {
            let is_wanted = !downloads::are_off();
            anyhow::Ok(if is_wanted { preinstalled::find(tool, pins::version(tool)?) } else { None })
        };
        let mut toolchain = Self::default();
        let (mut to_fetch, mut to_build) = (Vec::new(), Vec::new());
        let built = build::directory()?;
        for &tool in wanted {
            let in_cache = built.join(tool.binary());
            let download = downloads.of(tool).map(|it| anyhow::Ok((it, it.cached(tool)?))).transpose()?;
            if in_cache.is_file() {
                toolchain.add(tool, in_cache, "built from source");
            } else if let Some((download, path)) = download.as_ref().filter(|(_, path)| path.is_file()) {
                toolchain.add(tool, path.clone(), &download.to_string());
            } else if let Some(path) = at_hand(tool)? {
                toolchain.add(tool, path, "on this machine before");
            } else if let Some((download, path)) = download {
                to_fetch.push((tool, download, path));
            } else {
                to_build.push(tool);
            }
        }
        if !to_build.is_empty() {
            // Otherwise it would be noticed after all downloads.
            build::ensure_possible(&to_build)?;
        }
        let mut downloader = Downloader::default();
        for (tool, download, path) in to_fetch {
            match downloader.fetch(&pins::names(&[tool])?, download, &path) {
                Ok(()) => toolchain.add(tool, path, &download.to_string()),
                Err(error) => {
                    eprintln!("{error}");
                    to_build.push(tool);
                }
            }
        }
        if !to_build.is_empty() {
            build::build(&to_build, &built)?;
            for tool in to_build {
                toolchain.add(tool, built.join(tool.binary()), "built from source");
            }
        }
        Ok(toolchain)
    }

    fn add(&mut self, tool: Tool, path: PathBuf, source: &str) {
        self.binaries.insert(tool.binary().to_owned(), path);
        self.sources.insert(tool.binary().to_owned(), source.to_owned());
    }

    /// The path of one tool.
    pub fn path(&self, tool: Tool) -> Result<&PathBuf> {
        self.binaries.get(tool.binary()).with_context(|| {
            format!("no {} in this cluster's state: take it down and bring it up again", tool.binary())
        })
    }

    /// Each tool's name, path and, if it has just been looked for, where it comes from.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &PathBuf, &str)> {
        let source = |name| self.sources.get(name).map_or("", String::as_str);
        self.binaries.iter().map(move |(name, path)| (name.as_str(), path, source(name)))
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, fs, path::Path, time::Duration};

    use sha2::{Digest, Sha256};
    use tokio::time::timeout;

    use super::{
        file_server::{Answer, FileServer},
        *,
    };
    use crate::{again, files};

    /// The variables of a machine without any tool, whose only mirror is `server`. The second program's sum may be wrong.
    fn machine(
        path: &Path,
        tools: OsString,
        server: &str,
        sums: [&[u8]; 2],
    ) -> [(&'static str, OsString); 5] {
        let mirror = path.join("mirror.yaml");
        let entry = |(name, file): (&str, &[u8])| {
            let file =
                format!("{{ url: {server}/{name}, sha256: {} }}", downloads::hex(&Sha256::digest(file)));
            format!("{name}: {{ amd64: {file}, arm64: {file} }}\n")
        };
        fs::write(&mirror, ["kubectl", "helm"].into_iter().zip(sums).map(entry).collect::<String>()).unwrap();
        [
            ("PATH", tools),
            ("KUBEBUILDER_ASSETS", path.into()),
            ("CATENA_CACHE", path.into()),
            ("CATENA_DOWNLOADS", mirror.into()),
            ("CATENA_FROM_SOURCE", "".into()),
        ]
    }

    fn mirror() -> FileServer {
        let file = |text: &str| Answer::File(text.into());
        FileServer::start([("/kubectl", file("their kubectl\n")), ("/helm", file("their helm\n"))])
    }

    fn read(toolchain: &Toolchain) -> Vec<(String, String)> {
        toolchain
            .iter()
            .map(|(_, path, source)| (fs::read_to_string(path).unwrap(), source.to_owned()))
            .collect()
    }

    #[tokio::test]
    async fn what_a_mirror_has_needs_no_go_and_is_downloaded_once() {
        let (directory, server) = (tempfile::tempdir().unwrap(), mirror());
        let sums = [&b"their kubectl\n"[..], b"their helm\n"];
        let variables = machine(directory.path(), directory.path().into(), &server.url, sums);
        let test = "toolchain::tests::what_a_mirror_has_needs_no_go_and_is_downloaded_once";
        if again::has(test, &variables) {
            let source = "downloaded from 127.0.0.1, pinned sum";
            for _ in 0..2 {
                let found = read(&Toolchain::clients().await.unwrap());
                assert_eq!(
                    found,
                    ["their helm\n", "their kubectl\n"].map(|text| (text.into(), source.into()))
                );
            }
            return;
        }
        assert_eq!(server.asked(), ["/kubectl", "/helm"]);
    }

    #[tokio::test]
    async fn what_cannot_be_downloaded_is_built_from_source() {
        let (directory, server) = (tempfile::tempdir().unwrap(), mirror());
        let script = r#"
            case $1 in
            env) echo go1.99.0 ;;
            list) printf 'a\nb\n' ;;
            build)
                while [ "$1" != -o ]; do shift; done
                echo a >&2
                echo our helm >"$2/helm" ;;
            esac"#;
        if !again::is_here() {
            again::program(directory.path(), "go", script);
        }
        // Without the tools that this machine may have.
        let only_go = directory.path().into();
        let variables =
            machine(directory.path(), only_go, &server.url, [&b"their kubectl\n"[..], b"another helm\n"]);
        let test = "toolchain::tests::what_cannot_be_downloaded_is_built_from_source";
        if again::has(test, &variables) {
            let [helm, kubectl] = &read(&Toolchain::clients().await.unwrap())[..] else { panic!() };
            assert_eq!(*helm, ("our helm\n".into(), "built from source".into()));
            assert_eq!(kubectl.0, "their kubectl\n");
        }
    }

    #[tokio::test]
    async fn a_choice_to_build_from_source_makes_no_request() {
        let (directory, server) = (tempfile::tempdir().unwrap(), mirror());
        let mut variables = machine(directory.path(), directory.path().into(), &server.url, [b"", b""]);
        variables[4].1 = "1".into();
        let test = "toolchain::tests::a_choice_to_build_from_source_makes_no_request";
        if again::has(test, &variables) {
            let said = format!("{:#}", Toolchain::clients().await.unwrap_err());
            for part in ["kubectl v", "helm v4", "install Go", "CATENA_DOWNLOADS"] {
                assert!(said.contains(part), "{said}");
            }
            return;
        }
        assert!(server.asked().is_empty());
    }

    #[tokio::test]
    async fn a_wait_for_the_tools_of_another_run_can_be_interrupted() {
        let machine = tempfile::tempdir().unwrap();
        let go = again::program(machine.path(), "go", "echo go1.99.0");
        let variables =
            [("PATH", go), ("CATENA_CACHE", machine.path().into()), ("CATENA_FROM_SOURCE", "1".into())];
        let test = "toolchain::tests::a_wait_for_the_tools_of_another_run_can_be_interrupted";
        if !again::has(test, &variables) {
            return;
        }
        let directory = build::directory().unwrap();
        fs::create_dir_all(&directory).unwrap();
        let other = files::lock(&directory.join(build::LOCK), "is none").unwrap();
        // Without this end, a wait that blocks would last for ever.
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(5));
            drop(other);
        });
        assert!(timeout(Duration::from_millis(100), Toolchain::provide()).await.is_err());
    }
}
