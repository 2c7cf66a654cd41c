//! A reader who types the commands of a page, in a checkout, with kubectl, helm and cargo on the PATH.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{process::Command, time::timeout};

use crate::{
    Namespace,
    cluster::path_from,
    examples::with_loaded_image,
    page::{Page, Typed, checkout},
};

/// Time limit of all commands of a page together.
const LIMIT: Duration = Duration::from_secs(600);

/// The replaced programs of a reader's machine, with their replacements.
const PROGRAMS: [(&str, &str); 3] = [
    ("kubectl", include_str!("reader/kubectl.sh")),
    ("helm", include_str!("reader/helm.sh")),
    ("cargo", include_str!("reader/cargo.sh")),
];

/// A reader, with a home directory and a checkout, who works in a namespace.
pub struct Reader {
    directory: PathBuf,
}

impl Reader {
    /// One whose current namespace is this one.
    pub async fn in_namespace(namespace: &Namespace) -> Result<Self> {
        let reader = Self { directory: std::env::temp_dir().join(&namespace.name) };
        for directory in ["bin", "home", "output", "checkout"] {
            fs::create_dir_all(reader.directory.join(directory))?;
        }
        for (name, text) in PROGRAMS {
            let path = reader.directory.join("bin").join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        reader.check_out()?;
        let kubeconfig = reader.kubeconfig().display().to_string();
        // A copy of its own, because it contains the current namespace.
        reader.types("kubectl config view --raw --flatten >.kubeconfig", &path_from("KUBECONFIG")?).await?;
        fs::rename(reader.directory.join("checkout/.kubeconfig"), &kubeconfig)?;
        let current = format!("kubectl config set-context --current --namespace {}", namespace.name);
        reader.types(&current, &reader.kubeconfig()).await?;
        Ok(reader)
    }

    /// Types one command that is not on a page.
    pub async fn does(&self, command: &str) -> Result<()> {
        self.types(command, &self.kubeconfig()).await
    }

    /// Types the commands of a page in one shell, until one fails or its output differs from the page.
    pub async fn follows(&self, page: &Page) -> Result<()> {
        let typed: Vec<Typed> = page.typed()?.into_iter().filter(|typed| !typed.is_of_the_plugin()).collect();
        ensure!(!typed.is_empty(), "{} has no command", page.path);
        let run = |(number, Typed { command, .. }): (usize, &Typed)| {
            format!("{{\n{command}\n}} >../output/{number} 2>&1 || {{ echo {number}; exit; }}\n")
        };
        let script: String = typed.iter().enumerate().map(run).collect();
        let script = format!("set -uo pipefail\n{script}");
        let failed = self.bash(&script, &self.kubeconfig()).await?;
        let said = |number: usize| {
            let output = self.directory.join("output").join(number.to_string());
            fs::read_to_string(output).unwrap_or_default()
        };
        if let Ok(number) = failed.trim().parse::<usize>() {
            let Typed { line, command, .. } = typed.get(number).context("an odd number")?;
            bail!("{}:{line}: this failed:\n{command}\n{}", page.path, said(number));
        }
        ensure!(failed.trim().is_empty(), "{}: {failed}", page.path);
        for (number, typed) in typed.iter().enumerate() {
            typed.shows(&said(number)).with_context(|| format!("{}:{}", page.path, typed.line))?;
        }
        Ok(())
    }

    async fn types(&self, command: &str, kubeconfig: &Path) -> Result<()> {
        let failed = self.bash(&format!("{{\n{command}\n}} || echo it failed"), kubeconfig).await?;
        ensure!(!failed.contains("it failed"), "{command}: {failed}");
        Ok(())
    }

    /// Runs a script, and returns its output.
    async fn bash(&self, script: &str, kubeconfig: &Path) -> Result<String> {
        let home = self.directory.join("home");
        let path = std::env::var("PATH").unwrap_or_default();
        let path =
            format!("{}:{}:{path}", self.directory.join("bin").display(), home.join(".cargo/bin").display());
        let bash = Command::new("bash")
            .args(["-c", script])
            .current_dir(self.directory.join("checkout"))
            .env("PATH", path)
            .env("READERS_HOME", std::env::var_os("HOME").unwrap_or_default())
            .env("HOME", &home)
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECACHEDIR", self.directory.join("cache"))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(LIMIT, bash).await.context("the page takes too long")?.context("no bash")?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }

    fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Copies the checkout with the built binaries, and with an available image in the examples.
    fn check_out(&self) -> Result<()> {
        let here = self.directory.join("checkout");
        for entry in fs::read_dir(checkout())? {
            let entry = entry?;
            if !["examples", "target", ".git"].contains(&entry.file_name().to_string_lossy().as_ref()) {
                symlink(entry.path(), here.join(entry.file_name()))?;
            }
        }
        let plugin = path_from("CATENA_PLUGIN")?;
        fs::create_dir(here.join("target"))?;
        // A reader's binaries are those of the demo, which builds for development.
        symlink(plugin.parent().context("the plugin is in no directory")?, here.join("target/debug"))?;
        fs::create_dir(here.join("examples"))?;
        for entry in fs::read_dir(checkout().join("examples"))? {
            let entry = entry?;
            let example = here.join("examples").join(entry.file_name());
            if entry.file_type()?.is_dir() {
                symlink(entry.path(), example)?;
            } else {
                fs::write(example, with_loaded_image(&fs::read_to_string(entry.path())?))?;
            }
        }
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).ok();
    }
}

impl Typed {
    /// Whether it is a command of the plugin whose output is shown; `keeps_the_transcript.rs` tests those.
    fn is_of_the_plugin(&self) -> bool {
        self.shown.is_some() && self.command.starts_with("kubectl catena")
    }

    /// Compares the output with the page: of a table only the head, because the rest differs from run to run.
    fn shows(&self, said: &str) -> Result<()> {
        let Some(shown) = &self.shown else { return Ok(()) };
        let head = |line: Option<&str>| -> Vec<String> {
            line.unwrap_or_default().split_whitespace().map(ToOwned::to_owned).collect()
        };
        let expected = head(shown.first().map(String::as_str));
        let is_head = |word: &String| word.chars().all(|c| c.is_ascii_uppercase() || c == '-');
        ensure!(!expected.is_empty() && expected.iter().all(is_head), "only tables are compared: {shown:?}");
        ensure!(head(said.lines().next()) == expected, "{} shows something else:\n{said}", self.command);
        ensure!(said.lines().count() == shown.len(), "{} shows more or less:\n{said}", self.command);
        Ok(())
    }
}
