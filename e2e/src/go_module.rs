use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::run::output_of;

/// A Go module with programs of the suite: the folder of this name in e2e, with the versions in its `go.mod`.
#[derive(Clone, Copy, Debug)]
pub struct GoModule(pub &'static str);

impl GoModule {
    /// Builds a package, beside the test's own program; Go's cache makes all builds but the first one quick.
    pub async fn build(self, package: &str) -> Result<PathBuf> {
        let own = std::env::current_exe()?;
        let program = own.parent().context("the test has no directory")?.join(self.0);
        let mut go = self.go();
        go.args(["build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-o"]).arg(&program).arg(package);
        output_of(go, "").await?;
        Ok(program)
    }

    /// The directory with the sources of a module that it requires.
    pub async fn directory_of(self, required: &str) -> Result<PathBuf> {
        let mut go = self.go();
        go.args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", required]);
        Ok(output_of(go, "").await?.trim().into())
    }

    fn go(self) -> Command {
        let mut go = Command::new("go");
        go.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(self.0))
            // Never fetch another Go behind the user's back.
            .envs([("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("GOWORK", "off")]);
        go
    }
}
