//! The paths in the checkout.

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn root() -> PathBuf {
    // `cargo run` gives the present path of the manifest; the value from the build covers a direct start.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// The Helm charts, one directory each.
pub fn charts() -> PathBuf {
    root().join("charts")
}

/// Values that let a chart run on a local cluster.
pub fn local_values() -> PathBuf {
    root().join("xtask/values/local.yaml")
}

/// Values that let a chart run on a kind cluster.
pub fn kind_values() -> PathBuf {
    root().join("xtask/values/kind.yaml")
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The directory of release binaries, which the host runner runs by default.
pub fn release_binaries() -> PathBuf {
    target().join("release")
}
