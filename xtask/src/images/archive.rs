//! An image as an archive for `docker load`, the same bytes for the same binary.
//!
//! A Dockerfile is not enough, because the classic builder writes the time of the build into the image, so that no two
//! builds have the same digest.

use std::path::Path;

use anyhow::{Context, Result};
use local_cluster::files;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::references;

/// The user that the charts run the controllers as.
const USER: &str = "65532:65532";
/// The creation time of all images, because no build writes its own.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// The content of an image.
pub struct Image<'a> {
    /// The name of the program in it, at the root.
    pub program: &'a str,
    /// The program.
    pub binary: &'a [u8],
    /// The crates that it consists of; scanners of images find it by the end of its name.
    pub bill_of_materials: &'a [u8],
    /// `amd64`, `arm64`.
    pub architecture: &'a str,
}

/// Writes the archive. Returns the id in `docker images --no-trunc` and the bytes of all layers.
pub fn write(image: &Image<'_>, path: &Path) -> Result<(String, usize)> {
    let Image { program, binary, bill_of_materials, architecture } = *image;
    let bill = format!("{program}.cdx.json");
    let layer = tar([(program, binary, 0o755), (bill.as_str(), bill_of_materials, 0o644)])?;
    let layer_digest = sha256(&layer);
    let config = serde_json::to_vec(&config(program, architecture, &layer_digest))?;
    let id = sha256(&config);
    let (config_name, layer_name) = (format!("{id}.json"), format!("{layer_digest}/layer.tar"));
    let manifest =
        json!([{"Config": config_name, "RepoTags": references(program), "Layers": [layer_name]}]).to_string();
    let archive = tar([
        (config_name.as_str(), config.as_slice(), 0o644),
        (layer_name.as_str(), layer.as_slice(), 0o644),
        ("manifest.json", manifest.as_bytes(), 0o644),
    ])?;
    files::write(path, &archive)?;
    Ok((format!("sha256:{id}"), layer.len()))
}

fn config(program: &str, architecture: &str, layer_digest: &str) -> Value {
    let labels = json!({
        "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
        "org.opencontainers.image.title": program,
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
    });
    json!({
        "architecture": architecture,
        "os": "linux",
        "created": CREATED,
        "config": {"Entrypoint": [format!("/{program}")], "User": USER, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_digest}")]},
        "history": [{"created": CREATED, "created_by": "cargo xtask images"}],
    })
}

/// An archive without times and owners.
fn tar<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8], u32)>) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content, mode) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_mtime(0);
        archive.append_data(&mut header, name, content).with_context(|| format!("could not pack {name}"))?;
    }
    archive.into_inner().context("could not pack the image")
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(binary: &[u8], path: &Path) -> (String, usize) {
        let image = Image { program: "controller", binary, bill_of_materials: b"{}", architecture: "amd64" };
        super::write(&image, path).unwrap()
    }

    #[test]
    fn the_same_binary_makes_the_same_bytes_and_another_one_another_image() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| directory.path().join(name));
        let first = write(b"program", &a);
        assert_eq!(first, write(b"program", &b));
        assert_eq!(std::fs::read(a).unwrap(), std::fs::read(b).unwrap());
        assert_ne!(first.0, write(b"other", &c).0);
    }

    #[test]
    fn the_bill_of_materials_lies_beside_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image.tar");
        write(b"program", &path);
        let mut archive = tar::Archive::new(std::fs::File::open(path).unwrap());
        let is_layer = |path: &Path| path.ends_with("layer.tar");
        let layer =
            archive.entries().unwrap().map(Result::unwrap).find(|entry| is_layer(&entry.path().unwrap()));
        let mut layer = tar::Archive::new(layer.unwrap());
        let files = layer.entries().unwrap().map(|file| file.unwrap().path().unwrap().display().to_string());
        assert_eq!(files.collect::<Vec<_>>(), ["controller", "controller.cdx.json"]);
    }

    #[test]
    fn the_program_is_run_without_rights() {
        let config = config("controller", "amd64", "0");
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"][0], "/controller");
        assert_eq!(config["config"]["Labels"]["org.opencontainers.image.title"], "controller");
    }
}
