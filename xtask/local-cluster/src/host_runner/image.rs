//! Finds the binary on this machine for the name of an image.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::ContainerStateWaiting as Waiting;

use super::status::waiting;

/// The last segment of an image's name, without tag and digest: `ghcr.io/x/controller:1.0` is `controller`.
pub fn binary_name(image: &str) -> &str {
    let without_digest = image.split('@').next().unwrap_or(image);
    let last = without_digest.rsplit('/').next().unwrap_or(without_digest);
    last.split(':').next().unwrap_or(last)
}

/// The binary for an image, or the report of a kubelet, with the remedy.
pub fn locate(image: &str, pull_policy: Option<&str>, bin_dir: &Path) -> Result<PathBuf, Waiting> {
    let name = binary_name(image);
    let path = bin_dir.join(name);
    if !name.is_empty() && path.is_file() {
        return Ok(path);
    }
    let reason = if pull_policy == Some("Never") { "ErrImageNeverPull" } else { "ImagePullBackOff" };
    Err(waiting(
        reason,
        format!(
            "the image {image:?} stands for the binary {}, which does not exist: build it, e.g. with `cargo build --bin \
             {name}`, or bring the cluster up with another directory of programs",
            path.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_the_last_segment_without_tag_and_digest() {
        for image in [
            "controller",
            "controller:1.0",
            "ghcr.io/catena/controller:1.0",
            "localhost:5000/controller",
            "localhost:5000/a/controller:1.0@sha256:0123",
            "ghcr.io/catena/controller@sha256:0123",
        ] {
            assert_eq!(binary_name(image), "controller", "{image}");
        }
    }

    #[test]
    fn a_missing_binary_is_reported_with_its_path_and_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let said = |image, policy| {
            let problem = locate(image, policy, directory.path()).unwrap_err();
            (problem.reason.unwrap(), problem.message.unwrap())
        };
        let (reason, message) = said("x/none:1", None);
        assert_eq!(reason, "ImagePullBackOff");
        assert!(message.contains(&directory.path().join("none").display().to_string()));
        assert!(message.contains("cargo build --bin none"));
        assert_eq!(said("none", Some("Never")).0, "ErrImageNeverPull");

        std::fs::write(directory.path().join("none"), "").unwrap();
        assert_eq!(locate("x/none:1", None, directory.path()).unwrap(), directory.path().join("none"));
    }
}
