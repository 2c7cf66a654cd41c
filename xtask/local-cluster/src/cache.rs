//! The per-user directory outside the checkout: built tools and the state of local clusters.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// `$CATENA_CACHE`, else `$XDG_CACHE_HOME/catena`, else `~/.cache/catena`.
pub fn directory() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let chosen = set("CATENA_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|base| base.join("catena")))
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache/catena")))
        .context(
            "no cache directory: neither CATENA_CACHE, XDG_CACHE_HOME nor HOME is set; set one of them",
        )?;
    // The processes of a cluster run in folders of their own.
    ensure!(
        chosen.is_absolute(),
        "{} is no absolute path: set CATENA_CACHE to one, such as $PWD/cache",
        chosen.display()
    );
    std::fs::create_dir_all(&chosen).with_context(|| {
        format!("could not create {}: set CATENA_CACHE to a writable directory", chosen.display())
    })?;
    // Symlinks resolved once: processes are recognised by the paths on their command line.
    chosen.canonicalize().with_context(|| format!("could not resolve {}", chosen.display()))
}
