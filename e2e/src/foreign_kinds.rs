use std::path::Path;

use anyhow::{Result, ensure};

use crate::{Need, cleanup::clean_up, has, kubectl, until_established};

/// Kinds of other projects. They are removed when this is dropped.
pub struct ForeignKinds {
    files: Vec<String>,
}

impl ForeignKinds {
    /// Installs the kinds of some projects, from `e2e/crds`, and waits until they are served. Tests that need the same project
    /// must not run concurrently.
    pub async fn install(projects: &[&str]) -> Result<Self> {
        Self::of(projects.iter().map(|project| definitions(project)).collect()).await
    }

    /// The same for files with definitions.
    pub async fn of(files: Vec<String>) -> Result<Self> {
        ensure!(has(&[Need::NoKindsOfOthers]), "the test has to say that it `needs!(NoKindsOfOthers)`");
        let kinds = Self { files };
        for file in &kinds.files {
            let made = kubectl(&["apply", "--server-side", "--output=name", "--filename", file]).await?;
            let definitions = made.lines().filter(|name| name.starts_with("customresourcedefinition"));
            until_established(&definitions.collect::<Vec<_>>()).await;
        }
        Ok(kinds)
    }

    /// Removes them now, and waits until they are gone.
    pub async fn remove(mut self) -> Result<()> {
        remove(std::mem::take(&mut self.files)).await
    }
}

impl Drop for ForeignKinds {
    fn drop(&mut self) {
        let files = std::mem::take(&mut self.files);
        if !files.is_empty() {
            clean_up("removing foreign kinds", async move |_| remove(files).await);
        }
    }
}

async fn remove(files: Vec<String>) -> Result<()> {
    for file in files {
        kubectl(&["delete", "--ignore-not-found", "--timeout=180s", "--filename", &file]).await?;
    }
    Ok(())
}

fn definitions(project: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds").join(format!("{project}.yaml"));
    path.display().to_string()
}
